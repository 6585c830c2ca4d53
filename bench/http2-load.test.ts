import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseH2load } from './http2-load.ts';

describe('what h2load prints', () => {
  it('tells how many requests were answered, and how many a second', () => {
    const text = printed({ done: 600, succeeded: 600, failed: 0, statuses: [600, 0, 0, 0] });

    assert.deepEqual(parseH2load(text, 3), { requests: 600, refused: 0, perSecond: 200 });
  });

  it('counts refusals among the answers', () => {
    const text = printed({ done: 600, succeeded: 1, failed: 599, statuses: [1, 0, 599, 0] });

    assert.deepEqual(parseH2load(text, 3), { requests: 600, refused: 599, perSecond: 200 });
  });

  it('is no measurement when a request failed without an answer', () => {
    const text = printed({ done: 600, succeeded: 590, failed: 10, statuses: [590, 0, 0, 0] });

    assert.throws(() => parseH2load(text, 3), /10 failed/);
  });

  it('is no measurement without any answer', () => {
    const text = printed({ done: 0, succeeded: 0, failed: 0, statuses: [0, 0, 0, 0] });

    assert.throws(() => parseH2load(text, 3), /0 done/);
  });
});

function printed({
  done,
  succeeded,
  failed,
  statuses,
}: {
  readonly done: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly statuses: readonly [number, number, number, number];
}): string {
  const [two, three, four, five] = statuses;
  return [
    'finished in 3.00s, 200.00 req/s, 20.76MB/s',
    `requests: ${done} total, ${done + 4} started, ${done} done, ${succeeded} succeeded, ${failed} failed, 0 errored, 0 timeout`,
    `status codes: ${two} 2xx, ${three} 3xx, ${four} 4xx, ${five} 5xx`,
  ].join('\n');
}
