// Ways around the sidecar. In takeover mode it stands at a port of its own, and what names the app's number goes past
// it; in redirect mode the pod's network sends every connection through it, whatever the Service says.
import type { TakenPort } from '../injection/injection-status.ts';
import type { PodRecord } from './pod-record.ts';
import type { ServicePort, ServiceRecord } from './service-record.ts';

export type BypassCause =
  | 'NumericTargetPort'
  | 'NoTargetPort'
  | 'RenamedTargetPort'
  | 'Headless'
  | 'HostPort'
  | 'UnnamedPort';

/** One way for requests to reach a pod. docs/bypass.md shows these rows; a test holds both equal. */
export interface BypassRow {
  readonly path: string;
  readonly takeover: 'limited' | 'bypass';
  readonly redirect: 'limited' | 'bypass';
  /** What the operator reports; absent = nobody but the client knows that it goes this way. */
  readonly cause?: BypassCause;
  readonly remedy: string;
}

const LIMITED = { takeover: 'limited', redirect: 'limited' } as const;
const TAKEOVER_ONLY = { takeover: 'bypass', redirect: 'limited' } as const;

export const bypassRows: readonly BypassRow[] = [
  { path: 'Service with a named `targetPort`', ...LIMITED, remedy: '–' },
  {
    path: 'Service with a number as `targetPort`',
    ...TAKEOVER_ONLY,
    cause: 'NumericTargetPort',
    remedy: 'write the name of the container port as `targetPort`',
  },
  {
    path: 'Service without `targetPort` (also `kubectl expose`)',
    ...TAKEOVER_ONLY,
    cause: 'NoTargetPort',
    remedy: 'add the name of the container port as `targetPort`',
  },
  {
    path: 'Service with two ports, one of them by number',
    ...TAKEOVER_ONLY,
    cause: 'NumericTargetPort',
    remedy: 'write names for both',
  },
  {
    path: 'Service with `targetPort: app-<name>`',
    ...TAKEOVER_ONLY,
    cause: 'RenamedTargetPort',
    remedy: 'write the name the port has in the pod template',
  },
  {
    path: 'Headless Service, StatefulSet host names',
    ...TAKEOVER_ONLY,
    cause: 'Headless',
    remedy:
      'annotate the pods with `weir.dev/mode: redirect`, or let clients use a Service with an address',
  },
  {
    path: '`hostPort` on the app’s port',
    ...TAKEOVER_ONLY,
    cause: 'HostPort',
    remedy: 'remove `hostPort`, or annotate the pods with `weir.dev/mode: redirect`',
  },
  {
    path: 'Service to a container port without a name',
    ...TAKEOVER_ONLY,
    cause: 'UnnamedPort',
    remedy: 'give the container port a name, and use it as `targetPort`',
  },
  {
    path: 'Pod address and the app’s port, asked directly',
    ...TAKEOVER_ONLY,
    remedy: 'use `weir.dev/mode: redirect`, or a NetworkPolicy that admits the sidecar’s port only',
  },
  {
    path: '`kubectl port-forward` to the app’s port, and requests within the pod',
    takeover: 'bypass',
    redirect: 'bypass',
    remedy: 'who may do that is a matter of RBAC',
  },
];

export interface Bypass {
  readonly cause: BypassCause;
  /** Absent for `HostPort`. */
  readonly service?: ServiceRecord;
  /** Port of the Service, or of the host: name or number, as it is best found. Empty = all of it. */
  readonly port: string;
  /** Container ports of the app that are reached so. */
  readonly appPorts: readonly number[];
  /** Of the Service, or of the pod template. */
  readonly field: string;
  /** What to do, in one clause. */
  readonly advice: string;
}

/** Ways around the sidecar of one pod, through the Services that select it and its own host ports. */
export function bypassesOf(pod: PodRecord, services: readonly ServiceRecord[]): readonly Bypass[] {
  const { injection } = pod;
  if (injection?.mode !== 'takeover') return [];
  const context = { pod, taken: injection.ports };
  return [...services.flatMap((service) => ofService(service, context)), ...ofHost(context)];
}

interface Context {
  readonly pod: PodRecord;
  readonly taken: readonly TakenPort[];
}

function ofService(service: ServiceRecord, context: Context): readonly Bypass[] {
  if (service.isHeadless) return [headless(service, context)];
  return service.ports.flatMap((port, index) => ofPort(service, { ...context, port, index }));
}

function headless(service: ServiceRecord, { taken }: Context): Bypass {
  return {
    cause: 'Headless',
    service,
    port: '',
    appPorts: taken.map(({ port }) => port),
    field: 'spec.clusterIP',
    advice:
      'a headless Service gives clients the addresses of pods, and they choose the port themselves: annotate the pods with weir.dev/mode: redirect, or give clients a Service with an address',
  };
}

interface PortContext extends Context {
  readonly port: ServicePort;
  readonly index: number;
}

function ofPort(service: ServiceRecord, context: PortContext): readonly Bypass[] {
  const { pod, taken, port, index } = context;
  const target = port.targetPort ?? port.port;
  const reached = typeof target === 'number' ? target : numberOf(target, pod);
  if (reached === undefined) return [];
  const found = { service, port: port.name ?? String(port.port), appPorts: [reached] };
  const field = `spec.ports[${String(index)}].targetPort`;
  const hit = taken.find((one) => one.port === reached);
  if (hit !== undefined) {
    return [{ ...found, cause: causeOf(port), field, advice: namedAdvice(hit) }];
  }
  if (!isUnnamedAndLeftOut(reached, pod)) return [];
  const advice = `give container port ${String(reached)} a name in the pod template, and write that name`;
  return [{ ...found, cause: 'UnnamedPort', field, advice }];
}

function causeOf({ targetPort }: ServicePort): BypassCause {
  if (targetPort === undefined) return 'NoTargetPort';
  return typeof targetPort === 'number' ? 'NumericTargetPort' : 'RenamedTargetPort';
}

function namedAdvice({ name }: TakenPort): string {
  return name === undefined
    ? 'name the container port, and write that name'
    : `write targetPort: ${name}`;
}

// As the endpoints controller resolves it: the first container port of that name.
function numberOf(name: string, { ports }: PodRecord): number | undefined {
  return ports.find((port) => port.name === name)?.number;
}

// A port with a name that was not taken is not HTTP, or was left out on purpose.
function isUnnamedAndLeftOut(number: number, pod: PodRecord): boolean {
  if (pod.hasChosenPorts) return false;
  const declared = pod.ports.filter((port) => port.number === number);
  return declared.length > 0 && declared.every(({ name }) => name === undefined);
}

function ofHost({ pod, taken }: Context): readonly Bypass[] {
  return pod.ports
    .filter(({ number, hostPort }) => hostPort !== undefined && isTaken(number, taken))
    .map(({ container, number, hostPort }) => ({
      cause: 'HostPort',
      port: String(hostPort),
      appPorts: [number],
      field: `hostPort of container ${container}`,
      advice: 'remove hostPort, or annotate the pods with weir.dev/mode: redirect',
    }));
}

function isTaken(number: number, taken: readonly TakenPort[]): boolean {
  return taken.some(({ port }) => port === number);
}
