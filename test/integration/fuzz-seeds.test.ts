// The fuzzer in small: all rounds that are kept, and some hundred new ones. `npm run fuzz` plays tens of thousands.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { FuzzCampaign, makeRound, roundRandom } from '../fuzz/campaign.ts';
import type { FuzzReport } from '../fuzz/campaign.ts';
import type { Round } from '../fuzz/dialect.ts';
import { http1Dialect } from '../fuzz/http1-dialect.ts';

import { parseSeeds, writtenSeed } from '../fuzz/seed-file.ts';

const folder = path.join(import.meta.dirname, '..', 'fuzz', 'seeds', 'http1');
const NEW_ROUNDS = 300;

async function fuzzed(seed: number, rounds: number, given: readonly Round[]): Promise<FuzzReport> {
  await using campaign = await FuzzCampaign.open({
    ...{ dialect: http1Dialect, seed, given },
    goesOn: (played) => played < rounds + given.length,
  });
  return await campaign.run();
}

function assertClean({ findings, faults, seen, admitted }: FuzzReport): void {
  assert.deepEqual(
    findings.flatMap(({ what, number }) => what.map((one) => `round ${String(number)}: ${one}`)),
    [],
  );
  assert.equal(faults, 0);
  assert(seen > 0 && seen <= admitted, `${String(seen)} seen, ${String(admitted)} admitted`);
}

describe('a strict application behind fuzzed connections', () => {
  it('sees only what was sent as a request: every round that was kept', async () => {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.cases'));
    const texts = await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')));
    const given = texts.flatMap(parseSeeds).map(({ round }) => round);

    const report = await fuzzed(0, 0, given);

    assert(given.length >= 40, `only ${String(given.length)} seeds`);
    assert.equal(report.rounds, given.length);
    assertClean(report);
  });

  const seed = randomInt(2 ** 31);

  it(`sees only what was sent as a request: ${String(NEW_ROUNDS)} new rounds (seed ${String(seed)})`, async () => {
    const report = await fuzzed(seed, NEW_ROUNDS, []);

    assertClean(report);
    assert(report.seen > NEW_ROUNDS, `only ${String(report.seen)} requests came through`);
  });
});

describe('a kept round', () => {
  it('reads back as it was, but for the pieces', () => {
    const round = makeRound(http1Dialect, roundRandom(7, 1));
    const kept = round.answers.map(({ bytes, then }) => [bytes, then === 'keep' ? then : 'close']);

    const [seed] = parseSeeds(writtenSeed('x', round));

    assert.deepEqual(
      seed?.round.connections,
      round.connections.map((pieces) => [pieces.join('')]),
    );
    assert.deepEqual(
      seed.round.answers.map(({ bytes, then }) => [bytes, then]),
      kept.filter(([bytes]) => bytes !== ''),
    );
  });
});
