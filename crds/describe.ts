// A policy in plain words, for whoever wrote it to see whether it says what they meant.
import { nameOfBucket } from './bucket.ts';
import type { Bucket } from './bucket.ts';
import { durationOf } from './duration.ts';
import { conditionWords, keyWords, selectorWords } from './words.ts';
import type { Match } from './match.ts';
import type { PolicySpec, RateLimitPolicy } from './policy.ts';
import { DEFAULT_STATUS } from './response.ts';
import type { Rule } from './rule.ts';

/** The policy as lines of text, rules indented below it; no line end at the end. Takes any valid policy. */
export function describePolicy({ metadata, spec }: RateLimitPolicy): string {
  const name = `${metadata.namespace ?? 'default'}/${metadata.name}`;
  const lines = [
    `Policy ${name}`,
    ...indent([
      `Applies to ${selectorWords(spec.selector)}${portWords(spec.ports)}.`,
      modeWords(spec),
      scopeWords(spec),
      failureWords(spec),
      ...addressWords(spec),
      ...tokenWords(spec),
      ...exceptWords(spec.except, 'No rule looks at'),
    ]),
    ...spec.rules.flatMap((rule) => ['', ...indent(ruleLines(rule, spec))]),
  ];
  return lines.join('\n');
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

function portWords(ports: PolicySpec['ports']): string {
  return ports === undefined ? '' : `, on port ${ports.join(' or ')}`;
}

function modeWords({ mode, enforcePercent = 100, response }: PolicySpec): string {
  if (mode === 'Disabled') return 'Disabled: nothing is limited or counted.';
  if (mode === 'Shadow') return 'Shadow: counts what it would refuse, and refuses nothing.';
  const answer = `Enforced: refuses with status ${response?.status ?? DEFAULT_STATUS}`;
  if (enforcePercent === 100) return `${answer}.`;
  return `${answer} for ${enforcePercent} % of the clients, and only counts for the others.`;
}

function scopeWords({ scope }: PolicySpec): string {
  switch (scope) {
    case 'Policy':
      return 'All pods share the buckets.';
    case 'Workload':
      return 'The pods of one workload share the buckets.';
    case 'Pod':
      return 'Each pod has buckets of its own.';
  }
}

function failureWords({ failureMode, scope }: PolicySpec): string {
  if (scope === 'Pod') return 'No store is needed.';
  switch (failureMode) {
    case 'Open':
      return 'While the store is away every request is let through.';
    case 'Closed':
      return 'While the store is away every request is answered with 503.';
    case 'Local':
      return 'While the store is away each pod limits to its share.';
  }
}

function addressWords({ clientIP }: PolicySpec): string[] {
  if (clientIP?.trustedProxies !== undefined) {
    const networks = clientIP.trustedProxies.join(', ');
    return [`The client is the last address of X-Forwarded-For outside of ${networks}.`];
  }
  if ((clientIP?.trustedHops ?? 0) === 0) return [];
  const hops = String(clientIP?.trustedHops);
  return [`The client is address ${hops} from the right of X-Forwarded-For.`];
}

function tokenWords({ jwt }: PolicySpec): string[] {
  if (jwt === undefined) return [];
  const audience = jwt.audiences === undefined ? '' : ` for ${jwt.audiences.join(' or ')}`;
  return [`Claims are of tokens by ${jwt.issuer}${audience}, in the header ${jwt.header}.`];
}

function exceptWords(except: readonly Match[] | undefined, intro: string): string[] {
  return except === undefined ? [] : [`${intro} requests where ${conditionWords(except)}.`];
}

function ruleLines(rule: Rule, spec: PolicySpec): string[] {
  return [
    `Rule ${rule.name}${softened(rule)}`,
    ...indent([
      rule.match === undefined
        ? 'Limits every request.'
        : `Limits requests where ${conditionWords(rule.match)}.`,
      ...exceptWords(rule.except, 'Not'),
      clientWords(rule, spec),
      ...costWords(rule),
      ...limitLines(rule),
    ]),
  ];
}

function softened({ mode }: Rule): string {
  if (mode === undefined) return '';
  return mode === 'Shadow' ? ' (shadow: only counts)' : ' (disabled)';
}

function clientWords({ key, onMissingKey = 'ClientIP' }: Rule, spec: PolicySpec): string {
  if (key === undefined) return 'All of them share one allowance.';
  const each = `Each ${keyWords(key)} has its own allowance`;
  if (key.every((part) => isAlwaysThere(Object.keys(part)))) return `${each}.`;
  switch (onMissingKey) {
    case 'Skip':
      return `${each}; a request without it is not limited.`;
    case 'Deny':
      return `${each}; a request without it is refused with ${spec.response?.status ?? DEFAULT_STATUS}.`;
    case 'ClientIP':
      return `${each}; a request without it counts for the address of its client.`;
    case 'Shared':
      return `${each}; requests without it share one.`;
  }
}

function isAlwaysThere(kinds: readonly string[]): boolean {
  return kinds.every((kind) => ['clientIP', 'path', 'method', 'constant'].includes(kind));
}

function costWords({ cost }: Rule): string[] {
  if (cost === undefined) return [];
  const lines: string[] = [];
  if (cost.tokens !== undefined) lines.push(`A request takes ${count(cost.tokens, 'token')}.`);
  if (cost.header !== undefined) {
    const { name, default: fallback, max } = cost.header;
    lines.push(
      `A request takes as many tokens as its header ${name} says, ${fallback} without it, at most ${max}.`,
    );
  }
  if (cost.response !== undefined) {
    const { name, max } = cost.response.header;
    lines.push(`The header ${name} of the response takes further tokens, at most ${max}.`);
  }
  return lines;
}

function limitLines({ buckets, tiers = [], onNoTier, cost }: Rule): string[] {
  const noun = cost === undefined ? 'request' : 'token';
  if (buckets !== undefined) return bucketLines(buckets, noun);
  const lines = tiers.flatMap((tier) => {
    const whom = tier.match === undefined ? 'everybody else' : `when ${conditionWords(tier.match)}`;
    return [`Tier ${tier.name}, ${whom}:`, ...indent(bucketLines(tier.buckets, noun))];
  });
  if (onNoTier === undefined) return lines;
  return [...lines, `Without a tier: ${onNoTier === 'Skip' ? 'not limited' : 'refused'}.`];
}

function bucketLines(buckets: readonly Bucket[], noun: string): string[] {
  return buckets.map((bucket) => {
    const { capacity, refill } = bucket;
    const name = buckets.length > 1 ? `Bucket ${nameOfBucket(bucket)}: up` : 'Up';
    const burst = `${name} to ${count(capacity, noun)} at once`;
    return `${burst}, then ${refill.tokens} every ${refill.every} (${rateWords(bucket)}).`;
  });
}

const SECOND_MS = 1_000;
const DAY = { word: 'a day', ms: 86_400 * SECOND_MS };
const STEPS = [
  { word: 'a second', ms: SECOND_MS },
  { word: 'a minute', ms: 60 * SECOND_MS },
  { word: 'an hour', ms: 3_600 * SECOND_MS },
  DAY,
];

// The smallest unit of time that holds at least one token, or a day.
function rateWords({ refill }: Bucket): string {
  const perMs = refill.tokens / durationOf(refill.every);
  const step = STEPS.find(({ ms }) => perMs * ms >= 1) ?? DAY;
  return `${Number((perMs * step.ms).toPrecision(3))} ${step.word}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
