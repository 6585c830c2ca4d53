// The account of a soak: what each number has to be, and whether it is.
import type { Rest, Sample, SoakReport } from './campaign.ts';
import { hasNoMore } from './campaign.ts';
import { rules } from './soak-policies.ts';

export interface SoakCheck {
  readonly what: string;
  /** With its unit, as a report shows it. */
  readonly measured: string;
  readonly bound: string;
  readonly isMet: boolean;
}

/** Everything that has to add up exactly, and everything that has to be gone again. No time and no size in it. */
export function accountOf(report: SoakReport): SoakCheck[] {
  const { ledger, zeros } = report;
  return [
    check('answers and visits that were not as they should be', ledger.surpriseCount, 0),
    ...verdictChecks(report),
    ...tokenChecks(report),
    ...Object.entries(zeros).map(([name, value]) => check(name, value, 0)),
    ...restChecks(report),
  ];
}

function verdictChecks({ ledger, verdicts, taken, upstreamSaw, retries }: SoakReport): SoakCheck[] {
  const { allowed = 0, denied = 0, unavailable = 0, error = 0, exempt = 0 } = verdicts;
  // Of those that left before an answer the store knows how many it admitted; the others cost nothing and are errors.
  const admittedLeavers = taken.aborted;
  return [
    check(
      'received = allowed + denied + unavailable + error + exempt',
      allowed + denied + unavailable + error + exempt,
      ledger.sent,
    ),
    check(
      'allowed = answered by admission + left, but charged',
      allowed,
      ledger.allowed + admittedLeavers,
    ),
    check('denied', denied, ledger.denied),
    check('exempt', exempt, ledger.exempt),
    check('unavailable', unavailable, 0),
    check(
      'error = malformed + left before anything was asked',
      error,
      ledger.malformed + ledger.abandoned - admittedLeavers,
    ),
    {
      what: 'requests the application saw',
      measured: String(upstreamSaw),
      bound: `≤ allowed + exempt + retries`,
      isMet: upstreamSaw <= allowed + exempt + retries,
    },
  ];
}

function tokenChecks({ ledger, taken }: SoakReport): SoakCheck[] {
  return rules
    .filter((rule) => rule !== 'aborted')
    .map((rule) =>
      check(`tokens missing in Redis, rule ${rule}`, taken[rule], ledger.tokens[rule]),
    );
}

function restChecks({ before, after }: SoakReport): SoakCheck[] {
  return [
    check('client connections at rest', after.connections, 0),
    check('tunnels at rest', after.tunnels, 0),
    {
      what: 'file descriptors at rest',
      measured: String(after.descriptors),
      bound: `≤ ${String(before.descriptors)}, as before the load`,
      isMet: after.descriptors <= before.descriptors,
    },
    {
      what: 'sockets, servers and timers at rest',
      measured: resourceText(after),
      bound: `no more than before the load: ${resourceText(before)}`,
      isMet: hasNoMore(after.facts.resources, before.facts.resources),
    },
  ];
}

function resourceText({ facts }: Rest): string {
  const names = Object.keys(facts.resources).sort();
  return names.map((name) => `${String(facts.resources[name])} ${name}`).join(', ');
}

function check(what: string, value: number, due: number): SoakCheck {
  return { what, measured: String(value), bound: `= ${String(due)}`, isMet: value === due };
}

export interface FlatnessOptions {
  /** Samples before are warming up. */
  readonly fromMs: number;
  /** What the median of the last third may be above that of the first third, in MB (10^6 bytes). */
  readonly mostHeapMb: number;
  readonly mostResidentMb: number;
}

/** Whether memory stays where it is, by the medians of the first and the last third of the samples. */
export function flatness(samples: readonly Sample[], options: FlatnessOptions): SoakCheck[] {
  const warm = samples.filter(({ atMs }) => atMs >= options.fromMs);
  const third = Math.max(1, Math.floor(warm.length / 3));
  const growth = (read: (sample: Sample) => number): number => {
    const values = warm.map((sample) => read(sample) / 1e6);
    return median(values.slice(-third)) - median(values.slice(0, third));
  };
  const bounded = (what: string, mb: number, most: number): SoakCheck => ({
    what: `${what}, ${String(warm.length)} samples, last third less first`,
    measured: `${mb.toFixed(2)} MB`,
    bound: `≤ ${String(most)} MB`,
    isMet: warm.length >= 3 && mb <= most,
  });
  return [
    bounded(
      'heap after a collection',
      growth((one) => one.heapBytes),
      options.mostHeapMb,
    ),
    bounded(
      'outside of the heap',
      growth((one) => one.externalBytes),
      options.mostHeapMb,
    ),
    bounded(
      'resident memory',
      growth((one) => one.residentBytes),
      options.mostResidentMb,
    ),
  ];
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
