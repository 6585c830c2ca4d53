// The limits of a soak. No bucket earns a whole token while it runs, so that what a bucket lacks, rounded up to tokens, is
// exactly what was taken from it.
import type { Redis } from 'ioredis';

export const rules = ['all', 'priced', 'scarce', 'aborted'] as const;
export type RuleName = (typeof rules)[number];

/** What a scarce bucket holds. */
const SCARCE = 2;
/** A bucket may take a year to fill, and no longer. */
const MOST_MINUTES_TO_FILL = 365 * 24 * 60;

export interface SoakLimits {
  /** Minutes for one token: above the length of the run. */
  readonly tokenMinutes: number;
  /** Tokens of every bucket but the scarce ones. */
  readonly capacity: number;
}

/** For a run of at most `minutes`, with as much again for what is slow. */
export function limitsFor(minutes: number): SoakLimits {
  const tokenMinutes = Math.max(60, Math.ceil(2 * minutes));
  return { tokenMinutes, capacity: Math.floor(MOST_MINUTES_TO_FILL / tokenMinutes) };
}

/**
 * `/free` is nobody's; `/aborted` has a bucket of its own, so that the store says how many of those were admitted; all
 * else pays one token, `/priced` what its fields say as well, and `/scarce` out of a small bucket.
 */
export function soakPolicies({ capacity, tokenMinutes }: SoakLimits): Record<string, string> {
  const bucket = (size: number): string =>
    `buckets: [{ capacity: ${String(size)}, refill: { tokens: 1, every: ${String(tokenMinutes)}m } }]`;
  const policy = (name: RuleName, lines: readonly string[]): string =>
    [
      'apiVersion: weir.dev/v1alpha1',
      'kind: RateLimitPolicy',
      `metadata: { name: ${name} }`,
      'spec:',
      '  selector: {}',
      '  failureMode: Closed',
      '  rules:',
      `    - name: ${name}`,
      '      key: [{ header: { name: X-Client } }]',
      '      onMissingKey: Deny',
      ...lines.map((line) => `      ${line}`),
      '',
    ].join('\n');
  const under = (prefix: string): string => `{ path: { type: Prefix, value: ${prefix} } }`;
  return {
    'all.yaml': policy('all', [
      `except: [${under('/free')}, ${under('/aborted')}]`,
      bucket(capacity),
    ]),
    'priced.yaml': policy('priced', [
      `match: [${under('/priced')}]`,
      'cost:',
      '  header: { name: X-Cost, default: 1, max: 9 }',
      '  response: { header: { name: X-Took, max: 5 } }',
      bucket(capacity),
    ]),
    'scarce.yaml': policy('scarce', [`match: [${under('/scarce')}]`, bucket(SCARCE)]),
    'aborted.yaml': policy('aborted', [`match: [${under('/aborted')}]`, bucket(capacity)]),
  };
}

/** The tokens that all buckets of each rule lack, as the store has them. */
export async function tokensTaken(redis: Redis): Promise<Record<RuleName, number>> {
  const taken: Record<RuleName, number> = { all: 0, priced: 0, scarce: 0, aborted: 0 };
  for (let cursor = '0'; ;) {
    const [next, keys] = await redis.scan(cursor, 'MATCH', 'weir1:*', 'COUNT', 500);
    const states = keys.length === 0 ? [] : await redis.mget(keys);
    for (const [i, state] of states.entries()) {
      const rule = rules.find((name) => keys[i]?.includes(`}:${name}:`));
      if (rule !== undefined) taken[rule] += tokensLacking(state ?? '');
    }
    if (next === '0') return taken;
    cursor = next;
  }
}

/** Of a stored state: "level stamp generation capacity unitsPerToken unitsPerTick tickUs". */
function tokensLacking(state: string): number {
  const [level = NaN, , , capacity = NaN, unitsPerToken = NaN] = state.split(' ').map(Number);
  return Math.ceil((capacity * unitsPerToken - level) / unitsPerToken);
}
