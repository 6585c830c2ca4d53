// Hot path for streamed bodies. Validates chunked transfer coding (RFC 9112 §7.1) byte by byte at any split and
// tells which bytes to pass on: the framing passes as it came, chunk extensions are dropped (§7.1.1 lets a
// recipient ignore them; smuggling likes them), a trailer section is held back until it is known to be valid.
import { hexValue, isTokenChar, isValueChar } from './characters.ts';
import { bitOf, CONTENT_LENGTH, HOST, hopByHopBits, TRANSFER_ENCODING } from './field-kind.ts';
import { FieldSection } from './field-section.ts';
import type { Http1Limits } from './limits.ts';
import type { ParseOutcome, RefusalReason } from './refusal.ts';

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const SIZE_FIRST = 0;
const SIZE = 1;
const EXTENSION_NAME = 2;
const EXTENSION_VALUE = 3;
const EXTENSION_TOKEN = 4;
const EXTENSION_QUOTED = 5;
const EXTENSION_ESCAPED = 6;
const EXTENSION_UNQUOTED = 7;
const SIZE_LF = 8;
const DATA = 9;
const DATA_CR = 10;
const DATA_LF = 11;
const LAST_CR = 12;
const LAST_LF = 13;
const TRAILERS = 14;

/** Fields that frame, route or belong to one hop; a trailer must not bring them (RFC 9110 §6.5.1). */
const forbiddenTrailers =
  hopByHopBits | bitOf(CONTENT_LENGTH) | bitOf(TRANSFER_ENCODING) | bitOf(HOST);

export class ChunkedBody {
  /** Offset just past what the last `advance` took. */
  end = 0;
  /** The validated trailer section with its closing empty line, to be sent when complete; mostly empty. */
  trailers = '';
  refusal: RefusalReason = 'chunk-size';
  /** Pairs of offsets of the last `advance` whose bytes are not passed on, ascending. */
  readonly dropped: number[] = [];

  readonly #limits: Http1Limits;
  /** Few bodies have trailers: made when the first one comes. */
  #trailers: TrailerSection | undefined;
  #state = SIZE_FIRST;
  #size = 0;
  #lineBytes = 0;
  #nameBytes = 0;
  #dropFrom = -1;

  constructor(limits: Http1Limits) {
    this.#limits = limits;
  }

  reset(): void {
    this.trailers = '';
    this.dropped.length = 0;
    this.#trailers?.reset();
    this.#state = SIZE_FIRST;
    this.#size = 0;
    this.#lineBytes = 0;
    this.#dropFrom = -1;
  }

