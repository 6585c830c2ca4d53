import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { describe, it } from 'node:test';
import { KEYS_MAX, readKeySet } from './key-set.ts';
import type { KeySetOutcome } from './key-set.ts';

function jwk(key: KeyObject): Record<string, unknown> {
  return { ...key.export({ format: 'jwk' }) };
}

const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const EC = jwk(p256.publicKey);
const RSA = jwk(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey);

function read(...keys: unknown[]): KeySetOutcome {
  return readKeySet(JSON.stringify({ keys }));
}

function messageOf(outcome: KeySetOutcome): string {
  return outcome.kind === 'invalid' ? outcome.message : outcome.kind;
}

describe('a key set', () => {
  it('may hold RSA, EC and Ed25519 keys', () => {
    const curves = ['P-256', 'P-384', 'P-521'].map((namedCurve) =>
      jwk(generateKeyPairSync('ec', { namedCurve }).publicKey),
    );
    const ed = jwk(generateKeyPairSync('ed25519').publicKey);

    const outcome = read(RSA, ...curves, ed);

    assert(outcome.kind === 'keys');
    assert.equal(outcome.keys.length, 5);
  });

  it('keeps the members that verify, and nothing else', () => {
    const outcome = read({ ...EC, kid: 'k1', alg: 'ES256', use: 'sig', x5c: ['…'], comment: 'x' });

    assert(outcome.kind === 'keys');
    assert.deepEqual(outcome.keys, [{ ...EC, kid: 'k1', alg: 'ES256', use: 'sig' }]);
  });

  it('refuses shared secrets and private keys, beside good ones too', () => {
    assert.equal(
      messageOf(read(EC, { kty: 'oct', k: 'c2VjcmV0' })),
      'key 2 is a shared secret (kty oct)',
    );
    assert.equal(messageOf(read(jwk(p256.privateKey))), 'key 1 is a private key (member d)');
    assert.equal(messageOf(read({ ...RSA, p: 'AQ' })), 'key 1 is a private key (member p)');
  });

  it('leaves out keys that cannot verify a token, if one can', () => {
    const foreign = [
      { ...EC, use: 'enc' },
      { ...EC, alg: 'ECDH-ES' },
      { ...EC, alg: 'HS256' },
      { ...RSA, alg: 'RSA-OAEP' },
      { kty: 'EC', crv: 'secp256k1', x: 'AA', y: 'AA' },
      { kty: 'AKP', pub: 'AA' },
      {},
    ];

    const outcome = read(...foreign, EC);

    assert(outcome.kind === 'keys');
    assert.equal(outcome.keys.length, 1);
    assert.equal(messageOf(read(...foreign)), 'has no key that can verify a token');
    assert.equal(messageOf(read()), 'has no key that can verify a token');
  });

  it('refuses keys that are none', () => {
    assert.equal(messageOf(read({ ...EC, y: 'A'.repeat(43) })), 'key 1 is not a valid key');
    assert.equal(messageOf(read({ ...EC, x: 7 })), 'key 1 is not a valid key');
    assert.equal(messageOf(read({ kty: 'RSA' })), 'key 1 is not a valid key');
    assert.equal(messageOf(read(null)), 'key 1 is not an object');
    assert.equal(messageOf(read([])), 'key 1 is not an object');
  });

  it('refuses RSA below 2048 bits', () => {
    const short = jwk(generateKeyPairSync('rsa', { modulusLength: 2040 }).publicKey);

    assert.equal(messageOf(read(short)), 'key 1 has 2040 bits, fewer than 2048');
  });

  it('refuses what is no key set', () => {
    for (const text of ['', 'keys: []', '[]', '{}', 'null', '"a"', '{"keys": {}}']) {
      assert.equal(messageOf(readKeySet(text)), 'is not a JSON Web Key Set', text);
    }
  });

  it('holds up to 32 keys', () => {
    const keys = (count: number): unknown[] => Array.from({ length: count }, () => EC);

    assert.equal(messageOf(read(...keys(KEYS_MAX))), 'keys');
    assert.equal(messageOf(read(...keys(KEYS_MAX + 1))), 'has 33 keys, more than 32');
  });
});
