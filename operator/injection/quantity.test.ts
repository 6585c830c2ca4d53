import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isLarger, parseQuantity } from './quantity.ts';

describe('a quantity', () => {
  it('is read as Kubernetes writes it, a number too', () => {
    const written = ['100m', '1', '1.5', 2, '1k', '1Ki', '64Mi', '1G', '1Gi', '2T', '1Ti', '3M'];

    assert.deepEqual(written.map(parseQuantity), [
      ...[0.1, 1, 1.5, 2, 1_000, 1_024, 67_108_864],
      ...[1e9, 1_073_741_824, 2e12, 1_099_511_627_776, 3e6],
    ]);
  });

  it('is none in another form', () => {
    const written = ['', 'much', '-1', '1e3', '1Pi', '1 Gi', '.5', '9'.repeat(16)];

    assert.deepEqual(
      written.map(parseQuantity),
      written.map(() => undefined),
    );
    assert.equal(parseQuantity('9'.repeat(15)), 999_999_999_999_999);
  });

  it('is larger than another only where both can be read', () => {
    assert.deepEqual(
      [
        isLarger('101m', '100m'),
        isLarger('100m', '0.1'),
        isLarger('1Gi', '1023Mi'),
        isLarger('1Pi', '1'),
        isLarger('1', '1Pi'),
      ],
      [true, false, true, false, false],
    );
  });
});
