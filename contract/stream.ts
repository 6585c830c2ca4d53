// The frames between operator and sidecar: one HTTP/2 stream per sidecar (`POST STREAM_PATH`, bearer token in
// `authorization`), newline-delimited JSON both ways. Unknown fields are ignored; a frame of an unknown type is
// answered with a `nack` of code `UnknownFrame` and nothing else happens, so that either side may be the newer one.
import type { CompiledPolicy } from './bundle.ts';

export const STREAM_PATH = '/stream/v1alpha1';
export const STREAM_PROTOCOL = 1;
/** UTF-8 bytes of one line, its newline included. A bundle that is larger goes in parts. */
export const FRAME_BYTES_MAX = 1_048_576;
/** Policies of one push, over all its parts: as many as an operator is built to hold. */
export const PUSHED_POLICIES_MAX = 512;
/** UTF-8 bytes of one push, over all its parts: 64 policies of the largest size; a sidecar has 256 MiB. */
export const PUSH_BYTES_MAX = 16_777_216;
/** Characters of a message in a frame. */
export const MESSAGE_MAX = 512;

/** Where the configuration in force came from. */
export type ConfigOrigin = 'stream' | 'cache' | 'seed' | 'file' | 'none';

/** What a version was made from: never lower for a `uid` than a sidecar has seen. */
export interface SourceGeneration {
  readonly uid: string;
  readonly generation: number;
}

/** Sidecar → operator, first frame. Nothing in it is believed but `sidecar` and `have`: identity is the token's. */
export interface HelloFrame {
  readonly type: 'hello';
  readonly protocol: number;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly sidecar: {
    readonly version: string;
    /** Bundle formats it can run (`BUNDLE_FORMAT`). */
    readonly formats: readonly number[];
    /** What policies it understands may use (features.ts); absent = every feature of its formats. */
    readonly features?: readonly string[];
  };
  readonly have: {
    /** Empty = none. */
    readonly version: string;
    readonly sources: readonly SourceGeneration[];
    readonly origin: ConfigOrigin;
  };
}

/** How a sidecar reaches the store, and what the operator decides beside policies. Holds credentials: never logged. */
export interface SidecarSettings {
  /** Absent = the operator has no store: failure modes decide, and the status of every policy says so. */
  readonly store?: {
    readonly url: string;
    readonly partitions?: number;
    /** PEM texts. */
    readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  };
  /** How long one decision may wait for the store, in ms; absent = the sidecar's own setting. */
  readonly deadlineMs?: number;
}

/** Operator → sidecar: the whole bundle. Answered with `ack` or `nack`. */
export interface ConfigFrame {
  readonly type: 'config';
  /** Rises by at least 1 within a stream. Frames of an older nonce are ignored. */
  readonly nonce: number;
  readonly version: string;
  /** The sidecar's `have.version` is this one: `policies` is empty and what it has stays. */
  readonly unchanged?: true;
  readonly policies: readonly CompiledPolicy[];
  /**
   * Policies (`uid`) that exist but cannot be compiled now, and of which this operator knows no good version: the
   * sidecar keeps what it has of them, or has nothing. Absent = none. `version` covers them.
   */
  readonly held?: readonly string[];
  readonly settings: SidecarSettings;
  /** PEM bundle to trust from the next connection on. */
  readonly ca?: string;
  /** ISO 8601. */
  readonly issuedAt: string;
  /**
   * Some generations are lower than the sidecar has seen, and that is meant: the cluster's own state went back (a
   * restored backup). Without it a lower generation is never sent.
   */
  readonly regressed?: true;
  /** More policies follow in `part` frames of the same nonce; nothing is in force before the last one. */
  readonly more?: true;
}

/** Operator → sidecar: goes on with a `config` or `delta` that was too large for one frame. */
export interface PartFrame {
  readonly type: 'part';
  readonly nonce: number;
  readonly policies: readonly CompiledPolicy[];
  readonly more?: true;
}

/** Operator → sidecar: the difference to `base`, only when `base` is the last version this sidecar acknowledged. */
export interface DeltaFrame {
  readonly type: 'delta';
  readonly nonce: number;
  readonly base: string;
  readonly version: string;
  readonly upsert: readonly CompiledPolicy[];
  readonly remove: readonly string[];
  /** As in `config`, the whole list; a policy that is held is never in `remove`. */
  readonly held?: readonly string[];
  readonly issuedAt: string;
  readonly more?: true;
}

/** Sidecar → operator: the version of `nonce` is in force in every worker. */
export interface AckFrame {
  readonly type: 'ack';
  readonly nonce: number;
  readonly version: string;
}

/** Why one policy was not taken. */
export interface PolicyRefusal {
  readonly uid: string;
  readonly generation: number;
  /** Field path in the policy, empty = the policy as a whole. */
  readonly path: string;
  readonly code: 'Invalid' | 'Unsupported' | 'Internal';
  /** At most 512 characters. */
  readonly message: string;
}

/** Sidecar → operator: some policies were not taken; the others are in force, of those the last good version is. */
export interface NackFrame {
  readonly type: 'nack';
  readonly nonce: number;
  /** What is in force. */
  readonly version: string;
  readonly code: 'Policies' | 'UnknownFrame' | 'BadFrame' | 'UnknownBase';
  readonly refusals: readonly PolicyRefusal[];
}

/** Sidecar → operator, every 30 s and on change. */
export interface StateFrame {
  readonly type: 'state';
  /** What is in force. */
  readonly version: string;
  readonly origin: ConfigOrigin;
  /** `up` = the last answer came in time; `none` = it was given no store; absent = nothing was asked yet. */
  readonly store?: 'up' | 'down' | 'none';
  /** Why the store settings that came last are not in use, without credentials; at most 512 characters. */
  readonly storeProblem?: string;
  /** Rules that key on the address of a proxy, as `<namespace>/<policy>/<rule>`. */
  readonly clientIpIsProxy: readonly string[];
}

/** Operator → sidecar, last frame: reconnect after `retryAfterMs`. */
export interface ByeFrame {
  readonly type: 'bye';
  readonly reason:
    | 'Shutdown'
    | 'Rebalance'
    | 'TokenExpiring'
    | 'Replaced'
    | 'Moved'
    | 'Unauthorized'
    | 'TooSlow'
    | 'Protocol';
  readonly retryAfterMs: number;
}

export type SidecarFrame = HelloFrame | AckFrame | NackFrame | StateFrame;
export type OperatorFrame = ConfigFrame | PartFrame | DeltaFrame | ByeFrame;
