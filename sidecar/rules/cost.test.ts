import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ruleOf } from '../../test/support/rule-bundle.ts';
import { requestCost, responseCost } from './cost.ts';

const HEADER = { tokens: 3, header: { name: 'x-cost', max: 50 } };

describe('requestCost', () => {
  const costs: Readonly<Record<string, readonly [sent: string | undefined, tokens: number]>> = {
    'is the default without the header': [undefined, 3],
    'is what the header says': ['7', 7],
    'is at least 1': ['1', 1],
    'is the default below 1': ['0', 3],
    'is the default for many zeros': ['0000000000000000000', 3],
    'is the largest allowed at the bound': ['50', 50],
    'is the largest allowed above the bound': ['51', 50],
    'is the largest allowed beyond exact numbers': ['99999999999999999999', 50],
    'reads leading zeros': ['0000000000000000007', 7],
    'passes over spaces around the number': [' 7 ', 7],
    'is the default for a negative number': ['-7', 3],
    'is the default for a number with a plus sign': ['+7', 3],
    'is the default for a fraction': ['1.5', 3],
    'is the default for an exponent': ['1e2', 3],
    'is the default for a header sent twice': ['7, 7', 3],
    'is the default for nothing': ['', 3],
    'is the default for words': ['many', 3],
  };
  for (const [claim, [sent, tokens]] of Object.entries(costs)) {
    it(claim, () => {
      assert.equal(requestCost(HEADER, sent), tokens);
    });
  }

  it('is fixed where the rule names no header', () => {
    assert.equal(requestCost({ tokens: 3 }, '7'), 3);
  });
});

describe('responseCost', () => {
  const rule = ruleOf({ cost: { tokens: 1, response: { name: 'x-used', max: 50 } } });
  const costs: Readonly<Record<string, readonly [sent: string | undefined, tokens: number]>> = {
    'is nothing without the header': [undefined, 0],
    'is what the header says': ['7', 7],
    'is nothing for zero': ['0', 0],
    'is nothing for what cannot be read': ['-7', 0],
    'is the largest allowed above it': ['51', 50],
  };
  for (const [claim, [sent, tokens]] of Object.entries(costs)) {
    it(claim, () => {
      assert.equal(
        responseCost(rule, (name) => (name === 'x-used' ? sent : undefined)),
        tokens,
      );
    });
  }

  it('is nothing where the rule names no header', () => {
    assert.equal(
      responseCost(ruleOf(), () => '7'),
      0,
    );
  });
});
