import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePolicyFile } from './policy-file.ts';
import { notesOn } from './notes.ts';

function notesOnSpec(spec: string): string[] {
  const text = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: p}
spec: {selector: {}, ${spec}}
`;
  const outcome = parsePolicyFile(text, 'p.yaml');
  assert.equal(outcome.kind, 'policies', JSON.stringify(outcome));
  return outcome.documents.flatMap(({ policy }) => notesOn(policy));
}

const BUCKETS = 'buckets: [{capacity: 1, refill: {tokens: 1, every: 1s}}]';

describe('a note', () => {
  it('is not made on a policy that means what it says', () => {
    const match = 'match: [{methods: [GET, purge, M-SEARCH]}]';

    assert.deepEqual(notesOnSpec(`rules: [{name: a, ${match}, ${BUCKETS}}]`), []);
  });

  it('says once that a method in lower case never matches, wherever it stands', () => {
    const tier =
      'tiers: [{name: t, match: [{methods: [Post]}], buckets: [{capacity: 1, refill: {tokens: 1, every: 1s}}]}], onNoTier: Skip';
    const match = 'match: [{methods: [get]}], except: [{methods: [get]}]';

    assert.deepEqual(notesOnSpec(`rules: [{name: a, ${match}, ${tier}}]`), [
      'methods are case-sensitive: get never matches a GET request',
      'methods are case-sensitive: Post never matches a POST request',
    ]);
  });

  it('has nothing to say of matches without methods', () => {
    const match = 'match: [{path: {type: Exact, value: /get}}]';

    assert.deepEqual(
      notesOnSpec(`rules: [{name: a, ${match}, tiers: [{name: t, ${BUCKETS}}]}]`),
      [],
    );
  });

  it('says who fetches a key set', () => {
    const jwt = 'jwt: {issuer: i, jwks: {uri: "https://example.com/keys"}}';

    assert.deepEqual(notesOnSpec(`${jwt}, rules: [{name: a, ${BUCKETS}}]`), [
      'spec.jwt.jwks.uri is fetched by the operator; weir run takes inline keys only',
    ]);
  });
});
