// The bytes of one client of HTTP/2: streams in turns, control frames between them, and what is wrong with some of it.
import {
  FLAG,
  frame,
  PREFACE_BYTES,
  rawFrame,
  settings,
  uint32,
} from '../../support/http2-frames.ts';
import { MARK } from '../dialect.ts';
import { Chance } from './chance.ts';
import { HpackWriter, integer, literalBlock } from './hpack-writer.ts';
import { plannedRequest } from './request-maker.ts';

/** What is left to say on a stream. */
interface Under {
  readonly id: number;
  readonly rest: Buffer[];
}

/** A whole request for a reader that takes a body for frames. */
const HIDDEN = frame(
  'HEADERS',
  101,
  literalBlock([
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', `/${MARK}/hidd`],
    [':authority', 'a'],
  ]),
  FLAG.endHeaders | FLAG.endStream,
).toString('latin1');

/** Ends of field blocks that no decoder may take. */
const BROKEN_BLOCKS: readonly Buffer[] = [
  Buffer.from([0x80]),
  integer(0x80, 7, 200),
  integer(0x20, 5, 5_000),
  integer(0x20, 5, 100),
  Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
  Buffer.from([0x00, 0x81, 0xfe, 0x01, 0x61]),
  Buffer.from([0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x01, 0x61]),
  Buffer.from([0x00, 0x05, 0x61]),
  Buffer.from([0x40]),
];

const MAX_STREAMS = 9;
const MAX_FRAME_BYTES = 16_384;

/** The pieces in which one connection is sent, Latin-1. */
export function madeConnection(random: () => number): string[] {
  const chance = new Chance(random);
  const frames = new ConnectionMaker(chance).frames().map((bytes) => bytes.toString('latin1'));
  const isCut = chance.hits(0.08);
  let bytes = frames.join('');
  for (let n = chance.hits(0.2) ? 1 + chance.below(3) : 0; n > 0; n -= 1) {
    bytes = mutated(chance, bytes);
  }
  if (isCut) bytes = bytes.slice(0, chance.below(bytes.length));
  return pieces(chance, bytes);
}

class ConnectionMaker {
  readonly #chance: Chance;
  readonly #hpack: HpackWriter;
  readonly #frames: Buffer[] = [];
  readonly #under: Under[] = [];
  /** Streams that have been opened, over or not. */
  readonly #ids: number[] = [];
  #nextId = 1;

  constructor(chance: Chance) {
    this.#chance = chance;
    this.#hpack = new HpackWriter(chance.random);
  }

  frames(): Buffer[] {
    const chance = this.#chance;
    this.#frames.push(PREFACE_BYTES, frame('SETTINGS', 0, this.#settings()));
    let left = 1 + chance.below(MAX_STREAMS);
    // Most connections are right but for single messages: a fault of a connection hides all that is behind it.
    const faults = chance.hits(0.25) ? 1 + chance.below(2) : 0;
    const faultRate = faults / (3 * left);
    while (left > 0 || this.#under.length > 0) {
      if (left > 0 && chance.hits(0.5)) {
        left -= 1;
        this.#open();
      } else this.#goOn();
      if (chance.hits(0.15)) this.#frames.push(this.#control());
      if (chance.hits(faultRate)) this.#frames.push(this.#fault());
    }
    this.#openPlain();
    return this.#frames;
  }

