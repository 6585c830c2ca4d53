// What sidecars said about themselves last, as the stream heard it here or on another replica.
import type { ConfigOrigin, PolicyRefusal } from '../../contract/stream.ts';

export interface SidecarReport {
  /** False = the last word of one that went away moments ago. */
  readonly isConnected: boolean;
  /** Of the bundle in force. */
  readonly version: string;
  /** Generation in force, by policy uid. */
  readonly generations: ReadonlyMap<string, number>;
  readonly refusals: readonly PolicyRefusal[];
  /** Uids of policies that were not sent, since this sidecar cannot run them. */
  readonly tooOldFor: readonly string[];
  readonly origin: ConfigOrigin;
  /** Absent = nothing was asked of the store yet. */
  readonly store?: 'up' | 'down';
  /** As `<namespace>/<policy>/<rule>`. */
  readonly clientIpIsProxy: readonly string[];
  /** Of the product. */
  readonly sidecarVersion: string;
}

/** By pod uid; undefined = never heard of, or long ago. */
export type ReportLookup = (podUid: string) => SidecarReport | undefined;
