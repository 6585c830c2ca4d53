// The kubelet's own requests to the app: probes and lifecycle hooks. The kubelet looks a port's name up in the handler's
// own container only, and what it does not find there fails in silence: a liveness probe that never fires again.
import { isTcp, runningContainers } from './pod.ts';
import type { Container, Handler, Lifecycle, PodSpec, PortAction } from './pod.ts';
import type { MovedProbe, TakenPort } from './injection-status.ts';
import { refused } from './injection-outcome.ts';
import type { Refused } from './injection-outcome.ts';

/** Gives the port to ask instead; the same for as it was. */
type NewPort = (action: PortAction, container: Container) => number | string;

const PROBES = ['readinessProbe', 'livenessProbe', 'startupProbe'] as const;
const HOOKS = ['preStop', 'postStart'] as const;

/** Takeover: names that move to the sidecar become numbers, so that the kubelet goes on asking the app. */
export function withNumbers(container: Container, taken: readonly TakenPort[]): Container {
  const own = taken.filter((one) => one.container === container.name);
  if (own.length === 0) return container;
  return withPorts(
    container,
    ({ port }) => own.find(({ name }) => name !== undefined && name === port)?.port ?? port,
  );
}

/** Redirect: a request to a taken port would pass the sidecar and be limited; it goes to a port of its own instead. */
export function withMovedProbes(container: Container, moved: readonly MovedProbe[]): Container {
  return withPorts(container, (action, { ports }) => {
    const number = numberOf(action, ports);
    return moved.find(({ port }) => port === number)?.probe ?? action.port;
  });
}

/** The taken ports that some handler of the pod asks, each once. */
export function probedPorts(spec: PodSpec, taken: readonly TakenPort[]): readonly number[] {
  const asked = new Set(
    runningContainers(spec).flatMap((one) =>
      actionsOf(one).map((action) => numberOf(action, one.ports)),
    ),
  );
  return [...new Set(taken.map(({ port }) => port))].filter((port) => asked.has(port));
}

/** The port on the pod's own address; undefined for one elsewhere, or a name that does not resolve. */
export function numberOf(
  { port, host }: PortAction,
  ports: Container['ports'] = [],
): number | undefined {
  if (host !== undefined && host !== '') return undefined;
  if (typeof port === 'number') return port;
  const named = ports.find((one) => isTcp(one) && one.name === port)?.containerPort;
  // What is no name is read as a number by the kubelet.
  return named ?? (/^[0-9]+$/.test(port) ? Number(port) : undefined);
}

/** Handlers that ask a name which their own container does not have; empty = all are in order. */
export function unresolvedHandlers({
  name,
  ports = [],
  ...container
}: Container): readonly string[] {
  return actionsOf({ name, ...container }).flatMap(({ port }) =>
    typeof port === 'number' || /^[0-9]+$/.test(port) || ports.some((one) => one.name === port)
      ? []
      : [`a probe or lifecycle handler of container ${name} asks port ${JSON.stringify(port)}`],
  );
}

/** Undefined when each handler's name resolves. */
export function whyUnresolved(spec: PodSpec): Refused | undefined {
  const [first] = runningContainers(spec).flatMap(unresolvedHandlers);
  if (first === undefined) return undefined;
  return refused(
    'UnresolvedHandler',
    `${first}, which is no port of that container: the kubelet would fail it in silence; use a name from its ports, or a number`,
  );
}

function actionsOf(container: Container): readonly PortAction[] {
  const { preStop, postStart } = container.lifecycle ?? {};
  const handlers = [...PROBES.map((probe) => container[probe]), preStop, postStart];
  return handlers.flatMap((handler) =>
    [handler?.httpGet, handler?.tcpSocket, handler?.grpc].filter((action) => action !== undefined),
  );
}

function withPorts(container: Container, newPort: NewPort): Container {
  const renew = (handler: Handler | undefined): Handler | undefined =>
    handler === undefined ? undefined : withPort(handler, (action) => newPort(action, container));
  const probes = Object.fromEntries(
    PROBES.flatMap((probe) => changed(probe, container[probe], renew(container[probe]))),
  );
  const lifecycle = withHooks(container.lifecycle, renew);
  if (Object.keys(probes).length === 0 && lifecycle === container.lifecycle) return container;
  return { ...container, ...probes, ...(lifecycle === undefined ? {} : { lifecycle }) };
}

function withHooks(
  lifecycle: Lifecycle | undefined,
  renew: (handler: Handler | undefined) => Handler | undefined,
): Lifecycle | undefined {
  if (lifecycle === undefined) return undefined;
  const hooks = HOOKS.flatMap((hook) => changed(hook, lifecycle[hook], renew(lifecycle[hook])));
  return hooks.length === 0 ? lifecycle : { ...lifecycle, ...Object.fromEntries(hooks) };
}

function changed(
  name: string,
  before: Handler | undefined,
  after: Handler | undefined,
): readonly (readonly [string, Handler])[] {
  return after === undefined || after === before ? [] : [[name, after]];
}

function withPort(handler: Handler, newPort: (action: PortAction) => number | string): Handler {
  const { httpGet, tcpSocket, grpc } = handler;
  if (httpGet !== undefined) {
    const port = newPort(httpGet);
    return port === httpGet.port ? handler : { ...handler, httpGet: { ...httpGet, port } };
  }
  if (tcpSocket !== undefined) {
    const port = newPort(tcpSocket);
    return port === tcpSocket.port ? handler : { ...handler, tcpSocket: { ...tcpSocket, port } };
  }
  if (grpc === undefined) return handler;
  const port = newPort(grpc);
  // A gRPC probe takes numbers only, and only numbers come of a number.
  return typeof port === 'string' || port === grpc.port
    ? handler
    : { ...handler, grpc: { ...grpc, port } };
}
