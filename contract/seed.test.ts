import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Bundle, CompiledPolicy } from './bundle.ts';
import {
  decodeSeed,
  encodeSeed,
  SEED_BODY_BYTES_MAX,
  SEED_LENGTH_MAX,
  SEED_UNFOLDED_MAX,
} from './seed.ts';

function policy(name: string, content?: string): CompiledPolicy {
  return {
    ...{ namespace: 'shop', name, uid: name, generation: 1, mode: 'Enforce', enforcePercent: 100 },
    ...{ failureMode: 'Local', scope: 'Policy', replicas: 1, except: [], rules: [] },
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: {
      ...{ status: 429, quotaHeaders: 'RateLimit', headers: [] },
      ...(content === undefined ? {} : { body: { contentType: 'text/plain', content } }),
    },
  };
}

function bundle(policies: readonly CompiledPolicy[]): Bundle {
  return { format: 1, version: 'v1', policies };
}

function fold(value: unknown): string {
  return gzipSync(JSON.stringify(value)).toString('base64');
}

/** Text that gzip cannot shorten, the same in every run. */
function noise(length: number): string {
  let text = '';
  for (let index = 0; text.length < length; index += 1) {
    text += createHash('sha256').update(String(index)).digest('base64');
  }
  return text.slice(0, length);
}

describe('a seed', () => {
  it('gives back the bundle it was made from, and the same text for the same bundle', () => {
    const whole = bundle([policy('a', 'x'.repeat(SEED_BODY_BYTES_MAX)), policy('b')]);

    const seed = encodeSeed(whole);

    assert.equal(seed.kind, 'seed');
    assert.deepEqual(seed, encodeSeed(structuredClone(whole)));
    assert.deepEqual(decodeSeed(`${seed.text}\n`), { kind: 'seed', bundle: whole });
  });

  it('leaves out a body one byte too long, and no longer calls itself that version', () => {
    const seed = encodeSeed(bundle([policy('a', 'é'.repeat(SEED_BODY_BYTES_MAX / 2) + 'x')]));

    assert.equal(seed.kind, 'seed');
    assert.deepEqual(decodeSeed(seed.text), {
      kind: 'seed',
      bundle: { ...bundle([policy('a')]), version: 'v1+seed' },
    });
  });

  it('is left out with a reason when it would be too long, and not a character before', () => {
    const sized = (length: number): ReturnType<typeof encodeSeed> =>
      encodeSeed(bundle([{ ...policy('a'), workload: noise(length) }]));
    // Find the longest that fits, so that the bound itself is met from both sides.
    let fits = 1_000;
    for (let step = 65_536; step >= 1; step = Math.floor(step / 2)) {
      if (sized(fits + step).kind === 'seed') fits += step;
    }
    const longest = sized(fits);
    const tooLong = sized(fits + 8);

    assert.equal(longest.kind, 'seed');
    assert.ok(longest.text.length > SEED_LENGTH_MAX - 16 && longest.text.length <= SEED_LENGTH_MAX);
    assert.equal(tooLong.kind, 'omitted');
    assert.match(tooLong.reason, /65536/);
  });

  it('is left out when it would unfold to more than is read back, and not a byte before', () => {
    // Repetition folds to nearly nothing: only what it unfolds to is large.
    const sized = (length: number): Bundle =>
      bundle([{ ...policy('a'), workload: 'x'.repeat(length) }]);
    const room = SEED_UNFOLDED_MAX - JSON.stringify(sized(0)).length;

    const largest = encodeSeed(sized(room));
    const tooLarge = encodeSeed(sized(room + 1));

    assert.equal(largest.kind, 'seed');
    assert.deepEqual(decodeSeed(largest.text), { kind: 'seed', bundle: sized(room) });
    assert.equal(tooLarge.kind, 'omitted');
    assert.match(tooLarge.reason, new RegExp(`take ${SEED_UNFOLDED_MAX + 1} bytes`));
  });

  it('reads an empty file as no seed', () => {
    assert.deepEqual(decodeSeed(''), { kind: 'none' });
    assert.deepEqual(decodeSeed('\n'), { kind: 'none' });
  });

  it('refuses what is no seed, without throwing', () => {
    const texts = [
      'no base64 at all!',
      'AAAA',
      'A'.repeat(SEED_LENGTH_MAX + 4),
      fold('text'),
      fold({ format: 2, version: 'v', policies: [] }),
      fold({ format: 1, version: '', policies: [] }),
      fold({ format: 1, version: 'v', policies: {} }),
      fold({ format: 1, version: 'v', policies: [1] }),
      fold({ format: 1, version: 'v', policies: [], padding: ' '.repeat(SEED_UNFOLDED_MAX) }),
    ];

    for (const text of texts) assert.equal(decodeSeed(text).kind, 'unreadable', text.slice(0, 80));
  });
});
