// Replicas tell each other what their sidecars run: each writes a ConfigMap of its own, all read those of the others.
// A ConfigMap is owned by the replica's pod and goes with it. What is heard here beats what is read, and a sidecar
// that is connected somewhere beats what another replica remembers of it.
import type { Clock } from '../clock.ts';
import type { KubeApi } from '../kube/api.ts';
import type { KubeObject, OwnerReference, Resource } from '../kube/object.ts';
import { decodeAckSummary, encodeAckSummary, type ReportEntry } from '../policy/ack-summary.ts';
import type { SidecarReport } from '../policy/sidecar-report.ts';

export const configMapResource: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};

/** Label of these ConfigMaps, to be watched by; the value is the replica that wrote it. */
export const ACKS_LABEL = 'weir.dev/acks-of';
const DATA_KEY = 'acks';
/** One write wakes every replica; a status is written no faster either. */
export const PUBLISH_INTERVAL_MS = 5_000;

export interface AcksObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** What is known of a sidecar here. */
export interface LocalReport extends SidecarReport {
  readonly connected: boolean;
}

export interface AckExchangeOptions {
  readonly api: Pick<KubeApi, 'apply'>;
  readonly clock: Clock;
  /** The operator's own. */
  readonly namespace: string;
  /** Of this replica: its pod. */
  readonly replica: string;
  /** The pod itself, so that the ConfigMap goes with it; undefined outside of a cluster. */
  readonly owner: OwnerReference | undefined;
  readonly localOf: (podUid: string) => LocalReport | undefined;
  readonly connected: () => Iterable<ReportEntry>;
  /** Another replica says something else of these pods now. */
  readonly onChange: (podUids: ReadonlySet<string>) => void;
}

export class AckExchange {
  readonly #options: AckExchangeOptions;
  readonly #others = new Map<string, ReadonlyMap<string, SidecarReport>>();
  #published: string | undefined;
  #publishedMs = -Infinity;

  constructor(options: AckExchangeOptions) {
    this.#options = options;
  }

  /** The best that any replica knows. */
  reportOf(podUid: string): SidecarReport | undefined {
    const local = this.#options.localOf(podUid);
    if (local?.connected === true) return local;
    return this.#elsewhere(podUid) ?? local;
  }

  /** A ConfigMap of the label, as the watch gives it; undefined = it is gone. */
  apply(key: string, object: AcksObject | undefined): void {
    const { replica, onChange } = this.#options;
    if (object?.metadata.labels?.[ACKS_LABEL] === replica) return;
    const before = this.#others.get(key) ?? NOTHING;
    const after = reportsIn(object);
    if (after.size === 0) this.#others.delete(key);
    else this.#others.set(key, after);
    const pods = new Set([...before.keys(), ...after.keys()]);
    if (pods.size > 0) onChange(pods);
  }

  /** Writes what changed; answers when to ask again, undefined = after the next change. */
  async publish(signal: AbortSignal): Promise<{ readonly requeueAfterMs: number } | undefined> {
    const { clock } = this.#options;
    const text = encodeAckSummary(this.#options.connected());
    if (text === this.#published) return undefined;
    const waitMs = this.#publishedMs + PUBLISH_INTERVAL_MS - clock.nowMs();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#options.api.apply(configMapResource, this.#object(text), { signal });
    this.#published = text;
    this.#publishedMs = clock.nowMs();
    return undefined;
  }

  #elsewhere(podUid: string): SidecarReport | undefined {
    for (const reports of this.#others.values()) {
      const report = reports.get(podUid);
      if (report !== undefined) return report;
    }
    return undefined;
  }

  #object(text: string): AcksObject {
    const { namespace, replica, owner } = this.#options;
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        namespace,
        name: `weir-acks-${replica}`,
        labels: { [ACKS_LABEL]: replica },
        ...(owner === undefined ? {} : { ownerReferences: [owner] }),
      },
      data: { [DATA_KEY]: text },
    };
  }
}

const NOTHING: ReadonlyMap<string, SidecarReport> = new Map();

function reportsIn(object: AcksObject | undefined): ReadonlyMap<string, SidecarReport> {
  const text = object?.data?.[DATA_KEY];
  return (text === undefined ? undefined : decodeAckSummary(text)) ?? NOTHING;
}
