import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { hashOf, stableJson } from './content-hash.ts';

describe('stable JSON', () => {
  it('has names in one order, lists in theirs', () => {
    assert.equal(
      stableJson({ b: [2, 1], a: { d: null, c: 'x' } }),
      '{"a":{"c":"x","d":null},"b":[2,1]}',
    );
  });

  it('says the same as JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepEqual(JSON.parse(stableJson(value)), JSON.parse(JSON.stringify(value)));
      }),
      { verbose: true },
    );
  });
});

describe('a content hash', () => {
  it('is 128 bits of SHA-256 in hex', () => {
    // The first half of the SHA-256 of the empty text (FIPS 180-4).
    assert.equal(hashOf(''), 'e3b0c44298fc1c149afbf4c8996fb924');
  });
});
