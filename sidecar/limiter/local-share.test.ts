import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { localShare } from './local-share.ts';
import { MAX_INTEGER, StoredLimit } from './stored-limit.ts';

describe('the local share', () => {
  test('of one pod is the whole limit', () => {
    const limit = new StoredLimit(3, {
      capacity: 100,
      unitsPerToken: 20_000,
      unitsPerTick: 1,
      tickUs: 1,
    });

    assert.deepEqual(localShare(limit, 1), limit);
  });

  test('of three pods is a third of the capacity, rounded down, at a third of the rate', () => {
    const limit = new StoredLimit(3, {
      capacity: 100,
      unitsPerToken: 20_000,
      unitsPerTick: 1,
      tickUs: 1,
    });

    const share = localShare(limit, 3);

    assert.equal(share.capacity, 33);
    assert.equal(share.unitsPerToken, 60_000);
    assert.equal(share.unitsPerTick, 1);
    assert.equal(share.generation, 3);
  });

  test('is never less than one token', () => {
    const limit = new StoredLimit(1, {
      capacity: 2,
      unitsPerToken: 1,
      unitsPerTick: 1,
      tickUs: 1_000,
    });

    assert.equal(localShare(limit, 1_000).capacity, 1);
  });

  test('refills more slowly rather than faster where the integers would leave the exact range', () => {
    const limit = new StoredLimit(1, {
      capacity: 3,
      unitsPerToken: MAX_INTEGER / 3,
      unitsPerTick: 1_000,
      tickUs: 1,
    });

    const share = localShare(limit, 500);

    assert.ok(share.full <= MAX_INTEGER);
    assert.ok(
      BigInt(share.unitsPerToken) * 1_000n >=
        BigInt(limit.unitsPerToken) * 500n * BigInt(share.unitsPerTick),
    );
  });

  test('of the slowest bucket at the largest fleet still is a limit', () => {
    const limit = new StoredLimit(1, {
      capacity: 1,
      unitsPerToken: MAX_INTEGER,
      unitsPerTick: 1,
      tickUs: 1_000,
    });

    const share = localShare(limit, 1_000);

    assert.equal(share.unitsPerToken, MAX_INTEGER);
    assert.equal(share.unitsPerTick, 1);
  });

  test('of any limit is exact and, over all pods, never more than it', () => {
    const limits = fc.record({
      capacity: fc.integer({ min: 1, max: 100_000_000 }),
      unitsPerToken: fc.integer({ min: 1, max: 90_000_000 }),
      unitsPerTick: fc.integer({ min: 1, max: 100_000_000 }),
      replicas: fc.integer({ min: 1, max: 100_000 }),
    });

    fc.assert(
      fc.property(limits, ({ replicas, ...numbers }) => {
        const limit = new StoredLimit(1, { ...numbers, tickUs: 1 });
        const share = localShare(limit, replicas);
        const rateTimesToken = BigInt(share.unitsPerTick) * BigInt(limit.unitsPerToken);
        const isSlowest = share.unitsPerTick === 1;
        assert.ok(share.capacity * replicas <= limit.capacity || share.capacity === 1);
        assert.ok(
          isSlowest ||
            rateTimesToken * BigInt(replicas) <=
              BigInt(limit.unitsPerTick) * BigInt(share.unitsPerToken),
        );
      }),
    );
  });
});
