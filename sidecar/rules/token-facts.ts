// One verifier per issuer: policies that trust the same keys in the same way share its cache. The JWT library is loaded
// only when a policy knows an issuer.
import type { CompiledJwt, CompiledPolicy } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import type { FieldNames } from './field-names.ts';
import { TokenFact } from './token-fact.ts';
import type { TokenVerifier, TokenVerifierOptions } from './token-verifier.ts';

export interface TokenFactOptions extends TokenVerifierOptions {
  readonly names: FieldNames;
}

/** Throws POLICY_INVALID for a key set that cannot be used. */
export async function loadTokenFacts(
  policies: readonly CompiledPolicy[],
  options: TokenFactOptions,
): Promise<ReadonlyMap<CompiledPolicy, TokenFact>> {
  const facts = new Map<CompiledPolicy, TokenFact>();
  const bySettings = new Map<string, TokenFact>();
  for (const policy of policies) {
    const { jwt } = policy;
    if (jwt === undefined) continue;
    const settings = JSON.stringify(jwt);
    const fact =
      bySettings.get(settings) ??
      new TokenFact(await openVerifier(policy, jwt, options), options.names.header(jwt.header));
    bySettings.set(settings, fact);
    facts.set(policy, fact);
  }
  return facts;
}

async function openVerifier(
  policy: CompiledPolicy,
  jwt: CompiledJwt,
  options: TokenVerifierOptions,
): Promise<TokenVerifier> {
  const { TokenVerifier } = await import('./token-verifier.ts');
  try {
    return new TokenVerifier(jwt, options);
  } catch (cause) {
    const name = `${policy.namespace}/${policy.name}`;
    throw new WeirError('POLICY_INVALID', { policy: name, reason: 'unusable keys' }, { cause });
  }
}
