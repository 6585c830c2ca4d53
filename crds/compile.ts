// From a valid policy to what the sidecar runs: exact integers, every default written out, names in the case they
// are compared in. What only the compiler can judge (CEL, key sets, size) becomes problems here.
import type { CompiledPolicy } from '../contract/bundle.ts';
import { createCelCompiler } from './cel-environment.ts';
import type { CelCompiler } from './cel-environment.ts';
import { DEFAULT_IPV6_PREFIX_LENGTH } from './client-address.ts';
import type { ClientAddress } from './client-address.ts';
import { compileMatches, compileRule } from './compile-rule.ts';
import { readKeySet } from './key-set.ts';
import type { PublicKey } from './key-set.ts';
import type { RateLimitPolicy } from './policy.ts';
import { NO_PLACE, problemAt } from './problem.ts';
import type { FieldPath, Finding, Problem } from './problem.ts';
import { DEFAULT_QUOTA_HEADERS, DEFAULT_STATUS } from './response.ts';
import type { RefusalResponse } from './response.ts';
import { Sink } from './sink.ts';
import type { TokenVerification } from './token.ts';

export { bundleOf } from './bundle-version.ts';

/** UTF-8 bytes of a compiled policy as JSON: the operator holds 500 of them, and pushes each to every sidecar. */
export const COMPILED_MAX = 262_144;

export interface CompileContext {
  /** Checks CEL; absent = a new one for this policy. Share one where many policies are compiled. */
  readonly cel?: CelCompiler;
  /** From files `file/<namespace>/<name>`. */
  readonly uid: string;
  readonly generation: number;
  /** N of `failureMode: Local`. */
  readonly replicas: number;
  /** `<kind>.<name>` of the owner, lower-case kind. */
  readonly workload?: string;
  /** What was fetched from `jwks.uri`; absent = nothing fetches, and `uri` is refused. */
  readonly keys?: readonly PublicKey[];
}

export type CompileOutcome =
  | { readonly kind: 'compiled'; readonly policy: CompiledPolicy }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Compiles a policy that `validatePolicy` or `parsePolicyFile` gave. */
export function compilePolicy(policy: RateLimitPolicy, context: CompileContext): CompileOutcome {
  let { cel } = context;
  const sink = new Sink({
    // Most policies have no expression, and whoever compiles those is spared the library.
    cel: () => (cel ??= createCelCompiler()),
    hasToken: policy.spec.jwt !== undefined,
  });
  const compiled = translate(policy, context, sink);
  const size = Buffer.byteLength(JSON.stringify(compiled));
  if (size > COMPILED_MAX) sink.add(tooLarge(size));
  if (sink.findings.length === 0) return { kind: 'compiled', policy: compiled };
  return {
    kind: 'problems',
    problems: sink.findings.map((finding) => problemAt(NO_PLACE, finding)),
  };
}

function tooLarge(size: number): Finding {
  return {
    segments: ['spec'],
    message: `compiles to ${String(size)} bytes, more than ${String(COMPILED_MAX)}`,
    advice: 'split it into several policies',
    reason: 'too-large',
  };
}

function translate(
  { metadata, spec }: RateLimitPolicy,
  context: CompileContext,
  sink: Sink,
): CompiledPolicy {
  const { mode, failureMode, scope } = spec;
  const keys = spec.jwt === undefined ? [] : keysOf(spec.jwt, context, sink);
  return {
    namespace: metadata.namespace ?? 'default',
    name: metadata.name,
    uid: context.uid,
    generation: context.generation,
    mode,
    enforcePercent: spec.enforcePercent ?? 100,
    failureMode,
    scope,
    ...(scope === 'Workload' ? { workload: workloadOf(context, sink) } : {}),
    replicas: context.replicas,
    clientIP: compileClientAddress(spec.clientIP),
    ...(spec.jwt === undefined ? {} : { jwt: compileToken(spec.jwt, keys) }),
    response: compileResponse(spec.response),
    except: compileMatches(spec.except, ['spec', 'except'], sink),
    rules: spec.rules.flatMap((rule, index) => {
      const compiled = compileRule(rule, { path: ['spec', 'rules', index], mode, sink });
      return compiled === undefined ? [] : [compiled];
    }),
  };
}

function workloadOf({ workload }: CompileContext, sink: Sink): string {
  if (workload !== undefined) return workload;
  sink.add({
    segments: ['spec', 'scope'],
    message: 'Workload needs to know the workload',
    advice: 'start with --workload kind/name, or write scope: Policy',
    reason: 'reference',
  });
  return '';
}

function compileClientAddress(address: ClientAddress | undefined): CompiledPolicy['clientIP'] {
  return {
    trustedHops: address?.trustedHops ?? 0,
    trustedProxies: address?.trustedProxies ?? [],
    ipv6PrefixLength: address?.ipv6PrefixLength ?? DEFAULT_IPV6_PREFIX_LENGTH,
  };
}

function compileToken(
  jwt: TokenVerification,
  keys: readonly PublicKey[],
): NonNullable<CompiledPolicy['jwt']> {
  return {
    issuer: jwt.issuer,
    audiences: jwt.audiences ?? [],
    header: jwt.header.toLowerCase(),
    keys,
  };
}

const JWKS: FieldPath = ['spec', 'jwt', 'jwks'];

function keysOf(
  { jwks }: TokenVerification,
  { keys }: CompileContext,
  sink: Sink,
): readonly PublicKey[] {
  if (jwks.inline !== undefined) {
    const outcome = readKeySet(jwks.inline);
    if (outcome.kind === 'keys') return outcome.keys;
    const { message, advice } = outcome;
    sink.add({ segments: [...JWKS, 'inline'], message, advice, reason: 'reference' });
    return [];
  }
  if (keys !== undefined) return keys;
  sink.add({
    segments: [...JWKS, 'uri'],
    message: 'is fetched by the operator only',
    advice: 'use inline',
    reason: 'reference',
  });
  return [];
}

function compileResponse(response: RefusalResponse | undefined): CompiledPolicy['response'] {
  const body = response?.body;
  return {
    status: response?.status ?? DEFAULT_STATUS,
    quotaHeaders: response?.quotaHeaders ?? DEFAULT_QUOTA_HEADERS,
    headers: response?.headers ?? [],
    ...(body === undefined ? {} : { body }),
  };
}
