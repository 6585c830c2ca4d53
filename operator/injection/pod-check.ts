// The API server's rules for what injection touches. An invalid patch refuses the pod even where we were only asked to
// try, so what breaks a rule here is never sent.
import { Buffer } from 'node:buffer';
import { allContainers, runningContainers } from './pod.ts';
import type { Container, Pod, PodSpec } from './pod.ts';
import { isLarger } from './quantity.ts';
import { PORT_NAME_MAX } from './taken-ports.ts';
import { unresolvedHandlers } from './handlers.ts';

/** Of the API server: all annotations of an object together, names and values. */
export const ANNOTATIONS_BYTES_MAX = 262_144;

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const PORT_NAME = /^(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Every rule that a pod breaks, in words; empty = none. */
export function brokenRules({ metadata, spec }: Pod): readonly string[] {
  const containers = allContainers(spec);
  return [
    ...repeated(containers.map(({ name }) => `container ${name}`)),
    ...repeated((spec.volumes ?? []).map(({ name }) => `volume ${name}`)),
    ...clashes(runningContainers(spec)),
    ...containers.flatMap((one) => containerRules(one, spec)),
    ...(annotationBytes(metadata.annotations ?? {}) > ANNOTATIONS_BYTES_MAX
      ? [`the annotations take more than ${ANNOTATIONS_BYTES_MAX} bytes`]
      : []),
  ];
}

export function annotationBytes(annotations: Readonly<Record<string, string>>): number {
  return Object.entries(annotations).reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
}

function repeated(names: readonly string[]): readonly string[] {
  const twice = names.filter((name, index) => names.indexOf(name) < index);
  return [...new Set(twice)].map((name) => `${name} is there twice`);
}

/** Containers of a pod share one network: a port can be listened on once. */
function clashes(containers: readonly Container[]): readonly string[] {
  const ports = containers.flatMap(({ ports: own = [] }) =>
    own.map(({ containerPort, protocol = 'TCP' }) => `port ${containerPort}/${protocol}`),
  );
  return repeated(ports);
}

function containerRules(container: Container, spec: PodSpec): readonly string[] {
  const { name, volumeMounts = [], resources } = container;
  const volumes = new Set((spec.volumes ?? []).map((volume) => volume.name));
  const rules = [
    ...(DNS_LABEL.test(name) ? [] : [`container name ${JSON.stringify(name)} is not a DNS label`]),
    ...portRules(container),
    ...repeated(volumeMounts.map(({ mountPath }) => `mount path ${mountPath} of ${name}`)),
    ...volumeMounts
      .filter((mount) => !volumes.has(mount.name))
      .map((mount) => `container ${name} mounts volume ${mount.name}, which is not there`),
    ...unresolvedHandlers(container),
  ];
  const { requests = {}, limits = {} } = resources ?? {};
  const over = Object.entries(requests).filter(
    ([what, amount]) => limits[what] !== undefined && isLarger(amount, limits[what]),
  );
  return [
    ...rules,
    ...over.map(([what]) => `container ${name} requests more ${what} than its limit`),
  ];
}

function portRules({ name: container, ports = [] }: Container): readonly string[] {
  const names = ports.flatMap(({ name = '' }) => (name === '' ? [] : [name]));
  return [
    ...repeated(names.map((name) => `port name ${name} of container ${container}`)),
    ...names.filter((name) => !isPortName(name)).map((name) => `port name ${name} is not valid`),
    ...ports
      .filter(({ containerPort }) => containerPort < 1 || containerPort > 65_535)
      .map(({ containerPort }) => `port ${containerPort} is not from 1 to 65535`),
  ];
}

function isPortName(name: string): boolean {
  return name.length <= PORT_NAME_MAX && PORT_NAME.test(name) && /[a-z]/.test(name);
}
