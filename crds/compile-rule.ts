// One rule for the sidecar: its matches, key, tiers and cost.
import assert from 'node:assert/strict';
import type {
  CompiledCost,
  CompiledFieldMatch,
  CompiledKeyPart,
  CompiledMatch,
  CompiledRule,
  CompiledTier,
  Mode,
} from '../contract/bundle.ts';
import { nameOfBucket } from './bucket.ts';
import type { Bucket } from './bucket.ts';
import type { Cost } from './cost.ts';
import { durationOf } from './duration.ts';
import type { KeyPart } from './key.ts';
import { limitOf } from './limit.ts';
import type { FieldMatch, Match } from './match.ts';
import type { FieldPath } from './problem.ts';
import type { Rule, Tier } from './rule.ts';
import type { Sink } from './sink.ts';

export interface RuleContext {
  readonly path: FieldPath;
  /** Of the policy. */
  readonly mode: Mode;
  readonly sink: Sink;
}

/** The tier of a rule that was written with `buckets`. */
export const ONLY_TIER = '-';

/** Compiles a rule; undefined when it is disabled, after its expressions were checked all the same. */
export function compileRule(
  rule: Rule,
  { path, mode, sink }: RuleContext,
): CompiledRule | undefined {
  const compiled: CompiledRule = {
    name: rule.name,
    mode: mode === 'Shadow' || rule.mode === 'Shadow' ? 'Shadow' : 'Enforce',
    match: compileMatches(rule.match, [...path, 'match'], sink),
    except: compileMatches(rule.except, [...path, 'except'], sink),
    key: (rule.key ?? []).map((part, index) => compileKeyPart(part, [...path, 'key', index], sink)),
    onMissingKey: rule.onMissingKey ?? 'ClientIP',
    tiers: compileTiers(rule, path, sink),
    onNoTier: rule.onNoTier ?? 'Skip',
    cost: compileCost(rule.cost ?? {}),
  };
  return rule.mode === 'Disabled' ? undefined : compiled;
}

function compileTiers(rule: Rule, path: FieldPath, sink: Sink): CompiledTier[] {
  const { buckets = [] } = rule;
  const tiers: readonly Tier[] = rule.tiers ?? [{ name: ONLY_TIER, buckets }];
  return tiers.map((tier, index) => ({
    name: tier.name,
    match: compileMatches(tier.match, [...path, 'tiers', index, 'match'], sink),
    buckets: compileBuckets(tier.buckets),
  }));
}

function compileBuckets(buckets: readonly Bucket[]): CompiledTier['buckets'] {
  return buckets.map((bucket) => {
    const { capacity, refill } = bucket;
    const every = durationOf(refill.every);
    return {
      name: nameOfBucket(bucket),
      limit: limitOf({ capacity, tokens: refill.tokens, every }),
    };
  });
}

function compileCost({ tokens, header, response }: Cost): CompiledCost {
  return {
    tokens: tokens ?? header?.default ?? 1,
    ...(header === undefined ? {} : { header: namedMax(header) }),
    ...(response === undefined ? {} : { response: namedMax(response.header) }),
  };
}

function namedMax({ name, max }: { name: string; max: number }): { name: string; max: number } {
  return { name: name.toLowerCase(), max };
}

/** Compiles a list of matches that stands at `path`; absent = empty. */
export function compileMatches(
  matches: readonly Match[] | undefined,
  path: FieldPath,
  sink: Sink,
): CompiledMatch[] {
  return (matches ?? []).map((match, index) => {
    if (match.cel !== undefined) {
      sink.checkCel(match.cel.expression, 'bool', [...path, index, 'cel', 'expression']);
    }
    return compileMatch(match);
  });
}

function compileMatch({ headers, query, claims, ...rest }: Match): CompiledMatch {
  return {
    ...rest,
    ...(headers === undefined
      ? {}
      : { headers: headers.map((header) => compileField(header, header.name.toLowerCase())) }),
    ...(query === undefined
      ? {}
      : { query: query.map((field) => compileField(field, field.name)) }),
    ...(claims === undefined
      ? {}
      : { claims: claims.map((claim) => ({ ...claim, invert: claim.invert ?? false })) }),
  };
}

function compileField(match: FieldMatch, name: string): CompiledFieldMatch {
  return {
    name,
    type: match.type ?? 'Exact',
    value: match.value ?? '',
    invert: match.invert ?? false,
  };
}

function compileKeyPart(part: KeyPart, path: FieldPath, sink: Sink): CompiledKeyPart {
  const { header, cookie, query, claim, pathSegment, constant, cel } = part;
  if (header !== undefined) return { kind: 'header', name: header.name.toLowerCase() };
  if (cookie !== undefined) return { kind: 'cookie', name: cookie.name };
  if (query !== undefined) return { kind: 'query', name: query.name };
  if (claim !== undefined) return { kind: 'claim', path: claim.path };
  if (pathSegment !== undefined) return { kind: 'pathSegment', index: pathSegment.index };
  if (constant !== undefined) return { kind: 'constant', value: constant.value };
  if (cel !== undefined) {
    sink.checkCel(cel.expression, 'string', [...path, 'cel', 'expression']);
    return { kind: 'cel', expression: cel.expression };
  }
  return compileMarker(part);
}

function compileMarker(part: KeyPart): CompiledKeyPart {
  const kind = (['clientIP', 'path', 'method', 'host'] as const).find(
    (candidate) => part[candidate] !== undefined,
  );
  assert(kind !== undefined, 'the schema accepts known kinds only');
  return { kind };
}
