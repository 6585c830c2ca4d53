import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StoredLimit } from '../limiter/stored-limit.ts';
import { ACQUIRE, CHARGE_DOWN, PEEK, REFUND } from '../limiter/token-bucket.ts';
import { encodeCall, WIDE_MAX } from './script-arguments.ts';

const shape = { capacity: 5, unitsPerToken: 10, unitsPerTick: 1, tickUs: 1 } as const;
const limit = new StoredLimit(1, shape);
const other = new StoredLimit(2, shape);

function operationsOf(...operations: number[]): string {
  return String(encodeCall({ keys: ['k'], limits: [limit], operations }, 'SHA')[4]);
}

describe('the arguments of a call', () => {
  it('are the keys, the place of each limit, the decisions, and each limit once', () => {
    const operations = [ACQUIRE, 3, 0, 2, 1, 1, 2, 4, PEEK, 1, 1, 1, 1, 1, REFUND, 1, 0, 1, 2, 1];

    const args = encodeCall(
      { keys: ['k1', 'k2', 'k3'], limits: [limit, other, limit], operations },
      'SHA',
    );

    assert.deepEqual(args, [
      ...['SHA', 3, 'k1', 'k2', 'k3'],
      '\0\x01\0\x02\0\x01',
      'a\x03\0\x02\x01\x01\x02\x04p\x01\x01\x01\x01\x01r\x01\0\x01\x02\x01',
      ...[limit.text, other.text],
    ]);
  });

  it('have one byte a number up to 127, and five from there on', () => {
    assert.equal(operationsOf(CHARGE_DOWN, 1, 0, 1, 1, 127), 'c\x01\0\x01\x01\x7f');
    assert.equal(
      operationsOf(CHARGE_DOWN, 1, 0, 1, 1, 128),
      'C\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x01\0\0\0\x01\0',
    );
  });

  it('hold no number above what five bytes can say', () => {
    assert.match(operationsOf(ACQUIRE, WIDE_MAX, 0, 1, 1, 1), /^A\x7f{5}/);
    assert.throws(() => operationsOf(ACQUIRE, WIDE_MAX + 1, 0, 1, 1, 1), RangeError);
  });

  it('have room for more limits than one byte could number', () => {
    const limits = Array.from({ length: 200 }, (_, i) => new StoredLimit(i + 1, shape));
    const keys = limits.map((_, i) => `k${i}`);

    const places = encodeCall({ keys, limits, operations: [] }, 'SHA')[202];

    assert.equal(String(places).slice(-2), String.fromCharCode(1, 72));
  });

  it('are ASCII', () => {
    const operations = [ACQUIRE, 100_000_000, 0, 1, 1, 100_000_000];
    const args = encodeCall({ keys: ['k'], limits: [limit], operations }, 'SHA');

    assert.match(args.join(''), /^[\0-\x7f]*$/);
  });
});
