// A LabelSelector as Kubernetes has it. For a custom resource the API server checks only what our own schema says,
// so keys, values and operators are checked here.
import * as z from 'zod';
import { choice, list, ruled, text } from './field.ts';
import type { TextBounds } from './field.ts';

const LABELS_MAX = 16;
const EXPRESSIONS_MAX = 16;
const EXPRESSION_VALUES_MAX = 32;

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: LabelExpression[];
}

export interface LabelExpression {
  key: string;
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  values?: string[];
}

const VALUE: TextBounds = {
  max: 63,
  pattern: /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/,
  advice: 'a label value: up to 63 letters, digits, dashes, dots and underscores',
};
/** A DNS subdomain of 253, a slash and a name of 63. */
const KEY_MAX = 317;

const PREFIX = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const NAME = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** Whether `key` is a label key: an optional DNS subdomain with a slash, then a name of at most 63 characters. */
export function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/');
  const name = key.slice(slash + 1);
  if (name.length > 63 || !NAME.test(name)) return false;
  if (slash === -1) return true;
  const prefix = key.slice(0, slash);
  return prefix.length <= 253 && PREFIX.test(prefix);
}

const takesValues = new Set(['In', 'NotIn']);

const expressionSchema: z.ZodType<LabelExpression> = ruled(
  z
    .object({
      key: text('Key of the label.', {
        min: 1,
        max: KEY_MAX,
        advice: 'a label key such as app.kubernetes.io/name',
      }),
      operator: choice('How the label is compared.', ['In', 'NotIn', 'Exists', 'DoesNotExist']),
      values: list('Values for In and NotIn.', text('Value of the label.', VALUE), {
        min: 0,
        max: EXPRESSION_VALUES_MAX,
        kind: 'atomic',
      }).exactOptional(),
    })
    .meta({ description: 'A condition on one label.' }),
  [
    {
      rule: `self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0`,
      message: 'In and NotIn need values, Exists and DoesNotExist take none',
      advice: 'list values with In and NotIn only',
      field: 'values',
      holds: ({ operator, values = [] }) => takesValues.has(operator) === values.length > 0,
    },
  ],
);

const KEY_RULE = {
  message: 'label keys must be qualified names',
  advice: 'use keys such as app or app.kubernetes.io/name',
};

export const labelSelectorSchema: z.ZodType<LabelSelector> = ruled(
  z
    .object({
      matchLabels: z
        .record(z.string(), text('Value of the label.', VALUE))
        .check(atMostProperties(LABELS_MAX))
        .meta({ description: 'Labels a pod must have.', maxProperties: LABELS_MAX })
        .exactOptional(),
      matchExpressions: list('Conditions a pod must meet.', expressionSchema, {
        min: 0,
        max: EXPRESSIONS_MAX,
        kind: 'atomic',
      }).exactOptional(),
    })
    .meta({
      description: 'Pods of this namespace; {} selects every opted-in pod.',
      'x-kubernetes-map-type': 'atomic',
    }),
  [
    {
      rule: '!has(self.matchLabels) || self.matchLabels.all(k, !format.qualifiedName().validate(k).hasValue())',
      ...KEY_RULE,
      field: 'matchLabels',
      holds: ({ matchLabels = {} }) => Object.keys(matchLabels).every(isQualifiedName),
    },
    {
      rule: '!has(self.matchExpressions) || self.matchExpressions.all(e, !format.qualifiedName().validate(e.key).hasValue())',
      ...KEY_RULE,
      field: 'matchExpressions',
      holds: ({ matchExpressions = [] }) =>
        matchExpressions.every(({ key }) => isQualifiedName(key)),
    },
  ],
);

function atMostProperties(max: number): z.core.$ZodCheck<Record<string, string>> {
  return z.refine((value) => Object.keys(value).length <= max, {
    error: `has more than ${String(max)} labels`,
    params: { advice: `use at most ${String(max)}` },
  });
}
