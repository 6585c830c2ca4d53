import assert from 'node:assert/strict';
import { test } from 'node:test';
import process from 'node:process';
import { TokenBuckets } from '../../sidecar/limiter/token-bucket.ts';
import { readScript } from '../../sidecar/store/script-source.ts';
import { openRedis } from '../support/redis.ts';
import { HistoryCounts, checkHistories } from './limiter-histories.ts';

const DECISIONS = 100_000;
const RUNS_PER_ROUND = 400;

test('script, twin and model agree on every grant, wait, level and state', async (t) => {
  await using server = await openRedis();
  const voices = { redis: server.client(), script: readScript(), Twin: TokenBuckets };
  const seed = Number(process.env['WEIR_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed} (WEIR_SEED=${seed} repeats it)`);
  const total = new HistoryCounts();

  for (let round = 0; total.decisions < DECISIONS; round += 1) {
    const counts = await checkHistories(voices, { seed: seed + round, runs: RUNS_PER_ROUND });
    for (const name of Object.keys(total)) add(total, counts, name);
  }

  t.diagnostic(JSON.stringify(total));
  assert.ok(total.decisions >= DECISIONS);
  // A generator that no longer reaches these would prove nothing about them.
  for (const [name, count] of Object.entries(total)) {
    assert.ok(Number(count) >= 100, `only ${count} × ${name}`);
  }
});

function add(total: HistoryCounts, counts: HistoryCounts, name: string): void {
  if (isCount(name, total)) total[name] += counts[name];
}

function isCount(name: string, total: HistoryCounts): name is keyof HistoryCounts {
  return name in total;
}
