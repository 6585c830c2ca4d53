// npm run soak: half an hour of mixed load on a real sidecar with a real Redis, clients that leave at any moment and an
// application that fails in every way. Then the account: every request counted once, every token in Redis spent by
// somebody, no connection, timer or descriptor left, memory where it was. Exits 1 when something is not so.
import { randomInt } from 'node:crypto';
import process from 'node:process';
import { readArguments } from '../scripts/arguments.ts';
import { accountOf, flatness } from '../test/soak/account.ts';
import { runSoak } from '../test/soak/campaign.ts';
import { machineFacts } from './machine.ts';
import { keep } from './report.ts';
import type { SoakResult } from './soak-result.ts';

/** What V8 may keep of code and shapes it met late; a leak of 10 bytes a request would be twice as much. */
const MOST_HEAP_MB = 2;
/** Pages that the allocator does not give back at once. */
const MOST_RESIDENT_MB = 12;
const SAMPLES = 60;

const { values: flags } = readArguments({
  command: 'npm run soak',
  about: 'Mixed load with clients that leave, then the account. Exit code 1: something is not so.',
  lines: [
    '--minutes N   how long (30); memory is judged from the sixth part on',
    '--rate N      visits a second (100)',
    '--seed N      of the choice of visits',
    '--dry         keep no results',
  ],
  config: {
    options: {
      minutes: { type: 'string', default: '30' },
      rate: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      dry: { type: 'boolean', default: false },
    },
  },
  numbers: ['minutes', 'rate', 'seed'],
});
const minutes = Number(flags.minutes);
const seed = Number(flags.seed);

say(`seed ${String(seed)}`);
const report = await runSoak({
  ...{ minutes, perSecond: Number(flags.rate), seed },
  upstreamTimeoutSeconds: 10,
  onSurprise: say,
  sampleMs: (minutes * 60_000) / SAMPLES,
  onSample: ({ atMs, heapBytes, residentBytes }, ledger) => {
    const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
    const at = `${(atMs / 60_000).toFixed(1).padStart(5)} min`;
    const memory = `heap ${mb(heapBytes)} MB, resident ${mb(residentBytes)} MB`;
    say(
      `${at}  ${memory}, ${String(ledger.sent)} requests, ${String(ledger.surpriseCount)} surprises`,
    );
  },
});
const checks = [
  ...accountOf(report),
  ...flatness(report.samples, {
    fromMs: (minutes * 60_000) / 6,
    mostHeapMb: MOST_HEAP_MB,
    mostResidentMb: MOST_RESIDENT_MB,
  }),
];
for (const { what, measured, bound, isMet } of checks) {
  process.stdout.write(`${isMet ? 'met   ' : 'MISSED'}  ${what}: ${measured} (${bound})\n`);
}
if (!flags.dry) {
  const result: SoakResult = {
    at: new Date().toISOString(),
    machine: machineFacts(),
    ...{ minutes: Math.round(report.seconds / 6) / 10, seed },
    requests: report.ledger.sent,
    abandoned: report.ledger.abandoned,
    clientAborts: report.clientAborts,
    verdicts: report.verdicts,
    tokens: report.taken,
    visits: Object.fromEntries(report.ledger.visits),
    samples: report.samples.map(({ atMs, heapBytes, residentBytes }) => ({
      minute: Math.round(atMs / 6_000) / 10,
      heapMb: Math.round(heapBytes / 1e4) / 100,
      residentMb: Math.round(residentBytes / 1e4) / 100,
    })),
    checks,
  };
  await keep('soak.json', result);
}
if (checks.some(({ isMet }) => !isMet)) process.exitCode = 1;

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
