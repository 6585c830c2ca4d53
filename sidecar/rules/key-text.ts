// Hot path.
// The text that names a client within a rule; a bucket's name is made from its hash. Every part carries its kind,
// its name and its value with their lengths, and the text says whether the key was present: otherwise
// `X-Api-Key: 198.51.100.7` would drain the fallback bucket of that address. No two different keys have one text.
//
//   present   k<parts> then per part <kind letter><name length>:<name><value length>:<value>
//   missing   m<signature length>:<signature><address length>:<address>   (onMissingKey: ClientIP)
//   shared    s<signature length>:<signature>                             (onMissingKey: Shared)
//   no key    r
//
// The signature of a rule's key is its present form without values: a changed key starts new buckets.
import type { CompiledKeyPart } from '../../contract/bundle.ts';

/** The text of a rule without key: one bucket for the rule. */
export const RULE_KEY_TEXT = 'r';

const LETTERS: Readonly<Record<CompiledKeyPart['kind'], string>> = {
  clientIP: 'a',
  header: 'h',
  cookie: 'c',
  query: 'q',
  claim: 'j',
  path: 'p',
  pathSegment: 's',
  method: 'm',
  host: 'o',
  constant: 'k',
  cel: 'e',
};

/** What every key text of a rule begins with; made once per rule. */
export interface KeyLayout {
  /** Per part, what stands before its value's length. */
  readonly partPrefixes: readonly string[];
  readonly missingPrefix: string;
  readonly sharedText: string;
}

export function layoutOf(parts: readonly CompiledKeyPart[]): KeyLayout {
  const labels = parts.map((part) => LETTERS[part.kind] + sized(nameOf(part)));
  const signature = sized(labels.join(''));
  const first = `k${String(parts.length)}`;
  return {
    partPrefixes: labels.map((label, i) => (i === 0 ? first + label : label)),
    missingPrefix: `m${signature}`,
    sharedText: `s${signature}`,
  };
}

/** `text` after its length, so that where it ends does not depend on what it holds. */
export function sized(text: string): string {
  return `${String(text.length)}:${text}`;
}

/** What tells a part from another of its kind. A constant's value is its value, like a header's. */
function nameOf(part: CompiledKeyPart): string {
  if ('name' in part) return part.name;
  if ('path' in part) return part.path.map(sized).join('');
  if ('expression' in part) return part.expression;
  return part.kind === 'pathSegment' ? String(part.index) : '';
}

/** Whether a request without key is told by its client's address. */
export function isMissingKeyText(keyText: string): boolean {
  return keyText.startsWith('m');
}
