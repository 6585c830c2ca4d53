import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PublicKey } from '../../crds/key-set.ts';
import { settle, SteppedClock } from '../../test/support/stepped-clock.ts';
import { REFRESH_MS, RETRY_MIN_MS, type FetchOutcome } from '../policy/key-set-plan.ts';
import { FETCHES_MAX, KeySets } from './key-sets.ts';

const KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
const GOOD: FetchOutcome = { kind: 'fetched', text: JSON.stringify({ keys: [KEY] }) };
const AWAY: FetchOutcome = { kind: 'unavailable', message: 'answers 503' };
const A = 'https://a.example/jwks';
const B = 'https://b.example/jwks';

class Bed implements AsyncDisposable {
  readonly clock = new SteppedClock();
  readonly asked: string[] = [];
  readonly keys: [string, readonly PublicKey[]][] = [];
  readonly states: string[] = [];
  outcome: FetchOutcome = GOOD;
  /** Fetches wait for it. */
  gate: Promise<unknown> | undefined;
  readonly sets = new KeySets({
    fetch: async (uri) => {
      this.asked.push(uri);
      const { outcome } = this;
      await this.gate;
      return outcome;
    },
    clock: this.clock,
    random: () => 0,
    onKeys: (uri, keys) => this.keys.push([uri, keys]),
    onState: (uri) => this.states.push(uri),
  });

  [Symbol.asyncDispose](): Promise<void> {
    return this.sets[Symbol.asyncDispose]();
  }
}

describe('key sets', () => {
  it('are fetched when a policy names them, once for all that do', async () => {
    await using bed = new Bed();

    bed.sets.keep([A, A, B]);
    bed.sets.keep([A, B]);
    await settle();

    assert.deepEqual(bed.asked, [A, B]);
    assert.deepEqual(
      bed.keys.map(([uri]) => uri),
      [A, B],
    );
    assert.deepEqual(bed.sets.stateOf(A).good?.keys, [KEY]);
  });

  it('are fetched again when they are due, and not a moment earlier', async () => {
    await using bed = new Bed();
    bed.sets.keep([A]);

    await bed.clock.advance(REFRESH_MS - 1);
    const early = bed.asked.length;
    await bed.clock.advance(1);

    assert.deepEqual([early, bed.asked.length], [1, 2]);
  });

  it('stay what they were while their issuer is away, and are told of it once', async () => {
    await using bed = new Bed();
    bed.sets.keep([A]);
    await settle();
    bed.outcome = AWAY;
    await bed.clock.advance(REFRESH_MS + RETRY_MIN_MS);

    const { good, failure } = bed.sets.stateOf(A);

    assert.deepEqual([good?.keys, failure?.message], [[KEY], 'answers 503']);
    assert.deepEqual([bed.asked.length, bed.states.length, bed.keys.length], [3, 2, 1]);
  });

  it('are forgotten when no policy names them, and no longer fetched', async () => {
    await using bed = new Bed();
    bed.sets.keep([A]);
    await settle();

    bed.sets.keep([]);
    await bed.clock.advance(REFRESH_MS);

    assert.deepEqual(
      [bed.asked.length, bed.sets.stateOf(A).good, bed.clock.timers],
      [1, undefined, 0],
    );
  });

  it('named again while the first fetch runs are not fetched twice', async () => {
    await using bed = new Bed();
    const gate = Promise.withResolvers<undefined>();
    bed.gate = gate.promise;
    bed.sets.keep([A]);
    bed.sets.keep([]);
    bed.sets.keep([A]);

    gate.resolve(undefined);
    await settle();

    assert.deepEqual([bed.asked, bed.keys.length, bed.clock.timers], [[A], 1, 1]);
  });

  it('are fetched a few at a time', async () => {
    await using bed = new Bed();
    const gate = Promise.withResolvers<undefined>();
    bed.gate = gate.promise;
    const uris = Array.from({ length: FETCHES_MAX + 1 }, (_, index) => `${A}/${String(index)}`);

    bed.sets.keep(uris);
    await settle();
    const atOnce = bed.asked.length;
    gate.resolve(undefined);
    await settle();

    assert.deepEqual([atOnce, bed.asked.length], [FETCHES_MAX, FETCHES_MAX + 1]);
  });
});