  /** Takes bytes[from, …) of the body; `complete` when its last byte is among them. */
  advance(bytes: Buffer, from: number): ParseOutcome {
    this.dropped.length = 0;
    // An extension left open by the last call goes on being dropped.
    if (this.#dropFrom >= 0) this.#dropFrom = from;
    let at = from;
    while (at < bytes.length) {
      if (this.#state === TRAILERS) return this.#readTrailers(bytes, at);
      if (this.#state === DATA) {
        at = this.#skipData(bytes, at);
        continue;
      }
      const outcome = this.#readByte(bytes.readUInt8(at), at);
      if (outcome === 'refused') return outcome;
      if (outcome === 'complete') return this.#finish(at + 1);
      // The first byte of a trailer section belongs to its parser.
      if (this.#state !== TRAILERS) at += 1;
    }
    this.#suspendDrop(at);
    this.end = at;
    return 'more';
  }

  #skipData(bytes: Buffer, at: number): number {
    const taken = Math.min(this.#size, bytes.length - at);
    this.#size -= taken;
    if (this.#size === 0) this.#state = DATA_CR;
    return at + taken;
  }

  #finish(at: number): ParseOutcome {
    this.end = at;
    return 'complete';
  }

  #suspendDrop(at: number): void {
    if (this.#dropFrom < 0) return;
    if (at > this.#dropFrom) this.dropped.push(this.#dropFrom, at);
    this.#dropFrom = at;
  }

  #readByte(code: number, at: number): ParseOutcome {
    if (this.#state <= SIZE_LF) return this.#readSizeLine(code, at);
    switch (this.#state) {
      case DATA_CR:
        return this.#expect(code === CR, DATA_LF);
      case DATA_LF:
        return this.#expect(code === LF, SIZE_FIRST);
      case LAST_CR:
        this.#state = code === CR ? LAST_LF : TRAILERS;
        return 'more';
      default:
        return code === LF ? 'complete' : this.#refuse('chunk-end');
    }
  }

  #readSizeLine(code: number, at: number): ParseOutcome {
    this.#lineBytes += 1;
    if (this.#lineBytes > this.#limits.maxChunkLineBytes)
      return this.#refuse('chunk-line-too-long');
    switch (this.#state) {
      case SIZE_FIRST:
        this.#size = 0;
        return this.#readDigit(code);
      case SIZE:
        return this.#readSize(code, at);
      case SIZE_LF:
        return code === LF ? this.#endSizeLine() : this.#refuse('chunk-size');
      default:
        return this.#readExtension(code, at);
    }
  }

  #readSize(code: number, at: number): ParseOutcome {
    if (code === CR) return this.#go(SIZE_LF);
    if (code !== SEMICOLON) return this.#readDigit(code);
    this.#dropFrom = at;
    this.#nameBytes = 0;
    return this.#go(EXTENSION_NAME);
  }

  #readDigit(code: number): ParseOutcome {
    const digit = hexValue(code);
    const size = this.#size * 16 + digit;
    if (digit < 0 || !Number.isSafeInteger(size)) return this.#refuse('chunk-size');
    this.#size = size;
    return this.#go(SIZE);
  }

  // chunk-ext = *( ";" chunk-ext-name [ "=" ( token / quoted-string ) ] ), without the optional whitespace that
  // RFC 9112 §7.1.1 only tolerates.
  #readExtension(code: number, at: number): ParseOutcome {
    switch (this.#state) {
      case EXTENSION_NAME:
        return this.#readExtensionName(code, at);
      case EXTENSION_VALUE:
        if (code === QUOTE) return this.#go(EXTENSION_QUOTED);
        return isTokenChar(code) ? this.#go(EXTENSION_TOKEN) : this.#refuse('chunk-extension');
      case EXTENSION_TOKEN:
        return isTokenChar(code) ? 'more' : this.#endExtension(code, at);
      case EXTENSION_QUOTED:
        return this.#readQuoted(code);
      case EXTENSION_ESCAPED:
        return isValueChar(code) ? this.#go(EXTENSION_QUOTED) : this.#refuse('chunk-extension');
      default:
        return this.#endExtension(code, at);
    }
  }

  #readExtensionName(code: number, at: number): ParseOutcome {
    if (isTokenChar(code)) {
      this.#nameBytes += 1;
      return 'more';
    }
    if (this.#nameBytes === 0) return this.#refuse('chunk-extension');
    return code === EQUALS ? this.#go(EXTENSION_VALUE) : this.#endExtension(code, at);
  }

  #readQuoted(code: number): ParseOutcome {
    if (code === QUOTE) return this.#go(EXTENSION_UNQUOTED);
    if (code === BACKSLASH) return this.#go(EXTENSION_ESCAPED);
    return isValueChar(code) ? 'more' : this.#refuse('chunk-extension');
  }

  #endExtension(code: number, at: number): ParseOutcome {
    if (code === SEMICOLON) {
      this.#nameBytes = 0;
      return this.#go(EXTENSION_NAME);
    }
    if (code !== CR) return this.#refuse('chunk-extension');
    this.#suspendDrop(at);
    this.#dropFrom = -1;
    return this.#go(SIZE_LF);
  }

  #endSizeLine(): ParseOutcome {
    this.#lineBytes = 0;
    return this.#go(this.#size === 0 ? LAST_CR : DATA);
  }

  #expect(matches: boolean, next: number): ParseOutcome {
    return matches ? this.#go(next) : this.#refuse('chunk-end');
  }

  #go(state: number): ParseOutcome {
    this.#state = state;
    return 'more';
  }

  #refuse(reason: RefusalReason): ParseOutcome {
    this.refusal = reason;
    return 'refused';
  }

  #readTrailers(bytes: Buffer, at: number): ParseOutcome {
    const section = (this.#trailers ??= new TrailerSection(this.#limits));
    const before = section.text.length;
    // No more than the bound is ever turned into text, whatever follows in the same buffer.
    const until = Math.min(bytes.length, at + this.#limits.maxTrailerBytes + 1);
    const outcome = section.feed(bytes.toString('latin1', at, until));
    if (outcome === 'refused') return this.#refuse(section.refusal);
    this.end = outcome === 'complete' ? at + section.end - before : bytes.length;
    this.dropped.push(at, this.end);
    if (outcome === 'complete') this.trailers = section.text.slice(0, section.end);
    return outcome;
  }
}

class TrailerSection extends FieldSection {
  constructor(limits: Http1Limits) {
    super({
      maxBytes: limits.maxTrailerBytes,
      maxFieldLines: limits.maxFieldLines,
      tooLarge: 'trailer-too-large',
      skipsEmptyLine: false,
    });
  }

  protected override judge(): RefusalReason | undefined {
    return (this.seen & forbiddenTrailers) === 0 ? undefined : 'trailer-field';
  }
}
