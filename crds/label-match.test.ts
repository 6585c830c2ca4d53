import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { matchesLabels } from './label-match.ts';
import type { LabelSelector } from './label-selector.ts';

const labels = { app: 'api', tier: 'web' };

const cases: Readonly<Record<string, readonly [LabelSelector, boolean]>> = {
  'an empty selector picks everything': [{}, true],
  'a label with that value is picked': [{ matchLabels: { app: 'api' } }, true],
  'a label with another value is not': [{ matchLabels: { app: 'db' } }, false],
  'every label must hold': [{ matchLabels: { app: 'api', tier: 'db' } }, false],
  'a name of the prototype is no label': [{ matchLabels: { toString: 'x' } }, false],
  'In picks a listed value': [
    { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'api'] }] },
    true,
  ],
  'In passes over an absent label': [
    { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] },
    false,
  ],
  'NotIn refuses a listed value': [
    { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['api'] }] },
    false,
  ],
  'NotIn picks an absent label': [
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] },
    true,
  ],
  'Exists wants the label': [{ matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, true],
  'Exists refuses its absence': [
    { matchExpressions: [{ key: 'zone', operator: 'Exists' }] },
    false,
  ],
  'DoesNotExist wants its absence': [
    { matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] },
    true,
  ],
  'DoesNotExist refuses the label': [
    { matchExpressions: [{ key: 'constructor', operator: 'Exists' }] },
    false,
  ],
};

describe('a label selector', () => {
  for (const [claim, [selector, isPicked]] of Object.entries(cases)) {
    it(claim, () => {
      assert.equal(matchesLabels(selector, labels), isPicked);
    });
  }
});
