// Hot path. An incremental, line-wise parser of a start line (if any) followed by field lines and an empty line:
// the shape of a request head, a response head and a trailer section (RFC 9112 §2.1, §5, §7.1.2).
// One object serves many messages. It remembers spans into one Latin-1 string and makes nothing per line.
// Lines are judged strictly in order and each only when complete, so the outcome cannot depend on how the
// bytes were split. Anything but CRLF as a line end is refused.
/* eslint complexity: ['error', 12] -- the two loops every byte goes through stay in one function each */
import { equalsFolded, isTokenChar, isValueChar, isWhitespace } from './characters.ts';
import { bitOf, CONNECTION, fieldKindOf, NOMINATED } from './field-kind.ts';
import type { FieldKind } from './field-kind.ts';
import type { ParseOutcome, RefusalReason } from './refusal.ts';

const CR = 0x0d;
const COLON = 0x3a;

/** Integers per line: start of name, end of name, start of value, end of value, kind. */
const STRIDE = 5;

/** A browser's request has about 16 lines; longer heads grow the spans once, up to the limit. */
const INITIAL_LINES = 24;

/**
 * Field lines are remembered for the next message only out of a text of at most this many bytes, because remembering a
 * part keeps the whole text alive: 10 000 idle connections then hold 40 MB at the very most, and 7 MB of usual heads.
 */
export const maxRememberedBytes = 4_096;

export interface SectionShape {
  readonly maxBytes: number;
  readonly maxFieldLines: number;
  /** What a section past `maxBytes` is refused as. */
  readonly tooLarge: RefusalReason;
  /** Whether one empty line may come before the start line (RFC 9112 §2.2). */
  readonly skipsEmptyLine: boolean;
}

export abstract class FieldSection {
  /** Everything fed so far: the section from `start`, and after `end` what follows it. */
  text = '';
  /** Offset of the start line, past an empty line before it. */
  start = 0;
  /** Offset just past the empty line; only meaningful when complete. */
  end = 0;
  /** Field lines so far. */
  count = 0;
  /** A bit per kind of field seen (`bitOf`). */
  seen = 0;
  /** Why the section was refused; only meaningful when refused. */
  refusal: RefusalReason = 'field-value';

  readonly #shape: SectionShape;
  /** Offsets are counted from `#origin`, the first field line, so that they hold wherever the same lines stand. */
  #spans: Int32Array = new Int32Array(STRIDE * INITIAL_LINES);
  #origin = 0;
  // The field lines of the message before, with the empty line, and what was found in them: clients and servers mostly
  // repeat themselves on a connection, and equal bytes have equal meaning. Empty = nothing is remembered.
  #remembered = '';
  #rememberedCount = 0;
  #rememberedSeen = 0;
  #lineStart = 0;
  #scanFrom = 0;
  #startLineRead = false;

  constructor(shape: SectionShape) {
    this.#shape = shape;
  }

  /** Judges the start line text[from, to); a section without that method has no start line. */
  protected readStartLine?(from: number, to: number): RefusalReason | undefined;
  /** Judges the section as a whole once its last line is in. */
  protected abstract judge(): RefusalReason | undefined;

  /** Forgets the message, so that an idle connection keeps no bytes alive. */
  reset(): void {
    this.text = '';
    this.start = 0;
    this.end = 0;
    this.count = 0;
    this.seen = 0;
    this.#lineStart = 0;
    this.#scanFrom = 0;
    this.#startLineRead = false;
  }

  /** Whether any byte of a section has been fed since `reset`. */
  get begun(): boolean {
    return this.text.length > 0;
  }

