// Compiled policies for tests of what carries them: small, valid, and told apart by what the test gives.
import { randomUUID } from 'node:crypto';
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { bundleOf } from '../../crds/bundle-version.ts';

export interface PolicyOptions extends Partial<CompiledPolicy> {
  /** Tokens of its one bucket, which refills in an hour. */
  readonly capacity?: number;
}

/** One rule `per-key` on the header `x-api-key`. */
export function compiledPolicy(options: PolicyOptions = {}): CompiledPolicy {
  const { capacity = 10, ...fields } = options;
  const limit = {
    capacity,
    unitsPerToken: 3_600_000,
    unitsPerTick: capacity,
    tickUs: 1_000,
  } as const;
  return {
    namespace: 'shop',
    name: 'api',
    uid: 'uid-api',
    generation: 1,
    mode: 'Enforce',
    enforcePercent: 100,
    failureMode: 'Local',
    scope: 'Policy',
    replicas: 1,
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [
      {
        name: 'per-key',
        mode: 'Enforce',
        match: [],
        except: [],
        key: [{ kind: 'header', name: 'x-api-key' }],
        onMissingKey: 'ClientIP',
        tiers: [{ name: '-', match: [], buckets: [{ name: 'main', limit }] }],
        onNoTier: 'Skip',
        cost: { tokens: 1 },
      },
    ],
    ...fields,
  };
}

export function bundleWith(...policies: readonly CompiledPolicy[]): Bundle {
  return bundleOf(policies);
}

/** A rule that compiles nowhere: a back-reference is no RE2. */
export function brokenPolicy(options: PolicyOptions = {}): CompiledPolicy {
  const policy = compiledPolicy(options);
  const match = [{ path: { type: 'Regex', value: '(a)\\1' } }] as const;
  return { ...policy, rules: policy.rules.map((rule) => ({ ...rule, match })) };
}

export function newUid(): string {
  return randomUUID();
}
