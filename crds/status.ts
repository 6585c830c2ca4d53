// The status the operator writes. Nobody validates it but the API server.
import * as z from 'zod';
import { choice, list, text } from './field.ts';

/** One condition each of Accepted, ResolvedRefs, Programmed, Enforced, and room for as many more. */
const CONDITIONS_MAX = 8;
/** As in metav1.Condition. */
const CONDITION_TYPE_MAX = 316;
const REASON_MAX = 1_024;
const MESSAGE_MAX = 32_768;
/** "3/3" of two counts below 10^9. */
const SUMMARY_MAX = 32;

function count(description: string): z.ZodType<number> {
  return z.int32().min(0).meta({ description, format: 'int32' });
}

function generation(description: string): z.ZodType<number> {
  return z.int().min(0).meta({ description, format: 'int64' });
}

const conditionSchema = z
  .object({
    type: text('Accepted, ResolvedRefs, Programmed or Enforced.', {
      max: CONDITION_TYPE_MAX,
      advice: 'the type of a condition',
    }),
    status: choice('Whether it holds.', ['True', 'False', 'Unknown']),
    observedGeneration: generation('Generation of the policy it was judged from.').exactOptional(),
    lastTransitionTime: z
      .string()
      .meta({ description: 'When status changed last.', format: 'date-time', maxLength: 64 }),
    reason: text('Why, in one CamelCase word.', {
      min: 1,
      max: REASON_MAX,
      advice: 'a CamelCase word',
    }),
    message: text('Why, in one sentence.', { max: MESSAGE_MAX, advice: 'one sentence' }),
  })
  .meta({ description: 'One thing that is or is not so.' });

const podsSchema = z
  .object({
    summary: text('Sidecars that run this policy / pods it selects.', {
      max: SUMMARY_MAX,
      advice: 'n/m',
    }).exactOptional(),
    matched: count('Pods the selector selects.').exactOptional(),
    injected: count('Of these, pods with a sidecar.').exactOptional(),
    programmed: count('Of these, sidecars that run this generation.').exactOptional(),
    rejected: count('Sidecars that refused this generation.').exactOptional(),
    bypassable: count('Pods that traffic can reach without the sidecar.').exactOptional(),
  })
  .meta({ description: 'Pods of the policy, counted.' });

/** `status` of the resource. */
export const policyStatusSchema: z.ZodType = z
  .object({
    observedGeneration: generation('Generation of the policy the status is about.').exactOptional(),
    conditions: list('What is and what is not so.', conditionSchema, {
      min: 0,
      max: CONDITIONS_MAX,
      kind: 'map',
    })
      .meta({
        description: 'What is and what is not so.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
      })
      .exactOptional(),
    pods: podsSchema.exactOptional(),
    rules: count('Rules that are in force.').exactOptional(),
  })
  .meta({ description: 'What the operator found.' });
