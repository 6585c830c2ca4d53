// Probes that the sidecar does for the kubelet (`weir.dev/probes: sidecar`): of each probe that asks a taken port, the
// check goes to the sidecar, and the kubelet asks the sidecar for it. Hooks are not checks and stay with the kubelet.
import {
  APP_PROBE_TIMEOUT_SECONDS_MAX,
  APP_PROBES_LENGTH_MAX,
  APP_PROBES_MAX,
  appHealthPath,
  encodeAppProbes,
} from '../../contract/app-probe.ts';
import type { AppCheck, AppProbe, AppProbeKind } from '../../contract/app-probe.ts';
import { annotations } from '../../contract/names.ts';
import { numberOf } from './handlers.ts';
import { refused } from './injection-outcome.ts';
import type { Refused } from './injection-outcome.ts';
import { runningContainers } from './pod.ts';
import type { Container, HttpAction, PodSpec, Probe } from './pod.ts';

type ProbeField = 'livenessProbe' | 'readinessProbe' | 'startupProbe';

const KINDS: Readonly<Record<ProbeField, AppProbeKind>> = {
  livenessProbe: 'livez',
  readinessProbe: 'readyz',
  startupProbe: 'startupz',
};
const FIELDS: readonly ProbeField[] = ['livenessProbe', 'readinessProbe', 'startupProbe'];

/** Kubernetes' own default, also for what it does not allow. */
const TIMEOUT_SECONDS = 1;
/** The kubelet waits longer than the check may take: what was said in time must not be lost on the way. */
const ANSWER_SECONDS = 1;

/** The checks of the pod's containers that ask one of these ports of the app. */
export function appProbesOf(spec: PodSpec, taken: ReadonlySet<number>): readonly AppProbe[] {
  return runningContainers(spec).flatMap((container) =>
    FIELDS.flatMap((field) => probeOf(container, field, taken) ?? []),
  );
}

/** Undefined when they fit into the sidecar's environment. */
export function whyNotServed(probes: readonly AppProbe[]): Refused | undefined {
  const { length } = encodeAppProbes(probes);
  if (probes.length <= APP_PROBES_MAX && length <= APP_PROBES_LENGTH_MAX) return undefined;
  return refused(
    'InvalidAnnotation',
    `metadata.annotations[${annotations.probes}]: got sidecar for ${probes.length} probes of ${length} characters; expected ${APP_PROBES_MAX} probes and ${APP_PROBES_LENGTH_MAX} characters at most: shorten their paths and headers, or set it to kubelet`,
  );
}

/** The kubelet asks the sidecar's own port for the checks among `probes` that are of this container. */
export function withSidecarProbes(
  container: Container,
  probes: readonly AppProbe[],
  adminPort: number,
): Container {
  const changed = FIELDS.flatMap((field) => {
    const found = probes.find(
      (one) => one.container === container.name && one.probe === KINDS[field],
    );
    const before = container[field];
    if (found === undefined || before === undefined) return [];
    return [[field, askedOf(before, found, adminPort)] as const];
  });
  return changed.length === 0 ? container : { ...container, ...Object.fromEntries(changed) };
}

function askedOf(before: Probe, probe: AppProbe, port: number): Probe {
  const actions = ['httpGet', 'tcpSocket', 'grpc'];
  const rest = Object.entries(before).filter(([field]) => !actions.includes(field));
  const httpGet = { path: appHealthPath(probe), port };
  const timeoutSeconds = probe.timeoutSeconds + ANSWER_SECONDS;
  return { ...Object.fromEntries(rest), httpGet, timeoutSeconds };
}

function probeOf(
  container: Container,
  field: ProbeField,
  taken: ReadonlySet<number>,
): AppProbe | undefined {
  const probe = container[field];
  const check = probe === undefined ? undefined : checkOf(probe, container.ports);
  if (probe === undefined || check === undefined || !taken.has(check.port)) return undefined;
  const timeoutSeconds = Math.min(
    Math.max(TIMEOUT_SECONDS, probe.timeoutSeconds ?? TIMEOUT_SECONDS),
    APP_PROBE_TIMEOUT_SECONDS_MAX,
  );
  return { container: container.name, probe: KINDS[field], timeoutSeconds, check };
}

/** Undefined for one that asks nothing of this pod's ports. */
function checkOf(
  { httpGet, tcpSocket, grpc }: Probe,
  ports: Container['ports'],
): AppCheck | undefined {
  const action = httpGet ?? tcpSocket ?? grpc;
  const port = action === undefined ? undefined : numberOf(action, ports);
  if (port === undefined) return undefined;
  if (httpGet !== undefined) return { kind: 'http', port, ...fieldsOf(httpGet) };
  if (tcpSocket !== undefined) return { kind: 'tcp', port };
  return { kind: 'grpc', port, service: grpc?.service ?? '' };
}

function fieldsOf({
  path = '/',
  scheme,
  httpHeaders = [],
}: HttpAction): Omit<Extract<AppCheck, { kind: 'http' }>, 'kind' | 'port'> {
  const headers = httpHeaders.map(({ name, value }) => ({ name, value }));
  return { path, scheme: scheme === 'HTTPS' ? 'HTTPS' : 'HTTP', headers };
}
