// Writes what this replica's sidecars say into a ConfigMap of its own, for the replica that writes status. Owned by
// this replica's pod, so that it goes when the pod goes. At most one write per interval, and none without news.
import type { Clock } from '../clock.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeApi } from '../kube/api.ts';
import type { KubeObject, OwnerReference, Resource } from '../kube/object.ts';
import type { Log } from '../log.ts';
import type { SidecarRegistry } from '../stream/sidecar-registry.ts';
import { encodeReports, type PeerReport } from './report-codec.ts';
import { reportFrom } from './report-directory.ts';

export const configMapResource: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};

export interface ConfigMap extends KubeObject {
  /** Base64. */
  readonly binaryData?: Readonly<Record<string, string>>;
}

/** Label of every such ConfigMap; its value is `true`. */
export const REPORTS_LABEL = 'weir.dev/reports';
export const REPORTS_KEY = 'reports';
/** Status is debounced by as much: a fresher word would not be read. */
export const PUBLISH_EVERY_MS = 5_000;
/** A write that takes longer is tried again with what is news then. */
const WRITE_WITHIN_MS = 10_000;

export interface ReportPublisherOptions {
  readonly api: Pick<KubeApi, 'apply' | 'delete'>;
  readonly registry: SidecarRegistry;
  readonly namespace: string;
  /** Of the ConfigMap; one per replica. */
  readonly name: string;
  /** This replica's pod; absent outside of one. */
  readonly owner: OwnerReference | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export class ReportPublisher implements AsyncDisposable {
  readonly #options: ReportPublisherOptions;
  readonly #listening: Disposable;
  #timer: Disposable | undefined;
  #writing: Promise<void> = Promise.resolve();
  #written = '';
  #isStopped = false;

  constructor(options: ReportPublisherOptions) {
    this.#options = options;
    this.#listening = options.registry.onChange(() => {
      this.#later();
    });
    this.#later();
  }

  /** Takes the ConfigMap away: the sidecars are on their way to another replica. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#listening[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
    await this.#writing;
    const { api, namespace, name, log } = this.#options;
    const signal = AbortSignal.timeout(WRITE_WITHIN_MS);
    await api.delete(configMapResource, { namespace, name }, signal).catch((error: unknown) => {
      if (!isApiError(error, 404)) log.warn({ err: error }, 'reports not taken away');
    });
  }

  #later(): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#options.clock.after(PUBLISH_EVERY_MS, () => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    });
  }

  async #write(): Promise<void> {
    const { api, registry, namespace, name, owner, log } = this.#options;
    const reports = [...registry.all()].map((state): [string, PeerReport] => [
      state.podUid,
      { isConnected: state.connected, report: reportFrom(state) },
    ]);
    const text = encodeReports(new Map(reports)).toString('base64');
    if (text === this.#written || this.#isStopped) return;
    const configMap: ConfigMap = {
      metadata: {
        ...{ namespace, name, labels: { [REPORTS_LABEL]: 'true' } },
        ...(owner === undefined ? {} : { ownerReferences: [owner] }),
      },
      binaryData: { [REPORTS_KEY]: text },
    };
    try {
      await api.apply(configMapResource, configMap, {
        signal: AbortSignal.timeout(WRITE_WITHIN_MS),
      });
      this.#written = text;
    } catch (error) {
      log.warn({ err: error }, 'reports of sidecars not published; they are tried again');
      this.#later();
    }
  }
}
