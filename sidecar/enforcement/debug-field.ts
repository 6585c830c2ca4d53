// The opt-in `Weir-Debug` response field: which rules met the request, under which hashed keys, with how many tokens
// left. Only for networks the operator of the sidecar has named.
import type { KeyedBuckets } from '../limiter/bucket.ts';
import { labelOf } from './quota-fields.ts';

/** One field line ended by CRLF; a Structured Fields list of bucket labels with parameters. */
export function describeForDebugging(
  enforced: readonly KeyedBuckets[],
  shadow: readonly KeyedBuckets[],
): string {
  const items = [
    ...enforced.flatMap((part) => describePart(part, '')),
    ...shadow.flatMap((part) => describePart(part, ';shadow')),
  ];
  return items.length === 0 ? 'Weir-Debug: "no-rule"\r\n' : `Weir-Debug: ${items.join(', ')}\r\n`;
}

function describePart(part: KeyedBuckets, suffix: string): string[] {
  return part.buckets.map(({ bucket, key, level }) => {
    const hash = key.slice(key.lastIndexOf(':') + 1);
    const tokens = level < 0 ? '' : `;tokens=${Math.floor(level / bucket.limit.unitsPerToken)}`;
    return `"${labelOf(bucket)}";tier="${bucket.tier.name}";key="${hash}"${tokens}${suffix}`;
  });
}
