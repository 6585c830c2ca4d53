// Objects of a small world, as the API server gives them.
import { injected, inPod } from '../../contract/names.ts';
import type { Bucket } from '../../crds/bucket.ts';
import type { InjectionStatus, TakenPort } from '../../operator/injection/injection-status.ts';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../operator/kube/object.ts';
import type { PodObject } from '../../operator/policy/pod-record.ts';
import type { PolicyObject } from '../../operator/policy/policy-record.ts';
import type { ServiceObject } from '../../operator/policy/service-record.ts';

export interface PodOptions {
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly owner?: OwnerReference;
  readonly phase?: string;
  readonly isDeleting?: boolean;
  /** Absent = no sidecar. */
  readonly mode?: 'takeover' | 'redirect';
  readonly taken?: readonly TakenPort[];
  readonly ports?: NonNullable<NonNullable<PodObject['spec']>['containers']>[number]['ports'];
  readonly createdAt?: string;
}

export const HTTP: TakenPort = { container: 'app', name: 'http', port: 8080, listen: 15100 };

const POD = {
  namespace: 'shop',
  labels: { app: 'api' },
  phase: 'Running',
  isDeleting: false,
  taken: [HTTP],
  createdAt: '2026-01-01T00:00:00Z',
} as const satisfies PodOptions;

/** A pod; with `mode` as it is after injection. */
export function podObject(name: string, options: PodOptions = {}): PodObject {
  const { mode, taken, owner, phase, ...given } = { ...POD, ...options };
  const written = mode === undefined ? {} : { [injected.status]: textOf(mode, taken) };
  return {
    metadata: {
      name,
      namespace: given.namespace,
      uid: given.uid ?? `uid-${name}`,
      labels: given.labels,
      annotations: { ...given.annotations, ...written },
      ...(owner && { ownerReferences: [owner] }),
      ...(given.isDeleting && { deletionTimestamp: POD.createdAt }),
      creationTimestamp: given.createdAt,
    },
    spec: {
      containers: [{ name: 'app', ports: given.ports ?? [appPort(mode)] }],
      initContainers: mode === undefined ? [] : [sidecarOf(taken)],
    },
    status: { phase },
  };
}

type Container = NonNullable<NonNullable<PodObject['spec']>['containers']>[number];
type Port = NonNullable<Container['ports']>[number];

function appPort(mode: PodOptions['mode']): Port {
  return { name: mode === 'takeover' ? 'app-http' : 'http', containerPort: 8080 };
}

function sidecarOf(taken: readonly TakenPort[]): Container {
  const ports = taken.map(({ name = 'weir', listen }) => ({ name, containerPort: listen }));
  return { name: inPod.sidecar, ports };
}

function textOf(mode: InjectionStatus['mode'], ports: readonly TakenPort[]): string {
  const rest = { version: '0.1.0', native: true, admin: 15090, image: 'weir', hash: 'h' };
  return JSON.stringify({ ...rest, mode, ports } satisfies InjectionStatus);
}

export const BUCKETS: readonly Bucket[] = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];

/** A policy that limits everything of `app: api`. */
export function policyObject(
  name: string,
  spec: object = {},
  metadata: Partial<ObjectMeta> = {},
): PolicyObject {
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, generation: 1, ...metadata },
    spec: {
      selector: { matchLabels: { app: 'api' } },
      rules: [{ name: 'all', buckets: BUCKETS }],
      ...spec,
    },
  };
}

export function serviceObject(
  name: string,
  spec: ServiceObject['spec'] = {},
  namespace = 'shop',
): ServiceObject {
  return {
    metadata: { name, namespace, uid: `uid-${name}` },
    spec: {
      clusterIP: '10.0.0.1',
      selector: { app: 'api' },
      ports: [{ port: 80, targetPort: 'http' }],
      ...spec,
    },
  };
}

export function namespaceObject(
  name: string,
  labels: Readonly<Record<string, string>>,
): KubeObject {
  return { metadata: { name, labels } };
}

/** A reference to the controller of an object. */
export function ownedBy(kind: string, name: string): OwnerReference {
  return { apiVersion: 'apps/v1', kind, name, uid: `uid-${name}`, controller: true };
}

export function replicaSetObject(name: string, deployment?: string): KubeObject {
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      ...(deployment === undefined ? {} : { ownerReferences: [ownedBy('Deployment', deployment)] }),
    },
  };
}
