import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import type { CryptoKey } from 'jose';
import type { CompiledJwt } from '../../contract/bundle.ts';
import { TEST_NOW_MS as NOW } from '../../test/support/rule-bundle.ts';
import { newRuleCounters } from './rule-counters.ts';
import type { RuleCounters } from './rule-counters.ts';
import {
  LEEWAY_SECONDS,
  MAX_KEYS_TRIED,
  MAX_TOKENS,
  MAX_TOKEN_CHARS,
  MAX_TOKEN_LENGTH,
  REJECTED_FOR_MS,
  TokenVerifier,
} from './token-verifier.ts';

const NOW_SECONDS = NOW / 1_000;

interface Bench {
  readonly verifier: TokenVerifier;
  readonly counters: RuleCounters;
  readonly clock: { nowMs: number };
}

interface Signing {
  readonly alg?: string;
  readonly key: CryptoKey | Uint8Array;
  readonly kid?: string;
  readonly claims?: Record<string, unknown>;
}

describe('a verified token', () => {
  const algorithms = [
    ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
    ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ];
  for (const alg of algorithms) {
    it(`may be signed with ${alg}`, async () => {
      const pair = await generateKeyPair(alg, { extractable: true });
      const bench = await benchOf([pair.publicKey]);
      const token = await signed({ alg, key: pair.privateKey });

      await bench.verifier.verify(token);

      assert.equal(claimsOf(bench, token)?.['sub'], 'client-1');
      assert.equal(bench.counters.claimsVerified, 1);
    });
  }

  it('is known until it expires, leeway included, and not a millisecond longer', async () => {
    const { bench, privateKey } = await standardBench();
    const token = await signed({ key: privateKey });
    await bench.verifier.verify(token);

    bench.clock.nowMs = NOW + (60 + LEEWAY_SECONDS) * 1_000 - 1;
    assert.equal(bench.verifier.known(token)?.kind, 'verified');

    bench.clock.nowMs += 1;
    assert.equal(bench.verifier.known(token), undefined);
    await bench.verifier.verify(token);
    assert.equal(bench.verifier.known(token)?.kind, 'rejected');
  });

  it('is verified once when many requests bring it at a time', async () => {
    const { bench, privateKey } = await standardBench();
    const token = await signed({ key: privateKey });

    await Promise.all([bench.verifier.verify(token), bench.verifier.verify(token)]);

    assert.equal(bench.counters.claimsVerified, 1);
  });

  it('is unknown before it was verified', async () => {
    const { bench, privateKey } = await standardBench();

    assert.equal(bench.verifier.known(await signed({ key: privateKey })), undefined);
  });

  it('may name its key', async () => {
    const [first, second] = [await pairOf(), await pairOf()];
    const bench = await benchOf([first.publicKey, second.publicKey], { kids: ['a', 'b'] });

    const token = await signed({ key: second.privateKey, kid: 'b' });
    await bench.verifier.verify(token);

    assert.equal(bench.verifier.known(token)?.kind, 'verified');
  });

  it('is tried with each key that fits when it names none', async () => {
    const pairs = await Promise.all(Array.from({ length: MAX_KEYS_TRIED }, pairOf));
    const bench = await benchOf(pairs.map(({ publicKey }) => publicKey));

    const token = await signed({ key: (pairs.at(-1) ?? assert.fail()).privateKey });
    await bench.verifier.verify(token);

    assert.equal(bench.verifier.known(token)?.kind, 'verified');
  });

  it('is accepted at the edges of issuer, audience, exp and nbf', async () => {
    const { bench, privateKey } = await standardBench({ issuer: 'us', audiences: ['a', 'b'] });
    const claims = {
      iss: 'us',
      aud: ['x', 'b'],
      exp: NOW_SECONDS - LEEWAY_SECONDS + 1,
      nbf: NOW_SECONDS + LEEWAY_SECONDS,
    };

    const token = await signed({ key: privateKey, claims });
    await bench.verifier.verify(token);

    assert.equal(bench.verifier.known(token)?.kind, 'verified');
  });
});

