// docs/performance.md is what the kept results say, and the budget's verdicts are read the right way round.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { figuresOf, verdictOn } from '../../bench/figures.ts';
import type { Figure, FigureVerdict } from '../../bench/figures.ts';
import type { AccuracyCell } from '../../bench/accuracy.ts';
import type { ContenderName } from '../../bench/contender.ts';
import type { Cell, Http2Cell, PeersResult, Scenario } from '../../bench/peers-result.ts';
import { median } from '../../bench/peers-result.ts';
import { composeReport } from '../../bench/report.ts';

const docs = path.join(import.meta.dirname, '..', '..', 'docs');

describe('docs/performance.md', () => {
  it('is written from the newest results', async () => {
    const { markdown, pictures } = await composeReport();

    assert.equal(await readFile(path.join(docs, 'performance.md'), 'utf8'), markdown);
    for (const [name, svg] of Object.entries(pictures)) {
      assert.equal(await readFile(path.join(docs, name), 'utf8'), svg);
    }
  });
});

describe('a figure', () => {
  const gated = { goal: 0.5, gate: 0.7 };
  const verdicts: Readonly<
    Record<string, readonly [Pick<Figure, 'value' | 'goal' | 'gate'>, FigureVerdict]>
  > = {
    'meets its goal at the bound': [{ value: 0.5, ...gated }, 'goal met'],
    'meets its gate past the goal': [{ value: 0.51, ...gated }, 'gate met'],
    'meets its gate at the bound': [{ value: 0.7, ...gated }, 'gate met'],
    'misses its gate past it': [{ value: 0.71, ...gated }, 'gate missed'],
    'without a gate misses its goal only': [{ value: 9, goal: 0.5 }, 'goal missed'],
    'that could not be measured is absent, no miss': [{ value: NaN, ...gated }, 'absent'],
  };
  for (const [claim, [figure, verdict]] of Object.entries(verdicts)) {
    it(claim, () => {
      assert.equal(verdictOn({ what: 'x', unit: '×', ...figure }), verdict);
    });
  }
});

describe('figures of a run', () => {
  it('compare processor time, Redis included, within each round', () => {
    const result = resultOf([
      cell('weir', 'hot', 1, { proxyUs: 20, redisUs: 5 }),
      cell('nginx-lua', 'hot', 1, { proxyUs: 30, redisUs: 20 }),
      // A round in which the machine was twice as slow says the same.
      cell('weir', 'hot', 2, { proxyUs: 40, redisUs: 10 }),
      cell('nginx-lua', 'hot', 2, { proxyUs: 60, redisUs: 40 }),
    ]);

    assert.equal(
      valueOf(result, 'CPU per allowed request, one hot key, against nginx + Lua + Redis'),
      0.5,
    );
  });

  it('cannot tell a ratio to a contender that was absent', () => {
    const result = resultOf([cell('weir', 'hot', 1, { proxyUs: 20, redisUs: 5 })]);

    assert.equal(
      valueOf(result, 'CPU per allowed request, one hot key, against nginx + Lua + Redis'),
      NaN,
    );
  });

  it('compare over HTTP/2 within each round, and are absent until both speak it', () => {
    const what = "CPU per request over HTTP/2 without TLS, against Envoy's local limit";
    const own = http2Cell('weir-http2', { proxyUs: 20, redisUs: 5 });
    const theirs = http2Cell('envoy-local-http2', { proxyUs: 50, redisUs: 0 });

    assert.equal(valueOf({ ...resultOf([]), http2: [own, theirs] }, what), 0.5);
    assert.equal(valueOf({ ...resultOf([]), http2: [theirs] }, what), NaN);
    assert.equal(valueOf(resultOf([]), what), NaN);
  });

  it('count admissions of two instances beyond their limit and short of it alike', () => {
    const what =
      'requests admitted beyond or short of one limit, two instances, 20 s at 4 times the limit';
    const admitting = (admitted: number): PeersResult => ({
      ...resultOf([]),
      accuracy: [accuracyCell(admitted)],
    });

    assert.equal(valueOf(admitting(60), what), 0);
    assert.equal(valueOf(admitting(62), what), 2);
    assert.equal(valueOf(admitting(57), what), 3);
    assert.equal(valueOf(resultOf([]), what), NaN);
  });

  it('count admissions beyond one bucket and short of it alike', () => {
    const what = 'requests admitted beyond or short of one bucket, 64 connections';

    assert.equal(valueOf(resultOf([], { admitted: 5_003 }), what), 3);
    assert.equal(valueOf(resultOf([], { admitted: 4_997 }), what), 3);
  });
});

describe('median', () => {
  it('is the middle value, or between the two middle ones', () => {
    assert.equal(median([3, 1, 2]), 2);
    assert.equal(median([4, 1, 2, 3]), 2.5);
    assert.equal(median([7]), 7);
    assert.equal(median([]), NaN);
  });
});

function valueOf(result: PeersResult, what: string): number | undefined {
  return figuresOf(result).find((figure) => figure.what === what)?.value;
}

function cell(
  contender: ContenderName,
  scenario: Scenario,
  round: number,
  cost: Pick<Cell, 'proxyUs' | 'redisUs'>,
): Cell {
  const load = { requests: 1, refused: 0, perSecond: 1, p50Ms: 1, p99Ms: 1 };
  return { contender, scenario, round, ...load, ...cost, redisCalls: 0, residentMb: 1 };
}

function http2Cell(
  contender: ContenderName,
  cost: Pick<Http2Cell, 'proxyUs' | 'redisUs'>,
): Http2Cell {
  const load = { requests: 1, refused: 0, perSecond: 1 };
  return { contender, round: 1, ...load, ...cost, redisCalls: 0, residentMb: 1 };
}

/** A burst of 50 and one second of 10: 60 are exact. */
function accuracyCell(admitted: number): AccuracyCell {
  return {
    contender: 'weir',
    limit: { capacity: 50, perSecond: 10 },
    ...{ sent: 100, admitted, refused: 100 - admitted, failed: 0 },
    ...{ firstSentMs: 0, firstAnsweredMs: 0, lastSentMs: 1_000, lastAnsweredMs: 1_000 },
  };
}

function resultOf(cells: readonly Cell[], { admitted = 5_000 } = {}): PeersResult {
  return {
    format: 1,
    at: '2026-01-01T00:00:00.000Z',
    machine: { processor: 'x', cores: 2, memoryGiB: 1, kernel: 'x', node: 'x' },
    busyShare: 0,
    isQuiet: true,
    rounds: 2,
    seconds: 1,
    cells,
    paced: [],
    sidecar: {
      readyMs: [1],
      idleMb: 1,
      loadMb: 1,
      oneBucket: { capacity: 5_000, admitted, redisCalls: 0 },
    },
    absent: [],
  };
}
