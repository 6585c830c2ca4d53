// The whole status of a policy, planned from what was observed and from what the status says now. Planning on its own
// outcome plans nothing: a status is written only when it would read differently.
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { ConditionState } from '../../contract/conditions.ts';
import { conditionsOf } from './conditions.ts';
import type { PolicyObservation } from './policy-observation.ts';
import { tallyPods } from './pod-tally.ts';

export interface StatusCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration?: number | undefined;
  /** RFC 3339, whole seconds. */
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

export interface PodCounts {
  /** `programmed/matched`. */
  readonly summary: string;
  readonly matched: number;
  readonly injected: number;
  readonly programmed: number;
  readonly rejected: number;
  readonly bypassable: number;
}

export interface PolicyStatus {
  readonly observedGeneration: number;
  readonly conditions: readonly StatusCondition[];
  readonly pods: PodCounts;
  /** Rules in force. */
  readonly rules: number;
}

/** A condition whose status or reason is another one now. */
export interface Transition {
  readonly condition: ConditionState;
  /** Undefined = it was never said before. */
  readonly before: { readonly status: string; readonly reason: string } | undefined;
}

export interface StatusPlan {
  readonly status: PolicyStatus;
  readonly transitions: readonly Transition[];
  /**
   * `none`: it reads the same. `first`: the first word about this generation, not to be waited for.
   * `update`: the rest, which may wait until several changes are one.
   */
  readonly change: 'none' | 'first' | 'update';
}

/** Plans the status. `now`: milliseconds since 1970, for the time of a transition. */
export function planStatus(observation: PolicyObservation, nowMs: number): StatusPlan {
  const before = readStatus(observation.policy.status);
  const { generation } = observation.policy;
  if (isWaitingForWord(observation, before)) {
    return { status: before.whole, transitions: [], change: 'none' };
  }
  const states = conditionsOf(observation);
  const conditions = states.map((state) =>
    conditionFor(state, { generation, nowMs, before: before.conditions.get(state.type) }),
  );
  const status = {
    observedGeneration: generation,
    conditions,
    pods: countPods(observation),
    rules: observation.policy.good?.compiled.rules.length ?? 0,
  };
  const transitions = states.flatMap((state) => transitionOf(state, before));
  return { status, transitions, change: changeOf(status, before) };
}

interface KnownStatus {
  /** As it is, when it has all its parts. */
  readonly whole: PolicyStatus | undefined;
  readonly observedGeneration: number | undefined;
  readonly conditions: ReadonlyMap<string, StatusCondition>;
}

const conditionSchema = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.number().exactOptional(),
  lastTransitionTime: z.string(),
  reason: z.string(),
  message: z.string(),
});

const statusSchema: z.ZodType<PolicyStatus> = z.object({
  observedGeneration: z.number(),
  conditions: z.array(conditionSchema),
  pods: z.object({
    summary: z.string(),
    matched: z.number(),
    injected: z.number(),
    programmed: z.number(),
    rejected: z.number(),
    bypassable: z.number(),
  }),
  rules: z.number(),
});

/** Anybody who may write status may have written this one; what does not read as ours counts as not written. */
function readStatus(status: unknown): KnownStatus {
  const parsed = statusSchema.safeParse(status);
  if (!parsed.success) return { whole: undefined, observedGeneration: undefined, conditions: NONE };
  const whole = parsed.data;
  const conditions = new Map(whole.conditions.map((one) => [one.type, one]));
  return { whole, observedGeneration: whole.observedGeneration, conditions };
}

const NONE: ReadonlyMap<string, StatusCondition> = new Map();

/**
 * After a restart of the operator its sidecars come back one by one. Until they had the time, a status of this very
 * generation that said more is more likely true than what the first of them say.
 */
function isWaitingForWord(
  observation: PolicyObservation,
  before: KnownStatus,
): before is KnownStatus & { readonly whole: PolicyStatus } {
  const { isSettling, policy } = observation;
  const { whole } = before;
  if (!isSettling || whole?.observedGeneration !== policy.generation) return false;
  const { expected, programmed } = tallyPods(observation);
  // A status that said no more than what is known now has nothing to be kept for.
  const saidMore = whole.pods.programmed > programmed.length;
  return saidMore && programmed.length < expected.length && policy.judgement.kind !== 'refused';
}

interface ConditionContext {
  readonly generation: number;
  readonly nowMs: number;
  readonly before: StatusCondition | undefined;
}

function conditionFor(
  { type, status, reason, message }: ConditionState,
  { generation, nowMs, before }: ConditionContext,
): StatusCondition {
  const isSame = before?.status === status;
  return {
    type,
    status,
    observedGeneration: generation,
    lastTransitionTime: isSame ? before.lastTransitionTime : timestamp(nowMs),
    reason,
    message,
  };
}

/** As metav1.Time writes it. */
function timestamp(nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
}

function countPods(observation: PolicyObservation): PodCounts {
  const { matched, injected, programmed, rejected } = tallyPods(observation);
  return {
    summary: `${String(programmed.length)}/${String(matched.length)}`,
    matched: matched.length,
    injected: injected.length,
    programmed: programmed.length,
    rejected: rejected.length,
    bypassable: observation.bypassable,
  };
}

function transitionOf(condition: ConditionState, { conditions }: KnownStatus): Transition[] {
  const before = conditions.get(condition.type);
  if (before?.status === condition.status && before.reason === condition.reason) return [];
  return [{ condition, before }];
}

function changeOf(status: PolicyStatus, before: KnownStatus): StatusPlan['change'] {
  if (before.observedGeneration !== status.observedGeneration) return 'first';
  return isDeepStrictEqual(status, before.whole) ? 'none' : 'update';
}
