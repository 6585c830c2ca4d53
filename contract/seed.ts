// The seed: a pod's bundle as text in an annotation, so that a pod that starts while the operator is away has rules.
// Whoever may read the pod may read its seed, so it holds what a policy holds and nothing of the store; and it must
// leave room for the pod's own annotations, so long bodies of refusals are left out.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { gunzipSync, gzipSync } from 'node:zlib';
import { BUNDLE_FORMAT, type Bundle, type CompiledPolicy } from './bundle.ts';

/** Characters of the annotation. All annotations of an object share 256 KiB. */
export const SEED_LENGTH_MAX = 65_536;

/** UTF-8 bytes of a policy's own refusal body; a longer one is left out, and the default body stands in for it. */
export const SEED_BODY_BYTES_MAX = 1_024;

/**
 * What a seed may unfold to: rules fold to about a tenth, so 48 KiB of gzip become half a MiB. More than sixteen
 * times that was not written by us.
 */
export const SEED_UNFOLDED_MAX = 8_388_608;

/** Ends the version of a seed in which something was left out: it is not the bundle of that version. */
const SHORTENED = '+seed';

export type EncodedSeed =
  | { readonly kind: 'seed'; readonly text: string }
  /** `reason` is a sentence for a person. */
  | { readonly kind: 'omitted'; readonly reason: string };

/** gzip + base64 of the bundle. The same bundle gives the same text. */
export function encodeSeed(bundle: Bundle): EncodedSeed {
  const json = Buffer.from(JSON.stringify(shorten(bundle)));
  if (json.length > SEED_UNFOLDED_MAX) return omitted(`${json.length} bytes`);
  const text = gzipSync(json, { level: 9 }).toString('base64');
  if (text.length > SEED_LENGTH_MAX) return omitted(`${text.length} characters after compression`);
  return { kind: 'seed', text };
}

function omitted(size: string): EncodedSeed {
  const reason = `the rules take ${size}, a seed may take ${SEED_LENGTH_MAX}: fewer or smaller policies per pod bring it back`;
  return { kind: 'omitted', reason };
}

// A sidecar says which version it has, and is not sent what it has: a shortened bundle must not pass for the whole one.
function shorten(bundle: Bundle): Bundle {
  const policies = bundle.policies.map(withoutLongBody);
  const isWhole = policies.every((policy, index) => policy === bundle.policies[index]);
  return isWhole ? bundle : { ...bundle, version: `${bundle.version}${SHORTENED}`, policies };
}

function withoutLongBody(policy: CompiledPolicy): CompiledPolicy {
  const { body, ...response } = policy.response;
  if (body === undefined || Buffer.byteLength(body.content) <= SEED_BODY_BYTES_MAX) return policy;
  return { ...policy, response };
}

export type DecodedSeed =
  /** Its form as a bundle is checked, its policies are not: they go the way of every bundle that comes from outside. */
  | { readonly kind: 'seed'; readonly bundle: Bundle }
  /** No annotation: the file is there and empty. */
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Reads the text of the annotation. Never throws: a seed comes from an object that others may write. */
export function decodeSeed(text: string): DecodedSeed {
  const written = text.trim();
  if (written === '') return { kind: 'none' };
  if (written.length > SEED_LENGTH_MAX) return unreadable(`longer than ${SEED_LENGTH_MAX}`);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(written)) return unreadable('not base64');
  try {
    const folded = Buffer.from(written, 'base64');
    const json = gunzipSync(folded, { maxOutputLength: SEED_UNFOLDED_MAX }).toString('utf8');
    return readBundle(JSON.parse(json));
  } catch (error) {
    assert(error instanceof Error);
    return unreadable(error.message);
  }
}

function readBundle(value: unknown): DecodedSeed {
  if (!isRecord(value)) return unreadable('not an object');
  const { format, version, policies } = value;
  if (format !== BUNDLE_FORMAT) return unreadable(`format ${String(format)} is not known here`);
  if (typeof version !== 'string' || version === '') return unreadable('it has no version');
  if (!Array.isArray(policies) || !policies.every(isRecord)) {
    return unreadable('its policies are no list of objects');
  }
  // The checked JSON boundary: what is inside a policy is for the compiler of rules to refuse.
  return { kind: 'seed', bundle: value as unknown as Bundle };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unreadable(reason: string): DecodedSeed {
  return { kind: 'unreadable', reason };
}
