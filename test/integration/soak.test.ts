// A soak in small: every kind of visit beside every other, then the account. `npm run soak` does it for half an hour and
// looks at memory as well.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import { accountOf } from '../soak/account.ts';
import { runSoak } from '../soak/campaign.ts';
import { visits } from '../soak/visits.ts';

const SECONDS = 5;

describe('mixed load with clients that leave', () => {
  const seed = randomInt(2 ** 31);

  it(`adds up, and leaves nothing behind (seed ${String(seed)})`, async () => {
    const report = await runSoak({
      ...{ minutes: SECONDS / 60, perSecond: 120, seed },
      ...{ sampleMs: 60_000, upstreamTimeoutSeconds: 3 },
    });

    const failed = accountOf(report).filter(({ isMet }) => !isMet);
    assert.deepEqual(failed, [], report.ledger.surprises.join('\n'));
    assert.deepEqual([...report.ledger.visits.keys()].sort(), Object.keys(visits).sort());
    assert(report.ledger.sent > 200, `only ${String(report.ledger.sent)} requests`);
  });
});