  /** Takes more bytes. Not to be called again after `complete` or `refused` without `reset`. */
  feed(chunk: string): ParseOutcome {
    this.text = this.text.length === 0 ? chunk : this.text + chunk;
    const text = this.text;
    for (;;) {
      if (this.#isRemembered()) return this.#recall();
      const lf = text.indexOf('\n', this.#scanFrom);
      const until = lf < 0 ? text.length : lf + 1;
      if (until - this.start > this.#shape.maxBytes) return this.#refuse(this.#shape.tooLarge);
      this.#scanFrom = until;
      if (lf < 0) return 'more';
      const from = this.#lineStart;
      if (lf === from || text.charCodeAt(lf - 1) !== CR) return this.#refuse('bare-lf');
      this.#lineStart = until;
      if (lf - 1 === from && this.#pastStartLine()) return this.#complete(until);
      const refusal = this.#readLine(from, lf - 1);
      if (refusal !== undefined) return this.#refuse(refusal);
    }
  }

  #pastStartLine(): boolean {
    return this.#startLineRead || this.readStartLine === undefined;
  }

  #readLine(from: number, to: number): RefusalReason | undefined {
    if (this.readStartLine === undefined || this.#startLineRead) {
      return this.#readFieldLine(from, to);
    }
    if (from === to && from === 0 && this.#shape.skipsEmptyLine) {
      this.start = to + 2;
      return undefined;
    }
    this.#startLineRead = true;
    return this.readStartLine(from, to);
  }

  /** Whether the field lines to come are those of the message before, byte for byte and within the bounds. */
  #isRemembered(): boolean {
    const remembered = this.#remembered;
    if (this.count > 0 || remembered === '' || !this.#pastStartLine()) return false;
    const from = this.#lineStart;
    const to = from + remembered.length;
    // Compared as strings: `startsWith` goes character by character, 140 ns for a small head instead of 25.
    if (to - this.start <= this.#shape.maxBytes && this.text.slice(from, to) === remembered) {
      return true;
    }
    // Their spans are about to be overwritten.
    this.#remembered = '';
    return false;
  }

  #recall(): ParseOutcome {
    this.#origin = this.#lineStart;
    this.count = this.#rememberedCount;
    this.seen = this.#rememberedSeen;
    this.end = this.#lineStart + this.#remembered.length;
    return this.#judged();
  }

  #complete(end: number): ParseOutcome {
    this.end = end;
    const outcome = this.#judged();
    if (outcome === 'complete') this.#remember();
    return outcome;
  }

