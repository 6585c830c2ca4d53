// A policy with what became of it: judged once per generation, and again when its definition has gained fields, which
// the API server then shows in the same generation; and the last version that was good, which stays in force while a
// newer one is not. That one is known since this process started only; see `isHeld`.
import { isDeepStrictEqual } from 'node:util';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { CelCompiler } from '../../crds/cel-environment.ts';
import { compilePolicy } from '../../crds/compile.ts';
import { hashOf, stableJson } from '../../crds/content-hash.ts';
import type { PublicKey } from '../../crds/key-set.ts';
import type { RateLimitPolicy } from '../../crds/policy.ts';
import type { Problem } from '../../crds/problem.ts';
import { validatePolicy } from '../../crds/validation.ts';
import { keyOf, type KubeObject } from '../kube/object.ts';

export interface PolicyObject extends KubeObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** A version that compiled and has all it refers to. */
export interface GoodVersion {
  readonly generation: number;
  readonly document: RateLimitPolicy;
  /** What was fetched from its key set's address; undefined = it names none. */
  readonly keys: readonly PublicKey[] | undefined;
  /** For no pod in particular: `replicas` is 1, `workload` stands for any. */
  readonly compiled: CompiledPolicy;
  /** Of `compiled`. */
  readonly hash: string;
}

export type Judgement =
  | { readonly kind: 'accepted' }
  /** It compiles, but its key set was not fetched yet. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] };

export interface PolicyRecord {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  /** What was judged. */
  readonly spec: unknown;
  /** As the API server has it, to be compared with what is planned. */
  readonly status: unknown;
  readonly judgement: Judgement;
  /** Valid in form; undefined when not even that. */
  readonly document: RateLimitPolicy | undefined;
  readonly keySetUri: string | undefined;
  /** The keys it was judged with. */
  readonly keys: readonly PublicKey[] | undefined;
  /** In force; undefined = no good version is known. */
  readonly good: GoodVersion | undefined;
}

export interface JudgeContext {
  readonly cel: CelCompiler;
  /** What was fetched from an address; undefined = nothing yet. */
  readonly keysOf: (uri: string) => readonly PublicKey[] | undefined;
}

/** Stands for the workload of a pod until a bundle is made for one. */
const ANY_WORKLOAD = 'any';

/** Judges a policy; what did not change since `before` is not compiled again. */
export function judgePolicy(
  object: PolicyObject,
  before: PolicyRecord | undefined,
  context: JudgeContext,
): PolicyRecord {
  const { uid = '' } = object.metadata;
  const known = before?.uid === uid ? before : undefined;
  if (known === undefined || !isJudged(object, known) || hasNewKeys(known, context)) {
    return judgeAnew(object, known, context);
  }
  const { status } = object;
  return isDeepStrictEqual(known.status, status) ? known : { ...known, status };
}

function isJudged(object: PolicyObject, known: PolicyRecord): boolean {
  const isSame = known.generation === generationOf(object);
  return isSame && isDeepStrictEqual(known.spec, object.spec);
}

function generationOf({ metadata: { generation = 1 } }: PolicyObject): number {
  return generation;
}

/** Judges a policy again whose key set may have changed; the version in force gets the new keys as well. */
export function judgeKeys(record: PolicyRecord, context: JudgeContext): PolicyRecord {
  const good = record.good === undefined ? undefined : withFreshKeys(record.good, context);
  const fresh = good === record.good ? record : { ...record, good };
  if (record.document === undefined || !hasNewKeys(record, context)) return fresh;
  return { ...fresh, ...verdictOf(record.document, fresh, context) };
}

/** Addresses of the key sets it needs: that of the newest version and that of the one in force. */
export function keySetUris({ keySetUri, good }: PolicyRecord): readonly string[] {
  const uris = [keySetUri, good?.document.spec.jwt?.jwks.uri];
  return [...new Set(uris.filter((uri) => uri !== undefined))];
}

/** Sidecars keep what they have of it: no good version is known here, and one may be in force there. */
export function isHeld({ good }: PolicyRecord): boolean {
  return good === undefined;
}

function hasNewKeys({ keySetUri, keys }: PolicyRecord, { keysOf }: JudgeContext): boolean {
  return keySetUri !== undefined && !isDeepStrictEqual(keysOf(keySetUri), keys);
}

function judgeAnew(
  object: PolicyObject,
  known: PolicyRecord | undefined,
  context: JudgeContext,
): PolicyRecord {
  const { namespace = '', name = '', uid = '' } = object.metadata;
  const { spec, status } = object;
  const generation = generationOf(object);
  const base = { key: keyOf(object), namespace, name, uid, generation, spec, status };
  const outcome = validatePolicy(object);
  if (outcome.kind === 'invalid') {
    const judgement = { kind: 'refused', problems: outcome.problems } as const;
    const nothing = { document: undefined, keySetUri: undefined, keys: undefined };
    return { ...base, ...nothing, judgement, good: known?.good };
  }
  const document = outcome.policy;
  const verdict = verdictOf(document, { uid, generation, good: known?.good }, context);
  return { ...base, document, ...verdict };
}

type Verdict = Pick<PolicyRecord, 'judgement' | 'keySetUri' | 'keys' | 'good'>;

function verdictOf(
  document: RateLimitPolicy,
  { uid, generation, good }: Pick<PolicyRecord, 'uid' | 'generation' | 'good'>,
  { cel, keysOf }: JudgeContext,
): Verdict {
  const keySetUri = document.spec.jwt?.jwks.uri;
  const keys = keySetUri === undefined ? undefined : keysOf(keySetUri);
  const outcome = compileVersion(document, { uid, generation, keys, cel });
  if (outcome.kind === 'problems') {
    const judgement = { kind: 'refused', problems: outcome.problems } as const;
    return { judgement, keySetUri, keys, good };
  }
  if (keySetUri !== undefined && keys === undefined) {
    return { judgement: { kind: 'waiting' }, keySetUri, keys, good };
  }
  return { judgement: { kind: 'accepted' }, keySetUri, keys, good: outcome.version };
}

interface Version {
  readonly uid: string;
  readonly generation: number;
  readonly keys: readonly PublicKey[] | undefined;
  readonly cel: CelCompiler;
}

type VersionOutcome =
  | { readonly kind: 'good'; readonly version: GoodVersion }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

function compileVersion(
  document: RateLimitPolicy,
  { uid, generation, keys, cel }: Version,
): VersionOutcome {
  const context = { cel, uid, generation, replicas: 1, workload: ANY_WORKLOAD, keys: keys ?? [] };
  const outcome = compilePolicy(document, context);
  if (outcome.kind === 'problems') return outcome;
  const compiled = outcome.policy;
  const hash = hashOf(stableJson(compiled));
  return { kind: 'good', version: { generation, document, keys, compiled, hash } };
}

function withFreshKeys(good: GoodVersion, { cel, keysOf }: JudgeContext): GoodVersion {
  const uri = good.document.spec.jwt?.jwks.uri;
  const keys = uri === undefined ? undefined : keysOf(uri);
  if (keys === undefined || isDeepStrictEqual(keys, good.keys)) return good;
  const { uid, generation } = good.compiled;
  const outcome = compileVersion(good.document, { uid, generation, keys, cel });
  return outcome.kind === 'good' ? outcome.version : good;
}
