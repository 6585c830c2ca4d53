// Hot path. Where a message's body ends in the bytes at hand, for every framing; one object per connection and
// direction, reused.
import { ChunkedBody } from './chunked-body.ts';
import type { Http1Limits } from './limits.ts';
import type { ParseOutcome, RefusalReason } from './refusal.ts';
import type { Framing } from './framing.ts';

export class MessageBody {
  /** Whether the last byte has been taken; true before the first `begin`. */
  done = true;
  framing: Framing = 'none';
  /** Offset just past what the last `take` took. */
  end = 0;
  readonly #chunked: ChunkedBody;
  #left = 0;

  constructor(limits: Http1Limits) {
    this.#chunked = new ChunkedBody(limits);
  }

  /** Starts a body; `length` counts only with framing `length`. */
  begin(framing: Framing, length: number): void {
    this.framing = framing;
    this.done = framing === 'none';
    this.#left = length;
    if (framing === 'chunked') this.#chunked.reset();
  }

  /** Takes what belongs to the body from the start of `bytes`. A close-delimited body is never complete by bytes. */
  take(bytes: Buffer): ParseOutcome {
    switch (this.framing) {
      case 'length':
        this.end = Math.min(this.#left, bytes.length);
        this.#left -= this.end;
        this.done = this.#left === 0;
        return this.done ? 'complete' : 'more';
      case 'close':
        this.end = bytes.length;
        return 'more';
      case 'chunked':
        return this.#takeChunks(bytes);
      case 'none':
        this.end = 0;
        return 'complete';
    }
  }

  #takeChunks(bytes: Buffer): ParseOutcome {
    const outcome = this.#chunked.advance(bytes, 0);
    this.end = this.#chunked.end;
    this.done = outcome === 'complete';
    return outcome;
  }

  /** Whether what was taken passes as it came; always so unless chunked. */
  get passesWhole(): boolean {
    return this.framing !== 'chunked' || (this.dropped.length === 0 && this.trailers === '');
  }

  /** Pairs of offsets of the last `take` that are not passed on (chunk extensions, held trailers). */
  get dropped(): readonly number[] {
    return this.#chunked.dropped;
  }

  /** The validated trailer section, once complete. */
  get trailers(): string {
    return this.#chunked.trailers;
  }

  /** Why a chunked body was refused. */
  get refusal(): RefusalReason {
    return this.#chunked.refusal;
  }
}
