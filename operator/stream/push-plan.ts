// What to send to one sidecar next: pure decisions over what the operator has for it and what it is known to run.
import { BUNDLE_FORMAT, type Bundle, type CompiledPolicy } from '../../contract/bundle.ts';
import type { PushHead } from '../../contract/frame-codec.ts';
import { bundleOf } from '../../crds/bundle-version.ts';
import type { Provision } from './bundle-provider.ts';
import type { PolicyTexts } from './policy-texts.ts';

/** What a sidecar said it can run. */
export interface Abilities {
  readonly formats: readonly number[];
  /** Undefined = all of its formats. */
  readonly features: readonly string[] | undefined;
}

/** A policy that the sidecar is too old for. */
export interface Unsupported {
  readonly uid: string;
  readonly generation: number;
  /** What it uses that the sidecar does not know. */
  readonly features: readonly string[];
}

/** A provision without what this sidecar cannot take. */
export interface Selection {
  readonly bundle: Bundle;
  /** The sidecar keeps what it has of these. */
  readonly held: readonly string[];
  readonly tooOld: readonly Unsupported[];
}

/** What the sidecar is known to have in force. */
export interface Base {
  readonly version: string;
  /** Digest by uid; empty text = some version of it. Undefined = told by the sidecar itself, content unknown. */
  readonly digests: ReadonlyMap<string, string> | undefined;
  /** Of settings and CA; undefined = unknown. */
  readonly surroundings: string | undefined;
}

export interface PlannedPush {
  readonly head: DistributiveOmit<PushHead, 'nonce' | 'issuedAt'>;
  /** The policies that go along. */
  readonly policies: readonly CompiledPolicy[];
}

type DistributiveOmit<Type, Key extends PropertyKey> = Type extends unknown
  ? Omit<Type, Key>
  : never;

/** `isRefused`: this sidecar has said no to that generation. */
export function selectFor(
  provision: Provision,
  abilities: Abilities,
  isRefused: (policy: CompiledPolicy) => boolean,
  texts: PolicyTexts,
): Selection {
  const { bundle, held = [] } = provision;
  const tooOld: Unsupported[] = [];
  const kept: string[] = [];
  const policies = bundle.policies.filter((policy) => {
    const missing = missingFeatures(policy, abilities, texts);
    const { uid, generation } = policy;
    if (missing.length > 0) tooOld.push({ uid, generation, features: missing });
    const goes = missing.length === 0 && !isRefused(policy);
    if (!goes) kept.push(uid);
    return goes;
  });
  const isWhole = kept.length === 0;
  return {
    bundle: isWhole ? bundle : bundleOf(policies),
    held: isWhole ? held : [...held, ...kept],
    tooOld,
  };
}

function missingFeatures(
  policy: CompiledPolicy,
  { formats, features }: Abilities,
  texts: PolicyTexts,
): readonly string[] {
  if (!formats.includes(BUNDLE_FORMAT)) return [`format:${BUNDLE_FORMAT}`];
  if (features === undefined) return [];
  return [...texts.featuresOf(policy)].filter((feature) => !features.includes(feature));
}

/** Names a provision: two with the same key say the same to a sidecar. */
export function keyOf({ bundle, held = [], ...rest }: Provision, texts: PolicyTexts): string {
  return `${bundle.version} ${surroundingsOf(rest, texts)} ${held.toSorted().join(' ')}`;
}

export function surroundingsOf(
  { settings, ca = '' }: Pick<Provision, 'settings' | 'ca'>,
  texts: PolicyTexts,
): string {
  return `${texts.digestOfValue(settings)} ${ca}`;
}

/** The shortest push that brings a sidecar from `base` to `selection`. */
export function planPush(
  selection: Selection,
  provision: Pick<Provision, 'settings' | 'ca'>,
  base: Base | undefined,
  texts: PolicyTexts,
): PlannedPush {
  const { version, policies } = selection.bundle;
  const { settings, ca } = provision;
  const names = selection.held.length === 0 ? {} : { held: selection.held };
  const config = {
    type: 'config',
    version,
    settings,
    ...(ca === undefined ? {} : { ca }),
  } as const;
  // With held policies the sidecar's version is its own affair.
  if (base?.version === version && selection.held.length === 0) {
    return { head: { ...config, unchanged: true }, policies: [] };
  }
  if (base?.surroundings === surroundingsOf(provision, texts)) {
    const delta = planDelta(selection, base, texts);
    if (delta !== undefined) return { ...delta, head: { ...delta.head, ...names } };
  }
  return { head: { ...config, ...names }, policies };
}

/** Undefined when it would say everything again, or nobody knows what it would be a difference to. */
function planDelta(
  { bundle: { version, policies }, held }: Selection,
  { version: base, digests }: Base,
  texts: PolicyTexts,
): PlannedPush | undefined {
  if (digests === undefined) return undefined;
  const upsert = policies.filter((one) => digests.get(one.uid) !== texts.digestOf(one));
  if (upsert.length === policies.length && policies.length > 0) return undefined;
  const stays = new Set([...policies.map(({ uid }) => uid), ...held]);
  const remove = [...digests.keys()].filter((uid) => !stays.has(uid));
  return { head: { type: 'delta', base, version, remove }, policies: upsert };
}

/** Whether a sidecar has seen a newer generation of one of these than is about to be sent. */
export function isBehind(
  policies: readonly CompiledPolicy[],
  highest: ReadonlyMap<string, number>,
): boolean {
  return policies.some(({ uid, generation }) => generation < (highest.get(uid) ?? 0));
}
