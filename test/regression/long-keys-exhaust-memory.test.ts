// Report: a client that sent long values of the key header, each once, filled the sidecar's memory: the interned
// keys held their texts. A short text that is a part of a head may not hold the head either: V8 gives a map's key
// memory of its own, and this is where we would notice if it stopped to.
import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { KeyInterner } from '../../sidecar/limiter/key-interner.ts';
import { tierOf } from '../support/limiter-fixture.ts';

const KEYS = 2_000;
const HEAD_BYTES = 30_000;
/** A key costs about 600 bytes; twice that, and room for what the runner itself keeps meanwhile. */
const MOST_BYTES = KEYS * 1_200 + 4_000_000;

setFlagsFromString('--expose-gc');
const collectGarbage: unknown = runInNewContext('gc');

function heapBytes(): number {
  assert.ok(typeof collectGarbage === 'function');
  Reflect.apply(collectGarbage, undefined, []);
  return process.memoryUsage().heapUsed;
}

/** A key text that is a part of a head. */
function keyText(i: number, length: number): string {
  const head = Buffer.from(`${String(i)}${'x'.repeat(HEAD_BYTES)}`).toString('latin1');
  return head.slice(0, length);
}

describe('what interned keys keep alive', () => {
  for (const length of [40, 240, 257, 16_000, 20_000]) {
    test(`stays bounded with ${String(KEYS)} keys of ${String(length)} characters`, () => {
      const interner = new KeyInterner(1);
      const tier = tierOf();
      const before = heapBytes();

      for (let i = 0; i < KEYS; i += 1) interner.intern(tier, keyText(i, length));

      const grown = heapBytes() - before;
      assert.ok(grown < MOST_BYTES, `${String(grown)} bytes more`);
      assert.equal(tier.young.size, KEYS);
    });
  }
});
