// The fuzzer in small: all rounds that are kept, and some hundred new ones. `npm run fuzz` plays tens of thousands.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { FuzzCampaign, makeRound, roundRandom } from '../fuzz/campaign.ts';
import type { FuzzReport } from '../fuzz/campaign.ts';
import type { Dialect, Round } from '../fuzz/dialect.ts';
import { http1Dialect } from '../fuzz/http1-dialect.ts';
import { http2Dialect } from '../fuzz/http2-dialect.ts';
import { parseSeeds, writtenSeed } from '../fuzz/seed-file.ts';

const folder = path.join(import.meta.dirname, '..', 'fuzz', 'seeds');
const DIALECTS = [
  { dialect: http1Dialect, leastSeeds: 40 },
  { dialect: http2Dialect, leastSeeds: 20 },
];
const NEW_ROUNDS = 300;

async function fuzzed(
  dialect: Dialect,
  seed: number,
  { rounds, given }: { readonly rounds: number; readonly given: readonly Round[] },
): Promise<FuzzReport> {
  await using campaign = await FuzzCampaign.open({
    ...{ dialect, seed, given },
    goesOn: (played) => played < rounds + given.length,
  });
  return await campaign.run();
}

async function keptRounds({ name }: Dialect): Promise<Round[]> {
  const own = path.join(folder, name);
  const files = (await readdir(own)).filter((file) => file.endsWith('.cases'));
  const texts = await Promise.all(files.map((file) => readFile(path.join(own, file), 'utf8')));
  return texts.flatMap(parseSeeds).map(({ round }) => round);
}

function assertClean({ findings, faults, seen, admitted }: FuzzReport): void {
  assert.deepEqual(
    findings.flatMap(({ what, number }) => what.map((one) => `round ${String(number)}: ${one}`)),
    [],
  );
  assert.equal(faults, 0);
  assert(seen > 0 && seen <= admitted, `${String(seen)} seen, ${String(admitted)} admitted`);
}

for (const { dialect, leastSeeds } of DIALECTS) {
  describe(`a strict application behind fuzzed connections of ${dialect.name}`, () => {
    it('sees only what was sent as a request: every round that was kept', async () => {
      const given = await keptRounds(dialect);

      const report = await fuzzed(dialect, 0, { rounds: 0, given });

      assert(given.length >= leastSeeds, `only ${String(given.length)} seeds`);
      assert.equal(report.rounds - report.playedAgain, given.length);
      assertClean(report);
    });

    const seed = randomInt(2 ** 31);

    it(`sees only what was sent as a request: ${String(NEW_ROUNDS)} new rounds (seed ${String(seed)})`, async () => {
      const report = await fuzzed(dialect, seed, { rounds: NEW_ROUNDS, given: [] });

      assertClean(report);
      assert(report.seen > NEW_ROUNDS, `only ${String(report.seen)} requests came through`);
    });
  });
}

describe('a kept round', () => {
  for (const { dialect } of DIALECTS) {
    it(`of ${dialect.name} reads back as it was, but for the pieces`, () => {
      for (let number = 0; number < 40; number += 1) {
        const round = makeRound(dialect, roundRandom(7, number));
        const kept = round.answers.map((one) => [
          one.bytes,
          one.then === 'keep' ? 'keep' : 'close',
        ]);

        const [seed] = parseSeeds(writtenSeed('x', round));

        assert.deepEqual(
          seed?.round.connections,
          round.connections.map((pieces) => [pieces.join('')]).filter(([bytes]) => bytes !== ''),
        );
        assert.deepEqual(
          seed.round.answers.map(({ bytes, then }) => [bytes, then]),
          kept.filter(([bytes]) => bytes !== ''),
        );
      }
    });
  }
});
