// A pod, as far as policies are concerned. The operator holds one of these per pod it watches, and nothing else of it.
import { annotations as names, inPod } from '../../contract/names.ts';
import { readInjectionStatus, type InjectionStatus } from '../injection/injection-status.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { controllerOf } from './workload.ts';

/** The fields of a pod that are read. */
export interface PodObject extends KubeObject {
  readonly spec?: {
    readonly containers?: readonly ContainerObject[];
    readonly initContainers?: readonly ContainerObject[];
    readonly hostNetwork?: boolean;
  };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface ContainerObject {
  readonly name: string;
  readonly ports?: readonly {
    readonly name?: string;
    readonly containerPort: number;
    readonly hostPort?: number;
    readonly protocol?: string;
  }[];
}

export interface ContainerPort {
  readonly container: string;
  /** Absent = unnamed. */
  readonly name?: string;
  readonly number: number;
  readonly hostPort?: number;
}

/** What the webhook did, as far as policies need it. */
export type Injection = Pick<InjectionStatus, 'mode' | 'ports'>;

export interface PodRecord {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Value of the annotation `weir.dev/inject`. */
  readonly inject?: string;
  /** The ports to take were chosen by annotation: what is left out is left out on purpose. */
  readonly hasChosenPorts: boolean;
  readonly owner?: OwnerReference;
  /** TCP ports only. */
  readonly ports: readonly ContainerPort[];
  /** Absent = no sidecar of ours. */
  readonly injection?: Injection;
  readonly isHostNetwork: boolean;
  /** Succeeded or Failed: it serves nobody and never will. */
  readonly isTerminal: boolean;
  readonly isDeleting: boolean;
  readonly isRunning: boolean;
  /** ISO 8601; empty when the server did not say. */
  readonly createdAt: string;
}

/** Reads a pod of the API server. */
export function readPod(object: PodObject): PodRecord {
  const { namespace = '', name = '', uid = '', labels = {} } = object.metadata;
  const owner = controllerOf(object.metadata);
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    labels,
    ...wishesOf(object),
    ...(owner === undefined ? {} : { owner }),
    ports: containersOf(object).flatMap(portsOf),
    isHostNetwork: object.spec?.hostNetwork === true,
    ...lifeOf(object),
    createdAt: object.metadata.creationTimestamp ?? '',
  };
}

/** Whether it counts: it serves, or is about to. */
export function isLive({ isTerminal, isDeleting }: PodRecord): boolean {
  return !isTerminal && !isDeleting;
}

function wishesOf(object: PodObject): Pick<PodRecord, 'inject' | 'hasChosenPorts' | 'injection'> {
  const { annotations = {} } = object.metadata;
  const inject = annotations[names.inject];
  const injection = injectionOf(object);
  return {
    ...(inject === undefined ? {} : { inject }),
    hasChosenPorts: annotations[names.ports] !== undefined,
    ...(injection === undefined ? {} : { injection }),
  };
}

// Whoever may create pods may write the annotation: without our container there is no sidecar.
function injectionOf(object: PodObject): Injection | undefined {
  const hasSidecar = containersOf(object).some(({ name }) => name === inPod.sidecar);
  const status = hasSidecar ? readInjectionStatus(object.metadata) : undefined;
  return status === undefined ? undefined : { mode: status.mode, ports: status.ports };
}

function lifeOf({
  status,
  metadata,
}: PodObject): Pick<PodRecord, 'isTerminal' | 'isDeleting' | 'isRunning'> {
  const phase = status?.phase ?? 'Pending';
  return {
    isTerminal: phase === 'Succeeded' || phase === 'Failed',
    isDeleting: metadata.deletionTimestamp !== undefined,
    isRunning: phase === 'Running',
  };
}

function containersOf({ spec }: PodObject): readonly ContainerObject[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
}

function portsOf({ name: container, ports = [] }: ContainerObject): ContainerPort[] {
  return ports
    .filter(({ protocol = 'TCP' }) => protocol === 'TCP')
    .map(({ name, containerPort, hostPort }) => ({
      container,
      ...(name === undefined || name === '' ? {} : { name }),
      number: containerPort,
      // The API server writes 0 nowhere, but allows it: no host port.
      ...(hostPort === undefined || hostPort === 0 ? {} : { hostPort }),
    }));
}
