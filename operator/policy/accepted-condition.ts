// Accepted: whether the object compiles. Where it does not, the fault that only a newer operator or another field can
// cure comes first, then faults in the order they stand in the document.
import type { ConditionReason, ConditionState } from '../../contract/conditions.ts';
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
  const [kind, reason] = reasonOf(problems);
  const first = problems.find((problem) => problem.reason === kind) ?? problems[0];
  const more = problems.length - 1;
  const rest = more > 0 ? ` (and ${String(more)} more)` : '';
  const message = first === undefined ? 'The policy is not valid.' : `${describe(first)}${rest}`;
  return { type: 'Accepted', status: 'False', reason, message };
}

function reasonOf(
  problems: readonly Problem[],
): readonly [Problem['reason'] | undefined, ConditionReason<'Accepted'>] {
  const found = REASONS.find(([kind]) => problems.some((problem) => problem.reason === kind));
  return found ?? [problems[0]?.reason, 'Invalid'];
}

function describe({ path, message, advice, excerpt }: Problem): string {
  const where = path === '' ? 'the policy' : path;
  const shown = excerpt === undefined ? '' : `\n${excerpt}`;
  return `${where} ${message}: ${advice}${shown}`;
}

function told(conflicts: readonly Conflict[]): string {
  return listed(conflicts.map(({ message }) => message));
}
