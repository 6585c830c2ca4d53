// What parent and workers tell each other over the channel between them. Plain data; a connection travels beside a
// message as its handle.
import type { Bundle } from '../../contract/bundle.ts';
import type { PolicyRefusal } from '../../contract/stream.ts';
import type { MetricDump } from '../admin/metric.ts';
import type { Reply } from '../limiter/token-bucket.ts';
import type { PushedConfig, SidecarReport } from '../policy/pushed-config.ts';
import type { FailureKind } from '../store/store.ts';
import type { CertificateTexts } from '../tls/certificate-files.ts';

/** Set in a worker's environment: the same command line, the other role. */
export const WORKER_VARIABLE = 'WEIR_WORKER';

/** What was in force in the workers so far; nothing at the first start. */
export interface Inherited {
  readonly files?: Bundle | undefined;
  readonly pushed?: PushedConfig | undefined;
  readonly certificate?: CertificateTexts | undefined;
}

export type ToWorker =
  /** The first message. */
  | { readonly kind: 'start'; readonly inherited: Inherited }
  /** Put it into force, and answer with `applied`. */
  | { readonly kind: 'config'; readonly id: number; readonly config: PushedConfig }
  /** The handle beside it is an accepted connection of the n-th --listen. */
  | { readonly kind: 'connection'; readonly id: number; readonly route: number }
  | { readonly kind: 'drain' }
  /** Finish what is in flight within `graceMs`, then end. */
  | { readonly kind: 'stop'; readonly graceMs: number }
  | { readonly kind: 'ask'; readonly id: number; readonly what: 'metrics' | 'describe' }
  | { readonly kind: 'decided'; readonly id: number; readonly reply: Reply }
  | {
      readonly kind: 'undecided';
      readonly id: number;
      readonly failure: FailureKind;
      readonly detail: string;
    };

export type FromWorker =
  | { readonly kind: 'ready' }
  /** These policies are in force from now on. */
  | { readonly kind: 'in-force'; readonly bundle: Bundle }
  /** This certificate is served from now on. */
  | { readonly kind: 'certificate'; readonly texts: CertificateTexts }
  /** The `config` of that id is in force here, or these policies of it do not compile. */
  | {
      readonly kind: 'applied';
      readonly id: number;
      readonly refusals: readonly PolicyRefusal[];
    }
  | { readonly kind: 'report'; readonly report: SidecarReport }
  /** A connection is this worker's now; until then its parent could give it to another. */
  | { readonly kind: 'took'; readonly id: number }
  /** Why the worker cannot start: at the first start the parent gives up with the same words, later it logs them. */
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly details: Readonly<Record<string, unknown>>;
      readonly cause: string | undefined;
    }
  | { readonly kind: 'metrics'; readonly id: number; readonly metrics: readonly MetricDump[] }
  | { readonly kind: 'description'; readonly id: number; readonly description: unknown }
  /** A batch for a store of the parent: limits as their stored text. */
  | {
      readonly kind: 'decide';
      readonly id: number;
      readonly store: StoreName;
      readonly keys: readonly string[];
      readonly limits: readonly string[];
      readonly operations: readonly number[];
    };

/** `shared`: the embedded store; `pod`: the levels of `scope: Pod`, which all workers of a pod share. */
export type StoreName = 'shared' | 'pod';