  #judged(): ParseOutcome {
    const refusal = this.judge();
    return refusal === undefined ? 'complete' : this.#refuse(refusal);
  }

  // A nomination has changed kinds, and is rare: such lines are read again.
  #remember(): void {
    if (this.count === 0 || this.text.length > maxRememberedBytes || this.has(NOMINATED)) return;
    this.#remembered = this.text.slice(this.#origin, this.end);
    this.#rememberedCount = this.count;
    this.#rememberedSeen = this.seen;
  }

  #refuse(reason: RefusalReason): ParseOutcome {
    this.refusal = reason;
    return 'refused';
  }

  // field-line = field-name ":" OWS field-value OWS (RFC 9112 §5); no space before the colon (§5.1).
  #readFieldLine(from: number, to: number): RefusalReason | undefined {
    const text = this.text;
    let colon = from;
    while (colon < to && isTokenChar(text.charCodeAt(colon))) colon += 1;
    if (colon === to || colon === from || text.charCodeAt(colon) !== COLON) {
      return misnamed(text, from, colon);
    }
    let valueFrom = colon + 1;
    while (isWhitespace(text.charCodeAt(valueFrom))) valueFrom += 1;
    // All whitespace: `valueFrom` has stopped at the CR.
    let valueTo = to;
    while (valueTo > valueFrom && isWhitespace(text.charCodeAt(valueTo - 1))) valueTo -= 1;
    if (!areValueChars(text, valueFrom, valueTo)) return 'field-value';
    if (this.count === this.#shape.maxFieldLines) return 'too-many-fields';
    if (this.count === 0) this.#origin = from;
    const origin = this.#origin;
    const base = this.#nextLine();
    this.#spans[base] = from - origin;
    this.#spans[base + 1] = colon - origin;
    this.#spans[base + 2] = valueFrom - origin;
    this.#spans[base + 3] = valueTo - origin;
    const kind = fieldKindOf(text, from, colon);
    this.#spans[base + 4] = kind;
    this.seen |= bitOf(kind);
    return undefined;
  }

  #nextLine(): number {
    const base = this.count * STRIDE;
    if (base === this.#spans.length) this.#grow();
    this.count += 1;
    return base;
  }

  #grow(): void {
    const spans = new Int32Array(this.#spans.length * 2);
    spans.set(this.#spans);
    this.#spans = spans;
  }

  // The index is below count · STRIDE by construction: `Number` only tells the compiler so.
  #span(index: number): number {
    return Number(this.#spans[index]) + this.#origin;
  }

  /** Offset of the line's first byte. */
  lineStart(line: number): number {
    return this.#span(line * STRIDE);
  }

  /** Offset just past the line's CRLF. */
  lineEnd(line: number): number {
    return line + 1 < this.count ? this.#span((line + 1) * STRIDE) : this.end - 2;
  }

  name(line: number): string {
    return this.text.slice(this.#span(line * STRIDE), this.#span(line * STRIDE + 1));
  }

  value(line: number): string {
    return this.text.slice(this.#span(line * STRIDE + 2), this.#span(line * STRIDE + 3));
  }

  /** Whether nothing, not even whitespace, stands between the value and the line's end. */
  endsWithValue(line: number): boolean {
    return this.#span(line * STRIDE + 3) === this.lineEnd(line) - 2;
  }

  kind(line: number): FieldKind {
    return Number(this.#spans[line * STRIDE + 4]);
  }

  has(kind: FieldKind): boolean {
    return (this.seen & bitOf(kind)) !== 0;
  }

  /** The first line of that kind at or after `from`; `count` when there is none. */
  lineOf(kind: FieldKind, from: number): number {
    let line = from;
    while (line < this.count && this.kind(line) !== kind) line += 1;
    return line;
  }

  /** Whether exactly one line of that kind is there. */
  hasOne(kind: FieldKind): boolean {
    const line = this.lineOf(kind, 0);
    return line < this.count && this.lineOf(kind, line + 1) === this.count;
  }

  /** Marks every line of that (lower-case) name as nominated by Connection; hop-by-hop ones are dropped anyhow. */
  protected nominate(name: string): void {
    for (let line = 0; line < this.count; line += 1) {
      if (this.kind(line) >= CONNECTION || !this.#isNamed(line, name)) continue;
      this.seen = (this.seen & ~bitOf(this.kind(line))) | bitOf(NOMINATED);
      this.#spans[line * STRIDE + 4] = NOMINATED;
    }
  }

  #isNamed(line: number, name: string): boolean {
    const from = this.#span(line * STRIDE);
    return (
      this.#span(line * STRIDE + 1) - from === name.length && equalsFolded(this.text, from, name)
    );
  }

  header(name: string): string | undefined {
    let joined: string | undefined;
    for (let line = 0; line < this.count; line += 1) {
      if (!this.#isNamed(line, name)) continue;
      joined = joined === undefined ? this.value(line) : `${joined}, ${this.value(line)}`;
    }
    return joined;
  }

  headerCount(name: string): number {
    let lines = 0;
    for (let line = 0; line < this.count; line += 1) if (this.#isNamed(line, name)) lines += 1;
    return lines;
  }

  eachHeader(visit: (name: string, value: string) => void): void {
    for (let line = 0; line < this.count; line += 1) visit(this.name(line), this.value(line));
  }
}

function areValueChars(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i += 1) if (!isValueChar(text.charCodeAt(i))) return false;
  return true;
}

/** Text past the name at `colon` is always there: at least the line's CR. */
function misnamed(text: string, from: number, colon: number): RefusalReason {
  if (!isWhitespace(text.charCodeAt(colon))) return 'field-name';
  return colon === from ? 'obs-fold' : 'space-before-colon';
}