describe('a rejected token', () => {
  const wrongClaims: Readonly<Record<string, Record<string, unknown>>> = {
    'has no exp': { exp: undefined },
    'has an exp that is no number': { exp: 'tomorrow' },
    'has expired by more than the leeway': { exp: NOW_SECONDS - LEEWAY_SECONDS },
    'is not valid yet by more than the leeway': { nbf: NOW_SECONDS + LEEWAY_SECONDS + 1 },
    'has another issuer': { iss: 'them' },
    'has no issuer': { iss: undefined },
    'has another audience': { aud: 'c' },
    'has no audience': { aud: undefined },
  };
  for (const [what, claims] of Object.entries(wrongClaims)) {
    it(what, async () => {
      const { bench, privateKey } = await standardBench({ issuer: 'us', audiences: ['a'] });

      const all = { iss: 'us', aud: 'a', ...claims };
      const token = await signed({ key: privateKey, claims: all });
      await bench.verifier.verify(token);

      assert.equal(bench.verifier.known(token)?.kind, 'rejected');
      assert.equal(bench.counters.claimsRejected, 1);
    });
  }

  it('was signed by another key', async () => {
    const { bench } = await standardBench();

    await assertRejected(bench, await signed({ key: (await pairOf()).privateKey }));
  });

  it('was signed by none of several keys', async () => {
    const pairs = [await pairOf(), await pairOf()];
    const bench = await benchOf(pairs.map(({ publicKey }) => publicKey));

    await assertRejected(bench, await signed({ key: (await pairOf()).privateKey }));
  });

  it('was signed by a key past the number that is tried', async () => {
    const pairs = await Promise.all(Array.from({ length: MAX_KEYS_TRIED + 1 }, pairOf));
    const bench = await benchOf(pairs.map(({ publicKey }) => publicKey));

    await assertRejected(bench, await signed({ key: (pairs.at(-1) ?? assert.fail()).privateKey }));
  });

  it('has expired although one of several keys signed it', async () => {
    const pairs = [await pairOf(), await pairOf()];
    const bench = await benchOf(pairs.map(({ publicKey }) => publicKey));
    const claims = { exp: NOW_SECONDS - 3_600 };

    await assertRejected(
      bench,
      await signed({ key: (pairs[0] ?? assert.fail()).privateKey, claims }),
    );
  });

  it('is signed with a shared secret, even one that equals a public key', async () => {
    const { bench, publicKey } = await standardBench();
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(publicKey)));

    await assertRejected(bench, await signed({ alg: 'HS256', key: secret }));
  });

  it('is not signed at all', async () => {
    const { bench } = await standardBench();
    const part = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString('base64url');

    await assertRejected(
      bench,
      `${part({ alg: 'none' })}.${part({ sub: 'a', exp: NOW_SECONDS + 60 })}.`,
    );
  });

  it('is no token', async () => {
    const { bench } = await standardBench();

    await assertRejected(bench, 'x.y');
  });

  it('is looked at again after a while, for it may have become valid', async () => {
    const { bench, privateKey } = await standardBench();
    const claims = { nbf: NOW_SECONDS + LEEWAY_SECONDS + 5 };
    const token = await signed({ key: privateKey, claims });
    await bench.verifier.verify(token);

    bench.clock.nowMs = NOW + REJECTED_FOR_MS - 1;
    assert.equal(bench.verifier.known(token)?.kind, 'rejected');

    bench.clock.nowMs += 1;
    assert.equal(bench.verifier.known(token), undefined);
    await bench.verifier.verify(token);
    assert.equal(bench.verifier.known(token)?.kind, 'verified');
  });
});

describe('what is remembered', () => {
  it('holds no token that is too long', async () => {
    const { bench } = await standardBench();

    assert.equal(bench.verifier.known('x'.repeat(MAX_TOKEN_LENGTH)), undefined);
    assert.equal(bench.verifier.known('x'.repeat(MAX_TOKEN_LENGTH + 1))?.kind, 'rejected');
  });

  it('is bounded in number', async () => {
    const { bench } = await standardBench();

    const tokens = Array.from({ length: MAX_TOKENS + 1 }, (_, i) => String(i));
    await Promise.all(tokens.map((token) => bench.verifier.verify(token)));

    const known = tokens.filter((token) => bench.verifier.known(token) !== undefined);
    assert.equal(known.length, MAX_TOKENS);
  });

  it('is bounded in size', async () => {
    const { bench } = await standardBench();

    const count = MAX_TOKEN_CHARS / MAX_TOKEN_LENGTH + 1;
    const tokens = Array.from({ length: count }, (_, i) => String(i).padEnd(MAX_TOKEN_LENGTH, 'x'));
    await Promise.all(tokens.map((token) => bench.verifier.verify(token)));

    const known = tokens.filter((token) => bench.verifier.known(token) !== undefined);
    assert(known.length * MAX_TOKEN_LENGTH <= MAX_TOKEN_CHARS);
    assert(known.length >= count - 2);
  });
});

async function assertRejected(bench: Bench, token: string): Promise<void> {
  await bench.verifier.verify(token);

  assert.equal(bench.verifier.known(token)?.kind, 'rejected');
  assert.equal(bench.counters.claimsVerified, 0);
  assert.equal(bench.counters.claimsRejected, 1);
}

function claimsOf(
  { verifier }: Bench,
  token: string,
): Readonly<Record<string, unknown>> | undefined {
  const state = verifier.known(token);
  return state?.kind === 'verified' ? state.claims : undefined;
}

function pairOf(): ReturnType<typeof generateKeyPair> {
  return generateKeyPair('ES256', { extractable: true });
}

async function standardBench(config: Partial<CompiledJwt> = {}): Promise<{
  readonly bench: Bench;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}> {
  const { privateKey, publicKey } = await pairOf();
  return { bench: await benchOf([publicKey], config), privateKey, publicKey };
}

async function benchOf(
  publicKeys: readonly CryptoKey[],
  { kids, ...config }: Partial<CompiledJwt> & { readonly kids?: readonly string[] } = {},
): Promise<Bench> {
  const keys = await Promise.all(
    publicKeys.map(async (key, i) => ({
      ...(await exportJWK(key)),
      ...(kids === undefined ? {} : { kid: kids[i] }),
    })),
  );
  const clock = { nowMs: NOW };
  const counters = newRuleCounters();
  const jwt = { audiences: [], header: 'authorization', keys, ...config };
  const verifier = new TokenVerifier(jwt, { nowMs: () => clock.nowMs, counters });
  return { verifier, counters, clock };
}

function signed({ alg = 'ES256', key, kid, claims = {} }: Signing): Promise<string> {
  const all = { sub: 'client-1', exp: NOW_SECONDS + 60, ...claims };
  return new SignJWT(all)
    .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
    .sign(key);
}
