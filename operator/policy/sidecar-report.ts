// What a sidecar said about itself last, as the stream heard it here or on another replica. The registry of the
// stream server holds more; this is what the status of a policy is made from.
import type { PolicyRefusal } from '../../contract/stream.ts';

export interface SidecarReport {
  /** Generation in force, by policy uid. */
  readonly generations: ReadonlyMap<string, number>;
  readonly refusals: readonly PolicyRefusal[];
  /** Policies that were not sent, since this sidecar does not know what they use. */
  readonly tooOld: readonly {
    readonly uid: string;
    readonly generation: number;
    readonly features: readonly string[];
  }[];
  /** Undefined = nothing was asked of the store yet. */
  readonly store: 'up' | 'down' | undefined;
  /** Rules, as `<namespace>/<policy>/<rule>`. */
  readonly clientIpIsProxy: readonly string[];
}

/** By pod uid; undefined = never heard of, or long ago. */
export type ReportLookup = (podUid: string) => SidecarReport | undefined;
