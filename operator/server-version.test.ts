import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../test/support/stepped-clock.ts';
import { silentLog } from './log.ts';
import { LOWEST_MINOR, serverMinor } from './server-version.ts';

interface Asked {
  readonly clock: SteppedClock;
  readonly minor: Promise<number>;
  asked: number;
}

/** Asks a server that answers these in turn, the last of them for ever; an Error is a failure. */
function ask(answers: readonly unknown[], signal = new AbortController().signal): Asked {
  const clock = new SteppedClock();
  const asked = { clock, asked: 0 };
  const read = <Answer>(): Promise<Answer> => {
    const answer = answers[Math.min(asked.asked, answers.length - 1)];
    asked.asked += 1;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as Answer);
  };
  const client = { server: 'https://it', read };
  const minor = serverMinor({ client, clock, log: silentLog() }, signal);
  minor.catch(() => undefined);
  return Object.assign(asked, { minor });
}

describe('the version of the API server', () => {
  it('is its minor, whatever a vendor appends', async () => {
    assert.equal(await ask([{ major: '1', minor: '36' }]).minor, 36);
    assert.equal(await ask([{ major: '1', minor: '33+' }]).minor, 33);
    assert.equal(await ask([{ major: '1', minor: String(LOWEST_MINOR) }]).minor, LOWEST_MINOR);
  });

  it('is too old below the lowest, and no version where there is none', async () => {
    const rows: readonly (readonly [unknown, string])[] = [
      [{ major: '1', minor: String(LOWEST_MINOR - 1) }, `1.${LOWEST_MINOR - 1}`],
      [{ major: '2', minor: '40' }, '2.40'],
      [{ major: '1', minor: '' }, '1.'],
      [{ major: 1, minor: 36 }, 'no version: no Kubernetes answers there'],
      ['ok', 'no version: no Kubernetes answers there'],
    ];

    for (const [answer, found] of rows) {
      await assert.rejects(ask([answer]).minor, {
        code: 'CLUSTER_TOO_OLD',
        details: { server: 'https://it', found, right: `Kubernetes 1.${LOWEST_MINOR} or newer` },
      });
    }
  });

  it('is waited for while the server fails, a look every two seconds', async () => {
    const asked = ask([new Error('refused'), new Error('reset'), { major: '1', minor: '36' }]);
    await asked.clock.advance(1_999);
    const early = asked.asked;

    await asked.clock.advance(2_001);

    assert.deepEqual([early, asked.asked, await asked.minor], [1, 3, 36]);
  });

  it('is waited for no longer than the process is wanted', async () => {
    const end = new AbortController();
    const asked = ask([new Error('refused')], end.signal);
    await asked.clock.advance(1);

    end.abort();

    await assert.rejects(asked.minor, { name: 'AbortError' });
    assert.equal(asked.asked, 1);
  });
});
