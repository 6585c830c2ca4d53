// Whether a selector picks a set of labels, as Kubernetes does it: every label and every expression must hold, and
// an empty selector picks everything.
import type { LabelExpression, LabelSelector } from './label-selector.ts';

export function matchesLabels(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {});
  return (
    wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value) &&
    (selector.matchExpressions ?? []).every((expression) => holds(expression, labels))
  );
}

function holds(
  { key, operator, values = [] }: LabelExpression,
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const isAmong = value !== undefined && values.includes(value);
  switch (operator) {
    case 'In':
      return isAmong;
    case 'NotIn':
      // A pod without the label is not in the set either.
      return !isAmong;
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
