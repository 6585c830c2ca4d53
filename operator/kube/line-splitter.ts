// Takes the bytes of a watch apart into lines. A line feed is never part of a longer UTF-8 sequence, so lines are cut as
// bytes and decoded whole: no split of the stream can break a character.

/** An API server takes objects of 3 MiB; JSON escapes and metadata may multiply it. Above it is no Kubernetes. */
const MOST_LINE_BYTES = 16 * 1024 * 1024;

const LINE_FEED = 0x0a;

export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #mostBytes: number;
  /** Pieces of the unfinished line: joined once, so that a large line costs its length and not its square. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(mostBytes: number = MOST_LINE_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** The lines that `chunk` ends, without their feed; empty ones are left out. Throws RangeError at a line too long. */
  *push(chunk: Uint8Array): Generator<string, void, undefined> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, start);
      if (end < 0) break;
      this.#keep(chunk.subarray(start, end));
      start = end + 1;
      const line = this.#take();
      if (line !== '') yield line;
    }
    this.#keep(chunk.subarray(start));
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (this.#bytes > this.#mostBytes) {
      throw new RangeError(`a line of more than ${this.#mostBytes} bytes`);
    }
    this.#pieces.push(piece);
  }

  #take(): string {
    const [first] = this.#pieces;
    const whole =
      this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    return this.#decoder.decode(whole).trim();
  }
}
