// What a compiled policy makes use of, by name. A sidecar says which names it knows; a policy that uses another one is
// not sent to it, because a rule read without the part that is not understood would be another rule. Names are made
// from the policy's own words: a kind that is added to the compiler is a feature that no older sidecar lists.
import type { CompiledFieldMatch, CompiledMatch, CompiledPolicy, CompiledRule } from './bundle.ts';

/** Every feature of this contract, in a fixed order. */
export const FEATURES: readonly string[] = [
  'mode:Enforce',
  'mode:Shadow',
  'mode:Disabled',
  'failure:Open',
  'failure:Closed',
  'failure:Local',
  'scope:Policy',
  'scope:Workload',
  'scope:Pod',
  'quota:RateLimit',
  'quota:XRateLimit',
  'quota:None',
  'ports',
  'jwt',
  'match:methods',
  'match:path:Exact',
  'match:path:Prefix',
  'match:path:Regex',
  'match:headers:Exact',
  'match:headers:Prefix',
  'match:headers:Regex',
  'match:headers:Present',
  'match:query:Exact',
  'match:query:Prefix',
  'match:query:Regex',
  'match:query:Present',
  'match:hosts',
  'match:clientCIDRs',
  'match:claims',
  'match:cel',
  'key:clientIP',
  'key:header',
  'key:cookie',
  'key:query',
  'key:claim',
  'key:path',
  'key:pathSegment',
  'key:method',
  'key:host',
  'key:constant',
  'key:cel',
  'missing:Skip',
  'missing:Deny',
  'missing:ClientIP',
  'missing:Shared',
  'tier:Skip',
  'tier:Deny',
  'cost:header',
  'cost:response',
];

/** The features a policy uses, each once. */
export function featuresOf(policy: CompiledPolicy): ReadonlySet<string> {
  const found = new Set([
    `mode:${policy.mode}`,
    `failure:${policy.failureMode}`,
    `scope:${policy.scope}`,
    `quota:${policy.response.quotaHeaders}`,
  ]);
  if (policy.ports !== undefined) found.add('ports');
  if (policy.jwt !== undefined) found.add('jwt');
  for (const match of policy.except) addMatch(found, match);
  for (const rule of policy.rules) addRule(found, rule);
  return found;
}

function addRule(found: Set<string>, rule: CompiledRule): void {
  found.add(`mode:${rule.mode}`);
  found.add(`missing:${rule.onMissingKey}`);
  found.add(`tier:${rule.onNoTier}`);
  for (const match of [...rule.match, ...rule.except]) addMatch(found, match);
  for (const tier of rule.tiers) for (const match of tier.match) addMatch(found, match);
  for (const part of rule.key) found.add(`key:${part.kind}`);
  if (rule.cost.header !== undefined) found.add('cost:header');
  if (rule.cost.response !== undefined) found.add('cost:response');
}

function addMatch(found: Set<string>, match: CompiledMatch): void {
  // By the names that are written, not by those known here: a field of a newer compiler has to show.
  for (const name of Object.keys(match)) {
    if (name === 'path' || name === 'headers' || name === 'query') continue;
    found.add(`match:${name}`);
  }
  if (match.path !== undefined) found.add(`match:path:${match.path.type}`);
  addFields(found, 'headers', match.headers);
  addFields(found, 'query', match.query);
}

function addFields(
  found: Set<string>,
  where: 'headers' | 'query',
  fields: readonly CompiledFieldMatch[] | undefined,
): void {
  for (const field of fields ?? []) found.add(`match:${where}:${field.type}`);
}
