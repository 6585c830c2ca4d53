// Hot path.
// Which rules can match a request at all, by its method and the first segment of its path. One bit per rule, so a pod
// with many rules looks at 32 of them at once. The index only rules out: a candidate is still tested in full.
import type { CompiledMatch, CompiledRule } from '../../contract/bundle.ts';
import { bytesOf } from './byte-string.ts';
import { firstSegment } from './request-target.ts';

/** One bit per rule, 32 a word. */
type Bits = Uint32Array;

export class RuleIndex {
  readonly #bySegment: Facet;
  readonly #byMethod: Facet;
  readonly #words: number;

  /** Rule numbers are positions in `rules`. */
  constructor(rules: readonly CompiledRule[]) {
    this.#words = Math.ceil(rules.length / 32);
    this.#bySegment = new Facet(rules, this.#words, segmentsOf);
    this.#byMethod = new Facet(rules, this.#words, (match) => match.methods);
  }

  /** Writes the numbers of the candidates into `into`, ascending; returns how many there are. */
  candidates(method: string, path: string, into: Uint32Array): number {
    const bySegment = this.#bySegment.bitsOf(firstSegment(path));
    const byMethod = this.#byMethod.bitsOf(method);
    let count = 0;
    for (let word = 0; word < this.#words; word += 1) {
      let bits = Number(bySegment[word]) & Number(byMethod[word]);
      while (bits !== 0) {
        into[count] = word * 32 + (31 - Math.clz32(bits & -bits));
        count += 1;
        bits &= bits - 1;
      }
    }
    return count;
  }
}

/** The rules that can match each value of one property of requests. */
class Facet {
  readonly #byValue = new Map<string, Bits>();
  /** For a value that no rule names. */
  readonly #others: Bits;

  constructor(
    rules: readonly CompiledRule[],
    words: number,
    valuesOf: (match: CompiledMatch) => readonly string[] | undefined,
  ) {
    this.#others = new Uint32Array(words);
    const named = rules.map((rule) => ruleValues(rule, valuesOf));
    named.forEach((values, id) => {
      if (values === undefined) setBit(this.#others, id);
    });
    named.forEach((values, id) => {
      for (const value of values ?? []) setBit(this.#bitsFor(value), id);
    });
  }

  bitsOf(value: string): Bits {
    return this.#byValue.get(value) ?? this.#others;
  }

  #bitsFor(value: string): Bits {
    const known = this.#byValue.get(value);
    if (known !== undefined) return known;
    const bits = this.#others.slice();
    this.#byValue.set(value, bits);
    return bits;
  }
}

/** The values a request must have one of for the rule to match; undefined when any will do. */
function ruleValues(
  rule: CompiledRule,
  valuesOf: (match: CompiledMatch) => readonly string[] | undefined,
): readonly string[] | undefined {
  const perMatch = rule.match.map(valuesOf);
  const restricting = perMatch.filter((values) => values !== undefined);
  if (restricting.length < perMatch.length || perMatch.length === 0) return undefined;
  return restricting.flat();
}

function segmentsOf({ path }: CompiledMatch): readonly string[] | undefined {
  if (path === undefined || path.type === 'Regex') return undefined;
  const segment = firstSegment(bytesOf(path.value));
  // `Prefix: /` holds for every path.
  return path.type === 'Prefix' && segment === '' ? undefined : [segment];
}

function setBit(bits: Bits, id: number): void {
  const word = id >>> 5;
  bits[word] = Number(bits[word]) | (1 << (id & 31));
}
