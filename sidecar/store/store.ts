// The port between the limiter and where levels live. Everything that crosses it is plain data, so that a
// store can also stand behind a process boundary (the embedded store of a multi-worker sidecar).
import type { Batch, Reply } from '../limiter/token-bucket.ts';

/**
 * Why a call gave no answer.
 * - `timeout`: no reply within the deadline: executed or not, nobody knows.
 * - `down`: no connection, or it broke while the call was under way.
 * - `oom`, `readonly`, `auth`, `script`: the store refused; nothing was charged.
 * - `busy`: it says so itself: loading, failing over, blocked by a slow script; nothing was charged.
 * - `foreign`: a key holds a value that is not a bucket.
 * - `overload`: the sidecar's own queue is full; the store was not asked.
 */
export type FailureKind =
  'timeout' | 'down' | 'oom' | 'readonly' | 'auth' | 'script' | 'busy' | 'foreign' | 'overload';

export const FAILURE_KINDS: readonly FailureKind[] = [
  'timeout',
  'down',
  'oom',
  'readonly',
  'auth',
  'script',
  'busy',
  'foreign',
  'overload',
];

/** One call to the store. Its arrays stay as they are until it is settled. */
export interface StoreCall extends Batch {
  /** True once nobody waits for the answer any more: nothing may be sent again. */
  readonly settled: boolean;
  /** The answer; the store gives the array away. */
  onReply(reply: Reply): void;
  /** `detail` is the store's own sentence, for the log. */
  onFailure(kind: FailureKind, detail: string): void;
}

/** A server behind a store: what a circuit breaker belongs to. Compared by identity. */
export interface StoreNode {
  readonly name: string;
}

/** Buckets that may stand in one call. */
export interface StoreLane {
  /** The server that holds the lane's buckets now. */
  readonly node: StoreNode;
  /** True when `decide` answers before it returns. */
  readonly synchronous: boolean;
  /** Sends one call. `call` gets exactly one answer, or none when the connection never says. */
  decide(call: StoreCall): void;
}

export interface StoreListener {
  /** A connection to `node` was established again: what is known about levels may be old. */
  onReconnect(node: StoreNode): void;
  /** `node` does not belong to the store any more. */
  onDeparture(node: StoreNode): void;
}

export interface Store extends AsyncDisposable {
  /** The lane of a hash tag (bucket-key.ts); the same object for tags that may share a call. */
  laneOf(tag: string): StoreLane;
  /** How many hash tags one policy is spread over, ≥ 1. */
  readonly partitions: number;
  /** Set by the limiter, once. */
  listener: StoreListener | undefined;
}
