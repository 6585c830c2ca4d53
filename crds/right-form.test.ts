import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { policySchema } from './policy.ts';
import { fieldsInWords, rightForm } from './right-form.ts';
import { schemaAt } from './schema-tree.ts';
import type { FieldPath } from './problem.ts';

const RULE: FieldPath = ['spec', 'rules', 0];

function formOf(value: unknown, ...path: FieldPath): string | undefined {
  return rightForm(value, schemaAt(policySchema, path));
}

function formsIn(field: FieldPath, cases: readonly (readonly [unknown, string | undefined])[]) {
  for (const [value, form] of cases) {
    assert.equal(formOf(value, ...RULE, ...field), form, JSON.stringify(value));
  }
}

describe('the right form of a value', () => {
  it('is a list of what stands alone', () => {
    formsIn(['match', 0, 'methods'], [['GET', '[GET]']]);
    assert.equal(formOf(8080, 'spec', 'ports'), '[8080]');
    formsIn(['match'], [[{ methods: 'GET' }, '[{ methods: [GET] }]']]);
  });

  it('is an object for the name of a field, with what has to be filled in', () => {
    formsIn(
      ['key'],
      [
        ['clientIP', '[{ clientIP: {} }]'],
        ['header', '[{ header: { name: … } }]'],
        ['claim', '[{ claim: { path: […] } }]'],
      ],
    );
    formsIn(['key', 0, 'clientIP'], [[true, '{}']]);
    assert.equal(formOf('jwks', 'spec', 'jwt'), '{ issuer: …, jwks: … }');
  });

  it('puts a value where only one field takes it', () => {
    formsIn(
      ['match'],
      [
        ['GET', '[{ methods: [GET] }]'],
        ['/x', '[{ path: { type: Exact, value: /x } }]'],
        // A method or a host.
        ['api.example.com', undefined],
      ],
    );
    formsIn(['match', 0, 'path'], [['/x', '{ type: Exact, value: /x }']]);
    formsIn(['cost'], [[5, '{ tokens: 5 }']]);
    formsIn(['buckets'], [[100, '[{ capacity: 100, refill: { tokens: …, every: … } }]']]);
    formsIn(['buckets', 0, 'refill'], [['5s', '{ tokens: …, every: 5s }']]);
  });

  it('is right all the way down', () => {
    formsIn(
      ['key'],
      [
        [{ header: 'X-Api-Key' }, '[{ header: { name: X-Api-Key } }]'],
        [{ constant: 5 }, '[{ constant: { value: "5" } }]'],
      ],
    );
    const buckets = { capacity: 1, refill: { tokens: 1, every: '1m' } };
    const rule = { name: 'all', key: 'clientIP', buckets };
    const form =
      '[{ name: all, key: [{ clientIP: {} }], buckets: [{ capacity: 1, refill: { tokens: 1, every: 1m } }] }]';
    assert.equal(formOf(rule, 'spec', 'rules'), form);
  });

  it('is none where the value says too little, or would still be wrong', () => {
    formsIn(
      ['key'],
      [
        ['X-Api-Key', undefined],
        [null, undefined],
        [{ nope: 1 }, undefined],
      ],
    );
    formsIn(['key', 0], [[['clientIP'], undefined]]);
    formsIn(['match', 0, 'headers'], [['X-Plan', undefined]]);
    formsIn(['match', 0, 'path'], [[{ type: 'Exact', value: 'x' }, undefined]]);
    formsIn(['match', 0, 'methods'], [[{}, undefined]]);
    assert.equal(formOf('app', 'spec', 'selector', 'matchLabels'), undefined);
  });

  it('is none where it would be long', () => {
    const fits = 'X'.repeat(32);
    formsIn(['match', 0, 'methods'], [[[fits], `[${fits}]`]]);
    formsIn(
      ['match', 0, 'methods'],
      [[['A', 'B', 'C', 'D'].map((one) => one.repeat(32)), undefined]],
    );
    formsIn(['match', 0, 'methods'], [[Array(17).fill('G'), undefined]]);
    formsIn(['match', 0, 'path'], [[`/${'x'.repeat(120)}`, undefined]]);
    const wide = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`l${index}`, 'x']));
    assert.equal(formOf(wide, 'spec', 'selector', 'matchLabels'), undefined);
  });

  it('quotes what YAML would read as something else', () => {
    formsIn(
      ['key'],
      [
        [{ constant: 'yes' }, '[{ constant: { value: "yes" } }]'],
        [{ constant: '08:15' }, '[{ constant: { value: "08:15" } }]'],
        [{ constant: 'a, b' }, '[{ constant: { value: "a, b" } }]'],
      ],
    );
  });

  it('is found for no value at the cost of an exception', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (value) => {
        for (const field of ['key', 'match', 'cost', 'buckets', 'tiers']) {
          assert.doesNotThrow(() => formOf(value, ...RULE, field));
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('the fields of an object', () => {
  const wordsOf = (...path: FieldPath): string | undefined =>
    fieldsInWords(schemaAt(policySchema, path));

  it('are those that it must have, and those that it may have', () => {
    assert.equal(wordsOf(...RULE, 'match', 0, 'path'), 'type, value');
    assert.equal(wordsOf(...RULE, 'tiers', 0), 'name, buckets; where needed match');
    assert.equal(wordsOf('spec', 'selector'), 'some of matchLabels, matchExpressions');
  });

  it('are none in a map, in a list and in a scalar', () => {
    assert.equal(wordsOf('spec', 'selector', 'matchLabels'), undefined);
    assert.equal(wordsOf('spec', 'ports'), undefined);
    assert.equal(wordsOf('spec', 'mode'), undefined);
  });
});
