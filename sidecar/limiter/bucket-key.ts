// Names of buckets in the store:
// `weir1:{<namespace>/<uid>[/<kind>.<owner>][/<partition>]}:<rule>:<tier|->:<bucket>:<hash>`.
// Every component but the hash comes from validated names; the client's part is hashed, so that raw client
// text never reaches the store, a `{` in it cannot choose a Cluster slot, and its length is bounded.
import { hash as hashOnce } from 'node:crypto';
import type { CompiledPolicy } from '../../contract/bundle.ts';

/** Raised when a stored state could be misread by an older sidecar. */
const KEY_FORMAT = 'weir1';
/** 128 bits: a collision among 10^9 keys has a probability below 10^-20. */
const HASH_BYTES = 16;

/** First 128 bits of SHA-256 over an already injective key text, base64url, 22 characters. */
export function hashKeyText(keyText: string): string {
  return digest(keyText).toString('base64url');
}

/** Which of `partitions` (≥ 1) a key belongs to. Depends on the key alone, so that adding a rule renames nothing. */
export function partitionOf(keyText: string, partitions: number): number {
  return partitions === 1 ? 0 : digest(keyText).readUInt32BE(0) % partitions;
}

/** The hash tag without braces: what decides the Cluster slot. A partition appears only where there are several. */
export function hashTag(policy: CompiledPolicy, partition: number, partitions: number): string {
  const owner = policy.workload === undefined ? '' : `/${policy.workload}`;
  const part = partitions === 1 ? '' : `/${partition}`;
  return `${policy.namespace}/${policy.uid}${owner}${part}`;
}

/** What stands behind the tag for one bucket, up to the hash: `:<rule>:<tier>:<bucket>:`. */
export function bucketPath(rule: string, tier: string, bucket: string): string {
  return `:${rule}:${tier}:${bucket}:`;
}

export function bucketKey(tag: string, path: string, hash: string): string {
  return `${KEY_FORMAT}:{${tag}}${path}${hash}`;
}

/** The bucket that all keys without a place of their own share: the same name with a word no hash can be. */
export function overflowKey(key: string): string {
  return `${key.slice(0, key.lastIndexOf(':'))}:overflow`;
}

/** A number for tables of keys: 31 bits, of every character. */
export function hashCode(key: string): number {
  let code = 0;
  for (let i = 0; i < key.length; i += 1) code = (Math.imul(code, 31) + key.charCodeAt(i)) | 0;
  return code & 0x7fff_ffff;
}

function digest(text: string): Buffer {
  return hashOnce('sha256', text, 'buffer').subarray(0, HASH_BYTES);
}
