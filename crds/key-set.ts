// Keys that tokens are verified with. Only public keys of RS, PS, ES and EdDSA: a shared secret in a policy would be
// readable by everybody who may read policies, and would let them sign.
import { createPublicKey } from 'node:crypto';

export type PublicKey = Readonly<Record<string, unknown>>;

export type KeySetOutcome =
  | { readonly kind: 'keys'; readonly keys: readonly PublicKey[] }
  | { readonly kind: 'invalid'; readonly message: string; readonly advice: string };

/** An issuer rotates between two or three; each key is tried for a token that names none. */
export const KEYS_MAX = 32;
/** Below it signatures are forgeable within reach, and the verifying library refuses. */
const RSA_BITS_MIN = 2_048;

const ALGORITHMS = new Map<string, readonly string[]>([
  ['RSA', ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  ['P-256', ['ES256']],
  ['P-384', ['ES384']],
  ['P-521', ['ES512']],
  ['Ed25519', ['EdDSA', 'Ed25519']],
]);
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const PUBLIC_MEMBERS = ['kty', 'kid', 'alg', 'use', 'crv', 'n', 'e', 'x', 'y'];
const ADVICE = 'use public keys of RSA, EC (P-256, P-384, P-521) or Ed25519';

/** Reads a JSON Web Key Set (RFC 7517) from its text. Keys of an unknown kind are left out, if one is usable. */
export function readKeySet(text: string): KeySetOutcome {
  const set = parseJson(text);
  const keys = isRecord(set) ? set['keys'] : undefined;
  if (!Array.isArray(keys)) {
    return invalid('is not a JSON Web Key Set', 'write JSON such as {"keys": [{"kty": "RSA", …}]}');
  }
  if (keys.length > KEYS_MAX) {
    return invalid(
      `has ${String(keys.length)} keys, more than ${String(KEYS_MAX)}`,
      'remove old keys',
    );
  }
  return usableKeys(keys);
}

function usableKeys(keys: readonly unknown[]): KeySetOutcome {
  const usable: PublicKey[] = [];
  for (const [index, key] of keys.entries()) {
    const judged = judge(key);
    if (judged.kind === 'refused')
      return invalid(`key ${String(index + 1)} ${judged.cause}`, ADVICE);
    if (judged.kind === 'usable') usable.push(judged.key);
  }
  if (usable.length === 0) return invalid('has no key that can verify a token', ADVICE);
  return { kind: 'keys', keys: usable };
}

type Judgement =
  | { readonly kind: 'usable'; readonly key: PublicKey }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refused'; readonly cause: string };

function judge(key: unknown): Judgement {
  if (!isRecord(key)) return { kind: 'refused', cause: 'is not an object' };
  if (key['kty'] === 'oct') return { kind: 'refused', cause: 'is a shared secret (kty oct)' };
  const secret = SECRET_MEMBERS.find((member) => Object.hasOwn(key, member));
  if (secret !== undefined)
    return { kind: 'refused', cause: `is a private key (member ${secret})` };
  if (!canVerify(key)) return { kind: 'foreign' };
  const cause = materialFault(key);
  return cause === undefined
    ? { kind: 'usable', key: publicPart(key) }
    : { kind: 'refused', cause };
}

function canVerify({ kty, crv, use = 'sig', alg }: Record<string, unknown>): boolean {
  const family = kty === 'RSA' ? kty : crv;
  const algorithms = typeof family === 'string' ? (ALGORITHMS.get(family) ?? []) : [];
  if (use !== 'sig') return false;
  return alg === undefined ? algorithms.length > 0 : algorithms.some((name) => name === alg);
}

function materialFault(key: Record<string, unknown>): string | undefined {
  try {
    const details = createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails;
    const bits = details?.modulusLength ?? RSA_BITS_MIN;
    return bits < RSA_BITS_MIN ? `has ${String(bits)} bits, fewer than 2048` : undefined;
  } catch {
    // The runtime's message names its own internals.
    return 'is not a valid key';
  }
}

function publicPart(key: Record<string, unknown>): PublicKey {
  return Object.fromEntries(
    PUBLIC_MEMBERS.filter((name) => Object.hasOwn(key, name)).map((name) => [name, key[name]]),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string, advice: string): KeySetOutcome {
  return { kind: 'invalid', message, advice };
}
