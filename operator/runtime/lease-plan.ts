// Who leads, decided from what was observed and from our own clock alone. Times in a Lease are other machines' words:
// they are shown to people and never compared. A holder is dead when its Lease has not changed for as long as it says.
import type { KubeObject } from '../kube/object.ts';

export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface Lease extends KubeObject {
  readonly spec?: LeaseSpec;
}

export interface LeaseTimes {
  /** How long others leave a silent holder alone. */
  readonly durationMs: number;
  /** How long a holder goes on without having renewed; below the duration, so that two never lead. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/** As client-go. */
export const leaseTimes: LeaseTimes = {
  durationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

/** What is known of the Lease. */
export interface Observation {
  /** Absent: there is none. */
  readonly lease?: Lease;
  /** By our own clock: when we first saw it as it is now. */
  readonly changedAtMs: number;
}

export interface Candidate {
  readonly identity: string;
  readonly durationMs: number;
  /** For people. */
  readonly wallTime: string;
}

export type LeasePlan =
  | { readonly act: 'create' | 'replace'; readonly spec: LeaseSpec }
  /** Somebody else leads. */
  | { readonly act: 'wait' };

export function planLease(observation: Observation, nowMs: number, me: Candidate): LeasePlan {
  const { lease, changedAtMs } = observation;
  if (lease === undefined) return { act: 'create', spec: firstSpec(me) };
  const { spec = {} } = lease;
  if (spec.holderIdentity === me.identity) {
    return { act: 'replace', spec: { ...spec, ...held(me) } };
  }
  if (isHeld(spec) && nowMs - changedAtMs < durationOf(spec, me)) return { act: 'wait' };
  const leaseTransitions = (spec.leaseTransitions ?? 0) + 1;
  return { act: 'replace', spec: { ...spec, ...firstSpec(me), leaseTransitions } };
}

/** Gives the Lease away: the next that looks may have it. */
export function releasedSpec(spec: LeaseSpec, { wallTime }: Candidate): LeaseSpec {
  return { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: wallTime };
}

/** Whether two observations are of the same state; the version is opaque, equality is all it says. */
export function isSameLease(one: Lease | undefined, other: Lease | undefined): boolean {
  return one?.metadata.resourceVersion === other?.metadata.resourceVersion;
}

function isHeld({ holderIdentity }: LeaseSpec): boolean {
  return holderIdentity !== undefined && holderIdentity !== '';
}

/** The holder's own word; ours where it gave none. */
function durationOf({ leaseDurationSeconds }: LeaseSpec, { durationMs }: Candidate): number {
  return leaseDurationSeconds === undefined ? durationMs : leaseDurationSeconds * 1000;
}

function firstSpec(me: Candidate): LeaseSpec {
  return { ...held(me), acquireTime: me.wallTime, leaseTransitions: 0 };
}

function held({ identity, durationMs, wallTime }: Candidate): LeaseSpec {
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(durationMs / 1000),
    renewTime: wallTime,
  };
}
