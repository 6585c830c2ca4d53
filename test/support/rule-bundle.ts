// Bundles and requests for tests of the rules: everything a test does not name has the quietest value.
import type { Bundle, CompiledPolicy, CompiledRule, CompiledTier } from '../../contract/bundle.ts';
import { Evaluation } from '../../sidecar/rules/evaluation.ts';
import type { Charge } from '../../sidecar/rules/evaluation.ts';
import { RequestSnapshot } from '../../sidecar/rules/request-snapshot.ts';
import type { RequestFields } from '../../sidecar/rules/request-snapshot.ts';
import { compileRules } from '../../sidecar/rules/rule-set.ts';
import type { RuleSet } from '../../sidecar/rules/rule-set.ts';

export function tierOf(tier: Partial<CompiledTier> = {}): CompiledTier {
  const limit = { capacity: 10, unitsPerToken: 1, unitsPerTick: 1, tickUs: 1_000_000 } as const;
  return { name: '-', match: [], buckets: [{ name: 'main', limit }], ...tier };
}

export function ruleOf(rule: Partial<CompiledRule> = {}): CompiledRule {
  return {
    name: 'rule',
    mode: 'Enforce',
    match: [],
    except: [],
    key: [],
    onMissingKey: 'ClientIP',
    tiers: [tierOf()],
    onNoTier: 'Skip',
    cost: { tokens: 1 },
    ...rule,
  };
}

export function policyOf(policy: Partial<CompiledPolicy> = {}): CompiledPolicy {
  const { namespace = 'default', name = 'policy' } = policy;
  return {
    namespace,
    name,
    uid: `file/${namespace}/${name}`,
    generation: 1,
    mode: 'Enforce',
    enforcePercent: 100,
    failureMode: 'Local',
    scope: 'Policy',
    replicas: 1,
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [ruleOf()],
    ...policy,
  };
}

export function bundleOf(...policies: readonly CompiledPolicy[]): Bundle {
  return { format: 1, version: 'test', policies };
}

/** `GET /` from 192.0.2.1 to `shop.example`; header names in any case. */
export function requestOf(
  request: Partial<Omit<RequestFields, 'headers'>> & {
    readonly headers?: RequestFields['headers'] | Readonly<Record<string, string>>;
  } = {},
): RequestSnapshot {
  const { headers = [], ...fields } = request;
  const lines = Array.isArray(headers) ? headers : Object.entries(headers);
  return new RequestSnapshot({
    method: 'GET',
    target: '/',
    host: 'shop.example',
    peerAddress: '192.0.2.1',
    ...fields,
    headers: lines,
  });
}

/** The clock of tests that care for none: 2026-01-01. */
export const TEST_NOW_MS: number = Date.UTC(2026, 0, 1);

export function rulesOf(...policies: readonly CompiledPolicy[]): Promise<RuleSet> {
  return compileRules(bundleOf(...policies), { nowMs: () => TEST_NOW_MS });
}

export function evaluate(rules: RuleSet, request: RequestSnapshot = requestOf()): Evaluation {
  const out = new Evaluation();
  const readiness = rules.evaluate(request, out);
  if (readiness !== 'ready') throw new Error(`not ready: ${readiness}`);
  return out;
}

/** The charges of one evaluation. */
export function chargesOf(out: Evaluation): readonly Charge[] {
  return out.charges.slice(0, out.count);
}

/** Whether a request is charged by a policy with that one rule. */
export async function isCharged(
  rule: Partial<CompiledRule>,
  request: RequestSnapshot,
  policy: Partial<CompiledPolicy> = {},
): Promise<boolean> {
  const rules = await rulesOf(policyOf({ ...policy, rules: [ruleOf(rule)] }));
  return evaluate(rules, request).count === 1;
}

/** The key text of a request under a policy with that one rule. */
export async function keyTextOf(
  rule: Partial<CompiledRule>,
  request: RequestSnapshot,
  policy: Partial<CompiledPolicy> = {},
): Promise<string | undefined> {
  const rules = await rulesOf(policyOf({ ...policy, rules: [ruleOf(rule)] }));
  const [charge] = chargesOf(evaluate(rules, request));
  return charge?.keyText;
}
