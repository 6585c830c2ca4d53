// The stable share of clients that a policy really refuses (`enforcePercent`): raising the percentage adds clients and
// never swaps them, on every pod alike.

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Whether `text` (a key text or client name) belongs to the first `percent` of all. 0 = nobody, 100 = everybody. */
export function isEnforced(text: string, percent: number): boolean {
  return (hash(text) / 0x1_0000_0000) * 100 < percent;
}

/** FNV-1a, then MurmurHash3's finalizer: texts that differ in their last char only must spread over all 32 bits. */
function hash(text: string): number {
  let h = FNV_OFFSET;
  for (let i = 0; i < text.length; i += 1) {
    h = Math.imul(h ^ text.charCodeAt(i), FNV_PRIME);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
