// Hot path for streamed bodies. Writes the taken part of a body to the other side in one write. What was read stands in a
// buffer that the next read overwrites, and what the other side has not taken yet needs a place of its own: memory that is
// used again once it is written. A new buffer for each read would be 64 KiB of garbage, and 60 MB before they are collected.
import type { Writable } from 'node:stream';
import type { MessageBody } from '../http1/message-body.ts';

/** Kept for reuse; slow readers may hold more. */
const MAX_SPARE = 32;
/** A smaller piece is copied to memory of its own size: many of them may wait for one slow reader. */
const LEAST_PLACED = 16_384;

interface Place {
  readonly bytes: Buffer;
  readonly onWritten: () => void;
}

export class BodyRelay {
  readonly #readBuffer: Buffer;
  readonly #spare: Place[] = [];

  /** `readBuffer` is what the next read overwrites. */
  constructor(readBuffer: Buffer) {
    this.#readBuffer = readBuffer;
  }

  /** Returns false when the other side must drain before more is read. */
  write(to: Writable, bytes: Buffer, body: MessageBody): boolean {
    if (body.passesWhole) {
      const taken = body.end === bytes.length ? bytes : bytes.subarray(0, body.end);
      return taken.buffer === this.#readBuffer.buffer
        ? this.#writeCopy(to, taken)
        : to.write(taken);
    }
    const kept = keptBytes(bytes, body);
    return kept.length === 0 ? !to.writableNeedDrain : to.write(kept);
  }

  #writeCopy(to: Writable, bytes: Buffer): boolean {
    if (bytes.length < LEAST_PLACED) return to.write(Buffer.from(bytes));
    const place = this.#spare.pop() ?? this.#newPlace();
    bytes.copy(place.bytes);
    return to.write(place.bytes.subarray(0, bytes.length), place.onWritten);
  }

  #newPlace(): Place {
    const place = {
      bytes: Buffer.allocUnsafeSlow(this.#readBuffer.length),
      // Called once for each write, also for one that failed: nobody reads the place any more then.
      onWritten: (): void => {
        if (this.#spare.length < MAX_SPARE) this.#spare.push(place);
      },
    };
    return place;
  }
}

// Copied into one piece: a read full of one-byte chunks with extensions would otherwise be thousands of writes.
function keptBytes(bytes: Buffer, body: MessageBody): Buffer {
  const kept = Buffer.allocUnsafe(body.end + body.trailers.length);
  let length = 0;
  let from = 0;
  for (const [index, at] of body.dropped.entries()) {
    if (index % 2 === 0) length += bytes.copy(kept, length, from, at);
    else from = at;
  }
  length += bytes.copy(kept, length, from, body.end);
  length += kept.write(body.trailers, length, 'latin1');
  return kept.subarray(0, length);
}
