// Accepted: whether the object compiles. Where it does not, the fault that only a newer operator or another field can
// cure comes first, then faults in the order they stand in the document.
import assert from 'node:assert/strict';
import type { ConditionState } from '../../contract/conditions.ts';
import type { Conflict } from '../../crds/conflicts.ts';
import type { Problem } from '../../crds/problem.ts';
import type { PolicyObservation } from './policy-observation.ts';
import { listed } from './wording.ts';

export function acceptedCondition({
  policy,
  conflicts,
}: PolicyObservation): ConditionState<'Accepted'> {
  const { judgement } = policy;
  if (judgement.kind === 'refused') return refused(judgement.problems);
  const message =
    conflicts.length === 0 ? 'The policy compiles.' : `The policy compiles; ${told(conflicts)}.`;
  return { type: 'Accepted', status: 'True', reason: 'Accepted', message };
}

/** In this order; every other kind of fault is `Invalid`. */
const REASONS = [
  ['unknown-field', 'UnsupportedField'],
  ['cel', 'InvalidCEL'],
  ['too-large', 'TooLarge'],
] as const;

function refused(problems: readonly Problem[]): ConditionState<'Accepted'> {
  const found = REASONS.find(([kind]) => problems.some((problem) => problem.reason === kind));
  const [kind, reason] = found ?? [undefined, 'Invalid'];
  const first = problems.find((problem) => kind === undefined || problem.reason === kind);
  assert(first !== undefined, 'whoever refuses says why');
  const more = problems.length - 1;
  const rest = more > 0 ? ` (and ${String(more)} more)` : '';
  return { type: 'Accepted', status: 'False', reason, message: `${describe(first)}${rest}` };
}

function describe({ path, message, advice, excerpt }: Problem): string {
  const shown = excerpt === undefined ? '' : `\n${excerpt}`;
  return `${path} ${message}: ${advice}${shown}`;
}

function told(conflicts: readonly Conflict[]): string {
  return listed(conflicts.map(({ message }) => message));
}
