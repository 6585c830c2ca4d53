// The nearest of a few known words, for "did you mean".

/** Longer words are no misspelling of a field; comparing them would cost their product. */
const WORD_MAX = 64;

/** The candidate that `word` is most likely meant to be, or undefined when none is near. */
export function nearestWord(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > WORD_MAX) return undefined;
  const lower = word.toLowerCase();
  let nearest: string | undefined;
  // A third of the letters wrong, and at least one: more is another word.
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < least) {
      nearest = candidate;
      least = distance;
    }
  }
  return nearest;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) row.push(cellOf({ a, b, i, j, row, last, beforeLast }));
    beforeLast = last;
    last = row;
  }
  return Number(last[b.length]);
}

interface Cell {
  readonly a: string;
  readonly b: string;
  readonly i: number;
  readonly j: number;
  readonly row: readonly number[];
  readonly last: readonly number[];
  readonly beforeLast: readonly number[];
}

function cellOf({ a, b, i, j, row, last, beforeLast }: Cell): number {
  const same = a[i - 1] === b[j - 1] ? 0 : 1;
  const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
  return Math.min(
    Number(last[j]) + 1,
    Number(row[j - 1]) + 1,
    Number(last[j - 1]) + same,
    swapped ? Number(beforeLast[j - 2]) + 1 : Infinity,
  );
}
