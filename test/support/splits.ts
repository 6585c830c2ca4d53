// Feeds the same bytes cut at every place, to show that the outcome does not depend on how they arrive.
import type { FieldSection } from '../../sidecar/http1/field-section.ts';

/** The cuts of a text into parts: whole, in two at every position, and byte by byte. */
export function* partitions(text: string): Generator<readonly string[]> {
  yield [text];
  for (let at = 1; at < text.length; at += 1) yield [text.slice(0, at), text.slice(at)];
  yield text.split('');
}

/** What became of it: the reason of a refusal, `more`, or `complete` with the number of bytes that followed. */
export function feedParts(section: FieldSection, parts: readonly string[]): string {
  section.reset();
  for (const [at, part] of parts.entries()) {
    const outcome = section.feed(part);
    if (outcome === 'refused') return section.refusal;
    if (outcome === 'complete') {
      const later = parts.slice(at + 1).join('').length;
      return `complete, ${String(section.text.length - section.end + later)} more`;
    }
  }
  return 'more';
}
