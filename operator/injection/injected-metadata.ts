// Labels and annotations of an injected pod.
import { createHash } from 'node:crypto';
import { annotations as known, injected, inPod } from '../../contract/names.ts';
import type { Seed } from './injection-config.ts';
import type { Note } from './injection-outcome.ts';
import type { InjectionStatus } from './injection-status.ts';
import type { Pod, PodMetadata } from './pod.ts';
import { ANNOTATIONS_BYTES_MAX, annotationBytes } from './pod-check.ts';

const SAFE_TO_EVICT = 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes';
const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container';

/** Left free beside a seed for what others may still write on the pod. */
const ANNOTATIONS_SPARE_BYTES = 8_192;

export interface MetadataPlan {
  readonly metadata: PodMetadata;
  readonly status: InjectionStatus;
  readonly seed: Seed | undefined;
  /** The container that kubectl means when none is named: an ordinary sidecar comes first and must not be it. */
  readonly appContainer: string | undefined;
}

export function injectedMetadata(plan: MetadataPlan): {
  readonly metadata: PodMetadata;
  readonly notes: readonly Note[];
} {
  const { metadata, status, appContainer } = plan;
  const own = withoutOurs(metadata.annotations ?? {});
  const annotations = {
    ...own,
    [injected.status]: JSON.stringify(status),
    [SAFE_TO_EVICT]: withVolume(own[SAFE_TO_EVICT]),
    ...(appContainer === undefined || status.native || own[DEFAULT_CONTAINER] !== undefined
      ? {}
      : { [DEFAULT_CONTAINER]: appContainer }),
  };
  const seeded = seedAnnotations(plan.seed, annotations);
  return {
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, [injected.label]: 'true' },
      annotations: { ...annotations, ...seeded.annotations },
    },
    notes: [...seeded.notes, ...unknownAnnotations(own)],
  };
}

// What a template copied from a running pod says of that pod.
function withoutOurs(
  annotations: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const ours: readonly string[] = [injected.status, injected.seed, injected.seedOmitted];
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !ours.includes(name)));
}

function withVolume(written = ''): string {
  const volumes = written.split(',').map((one) => one.trim());
  return [...new Set([...volumes.filter((one) => one !== ''), inPod.cacheVolume])].join(',');
}

interface SeedAnnotations {
  readonly annotations: Readonly<Record<string, string>>;
  readonly notes: readonly Note[];
}

function seedAnnotations(
  seed: Seed | undefined,
  others: Readonly<Record<string, string>>,
): SeedAnnotations {
  if (seed === undefined) return { annotations: {}, notes: [] };
  if (seed.kind === 'omitted') return withoutSeed(seed.reason);
  const bytes = annotationBytes({ ...others, [injected.seed]: seed.text });
  return bytes + ANNOTATIONS_SPARE_BYTES <= ANNOTATIONS_BYTES_MAX
    ? { annotations: { [injected.seed]: seed.text }, notes: [] }
    : withoutSeed("the pod's other annotations leave no room for it");
}

function withoutSeed(reason: string): SeedAnnotations {
  const message = `the pod starts without rules while the operator is away, because no seed could be added: ${reason}`;
  return {
    annotations: { [injected.seedOmitted]: reason },
    notes: [{ reason: 'SeedOmitted', message }],
  };
}

const KNOWN = new Set<string>([...Object.values(known), ...Object.values(injected)]);

// A misspelt annotation would otherwise be a default in silence.
function unknownAnnotations(own: Readonly<Record<string, string>>): readonly Note[] {
  const unknown = Object.keys(own).filter(
    (name) => name.startsWith('weir.dev/') && !KNOWN.has(name),
  );
  if (unknown.length === 0) return [];
  const listed = unknown.slice(0, 4).join(', ');
  const message = `unknown annotation ${listed}: known are ${Object.values(known).join(', ')}`;
  return [{ reason: 'UnknownAnnotation', message }];
}

/** Hash over everything that was injected, in hex. */
export function injectionHash(parts: unknown): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}

/** What names a pod before it has a name. */
export function podTitle({ metadata: { name, generateName } }: Pod): string {
  return name ?? (generateName === undefined ? 'pod' : `${generateName}…`);
}
