// Which ports of the app the sidecar stands before, and the numbers and names it takes for that. A clash of numbers
// would make one of two containers fail to listen, and a clash of names would send a Service to the wrong one.
import { ports as firstPorts } from '../../contract/names.ts';
import { allContainers, isTcp, runningContainers } from './pod.ts';
import { PORTS_MAX } from './pod-settings.ts';
import type { Container, ContainerPort, PodSpec } from './pod.ts';
import type { PodSettings, PortChoice } from './pod-settings.ts';
import { refused } from './injection-outcome.ts';
import type { Refused } from './injection-outcome.ts';
import type { TakenPort } from './injection-status.ts';

/** A port of the app that was chosen. */
export interface ChosenPort {
  readonly container: string;
  readonly name?: string;
  readonly port: number;
}

export type ChosenPorts =
  { readonly kind: 'chosen'; readonly ports: readonly ChosenPort[] } | Refused;

/** The ports that the pod's author named, else those whose name says HTTP, else the only TCP port. */
export function choosePorts(spec: PodSpec, { ports: choices }: PodSettings): ChosenPorts {
  const all = runningContainers(spec).flatMap((one) => declaredPorts(one));
  const tcp = all.filter(({ declared }) => isTcp(declared)).map(({ chosen }) => chosen);
  if (choices !== undefined) return chosenByName(tcp, spec, choices);
  if (tcp.length === 0) return refused('NoPort', withoutTcp(all.length));
  const http = tcp.filter(({ name = '' }) => /^(http|http-.*|h2c|grpc.*)$/.test(name));
  const found = http.length > 0 ? http : tcp;
  if (http.length === 0 && tcp.length > 1) return refused('AmbiguousPort', whichOf(tcp));
  if (found.length > PORTS_MAX) return refused('TooManyPorts', tooMany(found.length));
  return { kind: 'chosen', ports: found };
}

function declaredPorts({
  name: container,
  ports = [],
}: Container): { readonly declared: ContainerPort; readonly chosen: ChosenPort }[] {
  return ports.map((declared) => {
    const { name, containerPort: port } = declared;
    const named = name === undefined || name === '' ? {} : { name };
    return { declared, chosen: { container, ...named, port } };
  });
}

function withoutTcp(others: number): string {
  const what =
    others === 0 ? 'no container port is declared' : 'only UDP or SCTP ports are declared';
  return `${what}: declare the TCP port that serves HTTP under containers[].ports, with a name such as http`;
}

function whichOf(tcp: readonly ChosenPort[]): string {
  const listed = tcp.slice(0, 8).map(({ name, port }) => name ?? String(port));
  return `no port is named http, http-…, h2c or grpc…, and there are several: say which in weir.dev/ports (there are ${listed.join(', ')})`;
}

function tooMany(count: number): string {
  return `${count} ports look like HTTP, ${PORTS_MAX} at most can be taken: name them in weir.dev/ports`;
}

function chosenByName(
  tcp: readonly ChosenPort[],
  spec: PodSpec,
  choices: readonly PortChoice[],
): ChosenPorts {
  const ports: ChosenPort[] = [];
  for (const choice of choices) {
    const found = tcp.filter(({ name, port }) => name === choice || port === choice);
    // Declaring a port is only information to Kubernetes: a number may serve without being declared.
    if (found.length === 0 && typeof choice === 'number') found.push(undeclared(spec, choice));
    if (found.length === 0) return refused('NoPort', noSuchPort(choice, tcp));
    ports.push(...found.filter((one) => !ports.includes(one)));
  }
  return ports.length > PORTS_MAX
    ? refused('TooManyPorts', tooMany(ports.length))
    : { kind: 'chosen', ports };
}

function undeclared({ containers }: PodSpec, port: number): ChosenPort {
  return { container: containers[0]?.name ?? '', port };
}

function noSuchPort(choice: PortChoice, tcp: readonly ChosenPort[]): string {
  const listed = tcp.map(({ name, port }) => name ?? String(port)).slice(0, 8);
  const there = listed.length === 0 ? 'none' : listed.join(', ');
  return `metadata.annotations[weir.dev/ports] names ${choice}, which is no TCP container port of this pod (there are ${there})`;
}

/** Why these ports cannot be taken over by name; undefined = they can. */
export function whyNotTakeover(spec: PodSpec, chosen: readonly ChosenPort[]): Refused | undefined {
  const names = runningContainers(spec).flatMap(({ ports = [] }) => ports.map(({ name }) => name));
  for (const { name, port, container } of chosen) {
    if (name === undefined) {
      return refused(
        'UnnamedPort',
        `port ${port} of container ${container} has no name, and takeover moves a name: name it (name: http) and let the Service use targetPort: http, or set weir.dev/mode: redirect`,
      );
    }
    if (names.filter((one) => one === name).length > 1) {
      return refused(
        'AmbiguousPort',
        `the port name ${name} is there more than once in this pod: give each port its own name`,
      );
    }
  }
  return undefined;
}

/** Numbers that nothing in the pod uses, and nothing on the node is asked for. */
export class FreePorts {
  readonly #used: Set<number>;

  constructor(spec: PodSpec, chosen: readonly ChosenPort[]) {
    const declared = allContainers(spec).flatMap(({ ports = [] }) =>
      ports.flatMap(({ containerPort, hostPort = 0 }) => [containerPort, hostPort]),
    );
    this.#used = new Set([...declared, ...chosen.map(({ port }) => port)]);
  }

  /** The first free number from `first` on. */
  take(first: number): number {
    let port = first;
    while (this.#used.has(port)) port += 1;
    this.#used.add(port);
    return port;
  }
}

/** Gives each chosen port a listener of the sidecar; in takeover mode the name moves there, and the app's is renamed. */
export function takePorts(
  spec: PodSpec,
  chosen: readonly ChosenPort[],
  { free, mode }: { readonly free: FreePorts; readonly mode: 'takeover' | 'redirect' },
): readonly TakenPort[] {
  const names = new Set(
    allContainers(spec).flatMap(({ ports = [] }) => ports.map(({ name = '' }) => name)),
  );
  const listeners = new Map<number, number>();
  return chosen.map((one) => {
    // A redirect rule knows a number once, whoever declares it.
    const known = mode === 'redirect' ? listeners.get(one.port) : undefined;
    const listen = known ?? free.take(firstPorts.firstListen);
    listeners.set(one.port, listen);
    if (mode === 'redirect' || one.name === undefined) return { ...one, listen };
    return { ...one, listen, renamed: freeName(one.name, names) };
  });
}

/** Of a port's name, by Kubernetes. */
export const PORT_NAME_MAX = 15;

function freeName(name: string, names: Set<string>): string {
  let candidate = renamedTo(name, '');
  for (let attempt = 2; names.has(candidate); attempt += 1) {
    candidate = renamedTo(name, `-${attempt}`);
  }
  names.add(candidate);
  return candidate;
}

function renamedTo(name: string, suffix: string): string {
  const room = PORT_NAME_MAX - 'app-'.length - suffix.length;
  // No name may end in a dash or hold two in a row.
  return `app-${name.slice(0, room).replace(/-+$/, '')}${suffix}`;
}
