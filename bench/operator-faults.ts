// npm run bench:operator-faults: what the operator promises while everything around the sidecars fails, on a real API
// server: two replicas, three sidecars, one Redis, traffic the whole time, and a fault every few seconds for at least
// ten minutes. Exits 1 when an answer is not what the policies say, a status flaps, or something does not recover.
import process from 'node:process';
import { readArguments } from '../scripts/arguments.ts';
import { EnforcedApp } from '../test/cluster/enforced-app.ts';
import {
  FIXED_CAPACITY,
  PODS,
  runCampaign,
  type Account,
  type CampaignReport,
  type Strike,
} from '../test/cluster/fault-campaign.ts';
import { faults } from '../test/cluster/operator-faults.ts';
import type { FaultCheck } from './faults-result.ts';
import { machineFacts } from './machine.ts';
import { keep } from './report.ts';

const { values: flags } = readArguments({
  command: 'npm run bench:operator-faults',
  about: 'What the operator promises while everything fails. Exit code 1: something is not so.',
  lines: ['--minutes N   at least so long (10)', '--dry         keep no results'],
  config: {
    options: {
      minutes: { type: 'string', default: '10' },
      dry: { type: 'boolean', default: false },
    },
  },
  numbers: ['minutes'],
});

const names = Object.keys(faults);
await using app = await EnforcedApp.open({ replicas: 2 });
const report = await runCampaign(app, {
  faults: names,
  atLeastMs: Number(flags.minutes) * 60_000,
  onStrike: ({ fault, recoveredMs }) => {
    process.stderr.write(`${(recoveredMs / 1_000).toFixed(1).padStart(6)} s  ${fault}\n`);
  },
});
const checks = checksOf(report);
for (const { what, measured, bound, isMet } of checks) {
  process.stdout.write(`${isMet ? 'met   ' : 'MISSED'}  ${what}: ${measured} (${bound})\n`);
}
if (!flags.dry) {
  await keep('operator-faults.json', {
    at: new Date().toISOString(),
    machine: machineFacts(),
    minutes: Math.round(report.seconds / 6) / 10,
    replicas: app.operators.replicas.length,
    sidecars: PODS,
    strikes: report.strikes.length,
    leaseLosses: report.endings,
    recovery: names.map((fault) => recoveryOf(fault, report.strikes)),
    checks,
  });
}
if (checks.some(({ isMet }) => !isMet)) process.exitCode = 1;

function checksOf({ steady, fixed, flaps, ...found }: CampaignReport): FaultCheck[] {
  return [
    othersCheck('steady', steady),
    othersCheck('fixed', fixed),
    {
      what: 'admitted of a bucket that fills all the time',
      measured: `${String(steady.admitted)} of ${String(steady.requests)}`,
      bound: `${String(steady.least)}..${String(steady.most)}`,
      isMet: steady.admitted >= steady.least && steady.admitted <= steady.most,
    },
    {
      what: 'admitted of a bucket that never fills',
      measured: `${String(fixed.admitted)} of ${String(fixed.requests)}`,
      bound: `exactly ${String(FIXED_CAPACITY)}`,
      isMet: fixed.admitted === FIXED_CAPACITY,
    },
    {
      what: 'conditions of untouched policies that changed',
      measured: flaps.length === 0 ? 'none' : flaps.join('; '),
      bound: 'none',
      isMet: flaps.length === 0,
    },
    {
      what: 'writes of their status',
      measured: String(found.statusWrites),
      bound: 'none',
      isMet: found.statusWrites === 0,
    },
    {
      what: 'looks at a sidecar that found its rules from elsewhere than the stream',
      measured: `${String(found.fallbacks)} of ${String(found.looks)}`,
      bound: 'none',
      isMet: found.fallbacks === 0,
    },
    {
      what: 'CAs that signed, one after the other',
      measured: String(found.authorities),
      bound: 'at least 2',
      isMet: found.authorities >= 2,
    },
  ];
}

function othersCheck(which: string, { others, requests }: Account): FaultCheck {
  const told = Object.entries(others).map(([status, count]) => `${String(count)} × ${status}`);
  return {
    what: `answers to ${which} traffic that no policy gave`,
    measured: `${told.length === 0 ? 'none' : told.join(', ')} of ${String(requests)}`,
    bound: 'none',
    isMet: told.length === 0,
  };
}

interface Recovery {
  readonly fault: string;
  readonly strikes: number;
  /** Until an edit was in force on every sidecar, in seconds. */
  readonly median: number;
  readonly longest: number;
}

function recoveryOf(fault: string, strikes: readonly Strike[]): Recovery {
  const own = strikes
    .filter((strike) => strike.fault === fault)
    .map(({ recoveredMs }) => Math.round(recoveredMs / 100) / 10)
    .toSorted((a, b) => a - b);
  const median = own[Math.floor(own.length / 2)] ?? 0;
  return { fault, strikes: own.length, median, longest: own.at(-1) ?? 0 };
}
