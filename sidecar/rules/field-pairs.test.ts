import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eachCookiePair, eachQueryPair } from './field-pairs.ts';

type Pairs = readonly (readonly [name: string, value: string])[];

describe('eachQueryPair', () => {
  const queries: Readonly<Record<string, readonly [query: string, pairs: Pairs]>> = {
    'visits pairs in order': [
      'b=1&a=2',
      [
        ['b', '1'],
        ['a', '2'],
      ],
    ],
    'visits a name as often as it stands': [
      'a=1&a=2',
      [
        ['a', '1'],
        ['a', '2'],
      ],
    ],
    'decodes names and values': ['%61pi+key=x%26y', [['api key', 'x&y']]],
    'takes the first equals sign': ['a=b=c', [['a', 'b=c']]],
    'gives a pair without equals sign an empty value': [
      'a&b=',
      [
        ['a', ''],
        ['b', ''],
      ],
    ],
    'visits a name that is empty': ['=x', [['', 'x']]],
    'visits nothing in an empty query': ['', []],
  };
  for (const [claim, [query, pairs]] of Object.entries(queries)) {
    it(claim, () => {
      assert.deepEqual(pairsOf(eachQueryPair, query), pairs);
    });
  }
});

describe('eachCookiePair', () => {
  const fields: Readonly<Record<string, readonly [field: string, pairs: Pairs]>> = {
    'visits cookies in order': [
      'a=1; b=2',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    'trims what stands around names and values': [
      '  a = 1 ;b=2',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    'drops the quotes around a value': ['a="1 2"', [['a', '1 2']]],
    'keeps a quote that is not closed': ['a="1', [['a', '"1']]],
    'keeps a single quote sign': ['a="', [['a', '"']]],
    'does not decode': ['a=%31', [['a', '%31']]],
    'passes over what has no equals sign': ['x; a=1;', [['a', '1']]],
    'visits nothing in an empty field': ['', []],
  };
  for (const [claim, [field, pairs]] of Object.entries(fields)) {
    it(claim, () => {
      assert.deepEqual(pairsOf(eachCookiePair, field), pairs);
    });
  }
});

function pairsOf(each: typeof eachQueryPair, text: string): Pairs {
  const pairs: [string, string][] = [];
  each(text, (name, value) => pairs.push([name, value]));
  return pairs;
}
