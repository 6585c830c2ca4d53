// The pods in a manifest: pods themselves, and the templates of what makes pods. And what else in it says something
// about them: Services, and the labels of Namespaces.
import type { SelectingService } from '../operator/injection/injection-config.ts';

export interface Workload {
  /** As a person would name it: `Deployment/api`. */
  readonly name: string;
  readonly namespace: string;
  /** Where the pod or its template is in the document. */
  readonly path: readonly (string | number)[];
  readonly pod: PodTemplate;
}

export interface PodTemplate {
  readonly metadata: unknown;
  readonly spec: unknown;
}

interface Labelled {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, unknown>>;
}

const TEMPLATE: Readonly<Record<string, readonly string[]>> = {
  Pod: [],
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
};

/** Lists may hold lists; nobody writes them deeper. */
const DEPTH_MAX = 8;

/** Every object of a document, with where it is; the items of a List one by one. */
function objectsOf(
  value: unknown,
  path: readonly (string | number)[] = [],
): readonly { readonly object: unknown; readonly path: readonly (string | number)[] }[] {
  const items = field(value, 'items');
  const isList = textOf(field(value, 'kind')).endsWith('List');
  if (!isList || !Array.isArray(items) || path.length > 2 * DEPTH_MAX)
    return [{ object: value, path }];
  return items.flatMap((item: unknown, index) => objectsOf(item, [...path, 'items', index]));
}

export function workloadsOf(value: unknown, fallback: string): readonly Workload[] {
  return objectsOf(value).flatMap(({ object, path }) => {
    const kind = textOf(field(object, 'kind'));
    const inside = TEMPLATE[kind];
    if (inside === undefined) return [];
    const template = at(object, inside);
    const spec = field(template, 'spec');
    if (spec === undefined) return [];
    const name = at(object, ['metadata', 'name']) ?? at(object, ['metadata', 'generateName']);
    return [
      {
        name: `${kind}/${textOf(name)}`,
        namespace: namespaceOf(object, fallback),
        path: [...path, ...inside],
        pod: { metadata: field(template, 'metadata') ?? {}, spec },
      },
    ];
  });
}

/** Services that would select pods with these labels. */
export function servicesFor(
  values: readonly unknown[],
  pod: Labelled,
  fallback: string,
): readonly SelectingService[] {
  return values
    .flatMap((value) => objectsOf(value))
    .filter(({ object }) => field(object, 'kind') === 'Service')
    .filter(({ object }) => namespaceOf(object, fallback) === pod.namespace)
    .filter(({ object }) => selects(at(object, ['spec', 'selector']), pod.labels))
    .map(({ object }) => serviceOf(object));
}

/** Labels of the namespace, when it is in the manifest as well. */
export function namespaceLabels(
  values: readonly unknown[],
  name: string,
): Readonly<Record<string, string>> {
  const found = values
    .flatMap((value) => objectsOf(value))
    .find(
      ({ object }) =>
        field(object, 'kind') === 'Namespace' && at(object, ['metadata', 'name']) === name,
    );
  const labels = at(found?.object, ['metadata', 'labels']);
  return Object.fromEntries(entriesOf(labels).map(([key, value]) => [key, String(value)]));
}

export function labelsOf({ metadata }: PodTemplate): Readonly<Record<string, unknown>> {
  return Object.fromEntries(entriesOf(field(metadata, 'labels')));
}

function selects(selector: unknown, labels: Readonly<Record<string, unknown>>): boolean {
  const wanted = entriesOf(selector);
  return wanted.length > 0 && wanted.every(([name, value]) => labels[name] === value);
}

function serviceOf(object: unknown): SelectingService {
  const ports = at(object, ['spec', 'ports']);
  const list: readonly unknown[] = Array.isArray(ports) ? ports : [];
  return {
    name: textOf(at(object, ['metadata', 'name'])),
    isHeadless: at(object, ['spec', 'clusterIP']) === 'None',
    ports: list
      .filter((port) => (field(port, 'protocol') ?? 'TCP') === 'TCP')
      .map((port) => {
        const target = field(port, 'targetPort');
        const isTarget = typeof target === 'number' || typeof target === 'string';
        return { port: Number(field(port, 'port')), ...(isTarget ? { targetPort: target } : {}) };
      }),
  };
}

function namespaceOf(object: unknown, fallback: string): string {
  const written = at(object, ['metadata', 'namespace']);
  return typeof written === 'string' && written !== '' ? written : fallback;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce(field, value);
}

function field(value: unknown, name: string): unknown {
  const found = entriesOf(value).find(([key]) => key === name)?.[1];
  return found === null ? undefined : found;
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value)
    : [];
}