  #settings(): Buffer {
    const chance = this.#chance;
    const entries: (readonly [number, number])[] = [
      [1, chance.one([0, 1, 64, 4_096, 65_536])],
      [2, chance.below(2)],
      [3, chance.one([0, 1, 100])],
      [4, chance.one([0, 1, 65_535, 65_535, 2 ** 20])],
      [5, chance.one([16_384, 2 ** 24 - 1])],
      [6, chance.one([100, 65_536])],
      [8, 1],
      [0xfafa, chance.below(2 ** 31)],
    ];
    return settings(...entries.filter(() => chance.hits(0.12)));
  }

  /** The last request of every connection that gets so far: it shows that the connection lived. */
  #openPlain(): void {
    const id = this.#takeId();
    const block = literalBlock([
      [':method', 'GET'],
      [':scheme', 'http'],
      [':path', `/${MARK}/last`],
      [':authority', 'a'],
    ]);
    this.#frames.push(frame('HEADERS', id, block, FLAG.endHeaders | FLAG.endStream));
  }

  #takeId(): number {
    const id = this.#nextId;
    this.#nextId += this.#chance.hits(0.05) ? 4 : 2;
    this.#ids.push(id);
    return id;
  }

  #open(): void {
    const chance = this.#chance;
    const id = this.#takeId();
    const tag = `t${id.toString(16).padStart(3, '0')}`;
    const { lines, body, trailers } = plannedRequest(chance, tag, HIDDEN);
    const isWhole = body === '' && trailers === undefined && chance.hits(0.8);
    let block = this.#hpack.block(lines);
    if (chance.hits(0.01)) block = Buffer.concat([block, chance.one(BROKEN_BLOCKS)]);
    this.#frames.push(...this.#headers(id, block, isWhole));
    if (isWhole) return;
    const rest = this.#dataFrames(id, body, trailers === undefined);
    this.#under.push({ id, rest });
    // Trailers are coded when their turn comes: tables are in the order of blocks.
    if (trailers !== undefined) this.#trailers.set(id, () => this.#hpack.block(trailers));
  }

  readonly #trailers = new Map<number, () => Buffer>();

  #goOn(): void {
    const chance = this.#chance;
    if (this.#under.length === 0) return;
    const under = chance.one(this.#under);
    const next = under.rest.shift();
    if (next !== undefined) this.#frames.push(next);
    else {
      const block = this.#trailers.get(under.id)?.();
      const ends = chance.hits(0.97);
      if (block !== undefined) this.#frames.push(...this.#headers(under.id, block, ends));
    }
    const isLeft = chance.hits(0.05);
    if (isLeft)
      this.#frames.push(frame('RST_STREAM', under.id, uint32(chance.one([0, 5, 7, 8, 99]))));
    const isDone = next === undefined || (under.rest.length === 0 && !this.#trailers.has(under.id));
    if (isDone || isLeft) this.#under.splice(this.#under.indexOf(under), 1);
  }

  #headers(id: number, block: Buffer, endsStream: boolean): Buffer[] {
    const chance = this.#chance;
    const parts = this.#cut(block, MAX_FRAME_BYTES - 300, 0.15);
    let flags = endsStream ? FLAG.endStream : 0;
    let first = parts.shift() ?? Buffer.alloc(0);
    if (chance.hits(0.1)) {
      const on = chance.hits(0.05) ? id : chance.below(20) * 2;
      first = Buffer.concat([uint32(on), Buffer.from([chance.below(256)]), first]);
      flags |= FLAG.priority;
    }
    if (chance.hits(0.1)) {
      first = padded(first, chance.below(255));
      flags |= FLAG.padded;
    }
    const last = parts.length - 1;
    return [
      frame('HEADERS', id, first, flags | (parts.length === 0 ? FLAG.endHeaders : 0)),
      ...parts.map((part, i) => frame('CONTINUATION', id, part, i === last ? FLAG.endHeaders : 0)),
    ];
  }

  #dataFrames(id: number, body: string, isLast: boolean): Buffer[] {
    const chance = this.#chance;
    const parts = this.#cut(Buffer.from(body, 'latin1'), 6_000, 0.5);
    // A stream that does not end keeps its client waiting for a second: rare.
    const ends = isLast && chance.hits(0.97);
    const frames = parts.map((part, i) => {
      const flags = ends && i === parts.length - 1 ? FLAG.endStream : 0;
      if (!chance.hits(0.15)) return frame('DATA', id, part, flags);
      return frame('DATA', id, padded(part, chance.below(255)), flags | FLAG.padded);
    });
    // Empty frames are as good as any, at the end and before it.
    if (!chance.hits(0.1)) return frames;
    return [frame('DATA', id), ...frames];
  }

  /** At least one part. */
  #cut(bytes: Buffer, most: number, probability: number): Buffer[] {
    const parts: Buffer[] = [];
    let from = 0;
    while (bytes.length - from > most) {
      parts.push(bytes.subarray(from, from + most));
      from += most;
    }
    const rest = bytes.subarray(from);
    if (!this.#chance.hits(probability)) return [...parts, rest];
    const at = this.#chance.below(rest.length + 1);
    return [...parts, rest.subarray(0, at), rest.subarray(at)];
  }

  /** What may come at any time. */
  #control(): Buffer {
    const chance = this.#chance;
    switch (chance.below(8)) {
      case 0:
        return frame('PING', 0, chance.hits(0.5) ? 'pingpong' : 'PONGPING');
      case 1:
        return frame('SETTINGS', 0, this.#settings());
      case 2:
        return frame('SETTINGS', 0, '', FLAG.ack);
      case 3:
        return frame('WINDOW_UPDATE', 0, uint32(1 + chance.below(100_000)));
      case 4:
        return frame(
          'WINDOW_UPDATE',
          chance.one([1, ...this.#ids]),
          uint32(1 + chance.below(9_999)),
        );
      case 5:
        return frame('PRIORITY', 3, Buffer.concat([uint32(chance.below(9) * 2), Buffer.from([9])]));
      case 6:
        return rawFrame(10 + chance.below(246), chance.below(9), HIDDEN, chance.below(256));
      default:
        return frame('RST_STREAM', chance.one([1, ...this.#ids]), uint32(8));
    }
  }

  /** What ends the connection, or may. */
  #fault(): Buffer {
    const chance = this.#chance;
    const id = chance.one([0, 1, 2, 99, ...this.#ids]);
    const plain = literalBlock([[':path', `/${MARK}/hidd`]]);
    const faults: readonly (() => Buffer)[] = [
      () => frame('WINDOW_UPDATE', id, uint32(0)),
      () => frame('WINDOW_UPDATE', id, uint32(2 ** 31 - 1)),
      () => frame('WINDOW_UPDATE', id, 'abc'),
      () => frame('RST_STREAM', id, uint32(8)),
      () => frame('RST_STREAM', id, 'abc'),
      () => frame('PRIORITY', id, uint32(id)),
      () => frame('PRIORITY', id, Buffer.concat([uint32(id), Buffer.from([1])])),
      () => frame('PING', chance.below(2), 'pong'),
      () => frame('PING', 0, 'pingpong', FLAG.ack),
      () => frame('GOAWAY', 0, uint32(chance.below(9), chance.below(3))),
      () => frame('GOAWAY', id, uint32(0)),
      () => frame('SETTINGS', id, settings([4, 2 ** 31])),
      () => frame('SETTINGS', 0, settings([5, chance.one([0, 16_383, 2 ** 24])])),
      () => frame('SETTINGS', 0, settings([chance.one([2, 8]), 2])),
      () => frame('SETTINGS', 0, 'abc', chance.below(2)),
      () => frame('PUSH_PROMISE', id, Buffer.concat([uint32(2), plain]), FLAG.endHeaders),
      () => frame('CONTINUATION', id, plain, FLAG.endHeaders),
      () => frame('DATA', id, HIDDEN, chance.below(2)),
      () => frame('DATA', id, '\xffabc', FLAG.padded),
      () => frame('HEADERS', id, plain, FLAG.endHeaders | FLAG.endStream),
      () => frame('HEADERS', id, plain, chance.below(2)),
      () => frame('DATA', id, 'x'.repeat(MAX_FRAME_BYTES + 1)),
      () => Buffer.from(HIDDEN, 'latin1'),
      () => PREFACE_BYTES,
    ];
    return chance.one(faults)();
  }
}

function padded(bytes: Buffer, padding: number): Buffer {
  return Buffer.concat([Buffer.from([padding]), bytes, Buffer.alloc(padding)]);
}

// Anywhere, but the preface only now and then: without it, it is no HTTP/2 at all.
function mutated(chance: Chance, bytes: string): string {
  const from = chance.hits(0.05) ? 0 : PREFACE_BYTES.length;
  const at = from + chance.below(bytes.length - from + 1);
  const [before, behind] = [bytes.slice(0, at), bytes.slice(at)];
  switch (chance.below(6)) {
    case 0:
      return before + String.fromCharCode(chance.below(256)) + behind;
    case 1:
      return before + behind.slice(1 + chance.below(9));
    case 2:
      return before + String.fromCharCode(chance.below(256)) + behind.slice(1);
    case 3:
      return before + HIDDEN + behind;
    case 4:
      return before + bytes.slice(at, at + chance.below(60)) + behind;
    default:
      return before + flipped(behind.charAt(0), chance.below(8)) + behind.slice(1);
  }
}

/** One bit of a character turned round. */
export function flipped(char: string, bit: number): string {
  return char === '' ? '' : String.fromCharCode(char.charCodeAt(0) ^ (1 << bit));
}

/** An empty piece is a pause, in which what was sent before may be answered. */
function pieces(chance: Chance, bytes: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let n = chance.hits(0.4) ? 0 : 1 + chance.below(4); n > 0; n -= 1) {
    const to = from + 1 + chance.below(bytes.length - from);
    parts.push(bytes.slice(from, to));
    if (chance.hits(0.4)) parts.push('');
    from = Math.min(to, bytes.length);
  }
  parts.push(bytes.slice(from));
  return parts;
}
