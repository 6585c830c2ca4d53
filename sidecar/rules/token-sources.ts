// One verifier per issuer: policies that trust the same keys in the same way share its cache. The JWT library is loaded
// only when a policy knows an issuer.
import type { CompiledJwt, CompiledPolicy } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import type { FieldNames } from './field-names.ts';
import type { TokenSource } from './request-facts.ts';
import type { TokenVerifier, TokenVerifierOptions } from './token-verifier.ts';

export interface TokenSourceOptions extends TokenVerifierOptions {
  readonly names: FieldNames;
}

/** Throws POLICY_INVALID for a key set that cannot be used. */
export async function loadTokenSources(
  policies: readonly CompiledPolicy[],
  options: TokenSourceOptions,
): Promise<ReadonlyMap<CompiledPolicy, TokenSource>> {
  const sources = new Map<CompiledPolicy, TokenSource>();
  const bySettings = new Map<string, TokenSource>();
  for (const policy of policies) {
    const { jwt } = policy;
    if (jwt === undefined) continue;
    const settings = JSON.stringify(jwt);
    const source = bySettings.get(settings) ?? {
      verifier: await openVerifier(policy, jwt, options),
      header: options.names.header(jwt.header),
    };
    bySettings.set(settings, source);
    sources.set(policy, source);
  }
  return sources;
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
