// Field blocks that come in several frames (RFC 9113 §6.10): kept until they are whole, within bounds.
import { ConnectionError, ENHANCE_YOUR_CALM, PROTOCOL_ERROR } from './error-code.ts';
import { END_HEADERS, END_STREAM, type FrameReader } from './frame.ts';
import { blockOf } from './frame-shape.ts';

/** Frames of one block: the longest takes nine if they are full. */
const MAX_FRAMES = 64;

export interface WholeBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly bytes: Buffer;
}

interface OpenBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly parts: Buffer[];
  length: number;
}

export class FieldBlocks {
  readonly #maxBytes: number;
  #open: OpenBlock | undefined;

  /** `maxBytes` of one block, coded. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether a block has begun and not ended: nothing but its next frame may come. */
  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Bytes of it. */
  get pendingBytes(): number {
    return this.#open?.length ?? 0;
  }

  /** Forgets it. */
  drop(): void {
    this.#open = undefined;
  }

  /** Takes a HEADERS frame; the block, if it is whole. */
  begin(frame: FrameReader): WholeBlock | undefined {
    const { streamId, flags } = frame;
    const bytes = blockOf(frame);
    const endsStream = (flags & END_STREAM) !== 0;
    if ((flags & END_HEADERS) !== 0) return { streamId, endsStream, bytes };
    this.#open = { streamId, endsStream, parts: [Buffer.from(bytes)], length: bytes.length };
    return undefined;
  }

  /** Takes a CONTINUATION frame. Throws ConnectionError when it continues nothing, or has no end. */
  proceed({ streamId, flags, payload }: FrameReader): WholeBlock | undefined {
    const open = this.#open;
    if (open?.streamId !== streamId) {
      throw new ConnectionError(PROTOCOL_ERROR, 'CONTINUATION of nothing');
    }
    open.parts.push(Buffer.from(payload));
    open.length += payload.length;
    if (open.length > this.#maxBytes || open.parts.length > MAX_FRAMES) {
      throw new ConnectionError(ENHANCE_YOUR_CALM, 'a field block without end');
    }
    if ((flags & END_HEADERS) === 0) return undefined;
    this.#open = undefined;
    return { streamId, endsStream: open.endsStream, bytes: Buffer.concat(open.parts) };
  }
}
