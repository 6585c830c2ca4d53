// What can come out of injection, and every reason for which a pod gets no sidecar. docs/injection.md explains each
// reason; a test holds the two lists equal.
import type { InjectionStatus } from './injection-status.ts';
import type { Pod } from './pod.ts';

/** Nobody asked, or it is done: nothing to tell anybody. */
export const skipReasons = ['NotAsked', 'Disabled', 'AlreadyInjected'] as const;

/** Somebody asked and it cannot be done; in words that say what to do. */
export const refusalReasons = [
  'InvalidAnnotation',
  'HostNetwork',
  'UnsupportedOS',
  'NoPort',
  'AmbiguousPort',
  'UnnamedPort',
  'TooManyPorts',
  'PodSecurity',
  'NoRedirectImage',
  'NativeUnsupported',
  'WouldNeverEnd',
  'NameTaken',
  'UnresolvedHandler',
  'PortClash',
  'Unreadable',
  'InvalidResult',
] as const;

export type SkipReason = (typeof skipReasons)[number];
export type RefusalReason = (typeof refusalReasons)[number];

export interface Refused {
  readonly kind: 'refused';
  readonly reason: RefusalReason;
  /** One sentence or two: what is in the way, and what to do. */
  readonly message: string;
}

export interface Skipped {
  readonly kind: 'skipped';
  readonly reason: SkipReason;
  readonly message: string;
}

/** What is worth telling about a pod that was injected. */
export const noteReasons = ['Bypassable', 'SeedOmitted', 'NoDrain', 'UnknownAnnotation'] as const;

export interface Note {
  readonly reason: (typeof noteReasons)[number];
  readonly message: string;
}

export interface Injected {
  readonly kind: 'injected';
  readonly pod: Pod;
  readonly status: InjectionStatus;
  readonly notes: readonly Note[];
}

export type Outcome = Injected | Skipped | Refused;

export function refused(reason: RefusalReason, message: string): Refused {
  return { kind: 'refused', reason, message };
}

export function skipped(reason: SkipReason, message: string): Skipped {
  return { kind: 'skipped', reason, message };
}
