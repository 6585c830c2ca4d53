// Where the controllers of policies let their decisions out. Small, so that a test brings its own.
import type { EventPlan } from '../policy/policy-event.ts';
import type { PolicyRecord } from '../policy/policy-record.ts';
import type { PolicyStatus } from '../policy/policy-status.ts';
import type { PodRecord } from '../policy/pod-record.ts';

/** The recorder of operator/runtime is one. Returns at once, never throws. */
export interface EventSink {
  record(event: EventPlan): void;
}

export interface StatusWriter {
  /** Writes the whole status; rejects as the API server refuses. A policy that is gone is no failure. */
  write(policy: PolicyRecord, status: PolicyStatus, signal: AbortSignal): Promise<void>;
}

export interface Evictor {
  /** Resolves with false when the API server would not now (a PodDisruptionBudget, or the pod is gone). */
  evict(pod: PodRecord, signal: AbortSignal): Promise<boolean>;
}
