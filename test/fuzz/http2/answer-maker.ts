// What the application of HTTP/2 says to a request of the fuzzer: mostly an answer, and sometimes what no client may see.
import { FLAG, frame, rawFrame, settings, uint32 } from '../../support/http2-frames.ts';
import { MARK } from '../dialect.ts';
import type { Answer } from '../dialect.ts';
import { Chance } from './chance.ts';
import { flipped } from './connection-maker.ts';
import { literalBlock } from './hpack-writer.ts';
import type { Line } from './hpack-tables.ts';
import { STREAM_ID, TAG } from './placeholders.ts';

/** The id that is replaced by that of the request's stream. */
const ID = Buffer.from(STREAM_ID, 'latin1').readUInt32BE(0);
const ECHO = `${MARK}/${TAG}`;
const END = FLAG.endStream;

function head(status: string, lines: readonly Line[] = [], flags = 0): Buffer {
  const block = literalBlock([[':status', status], ['x-echo', ECHO], ...lines]);
  return frame('HEADERS', ID, block, flags | FLAG.endHeaders);
}

function fields(lines: readonly Line[], flags: number): Buffer {
  return frame('HEADERS', ID, literalBlock(lines), flags | FLAG.endHeaders);
}

function data(text: string, flags = 0): Buffer {
  return frame('DATA', ID, text, flags);
}

/** A head that says how long the body is, in a field that nobody goes by. */
function announced(length: number): Buffer {
  return head('200', [['x-length', String(length)]]);
}

const BODY = `${ECHO};`.repeat(400);
const EARLY_HINTS = fields(
  [
    [':status', '103'],
    ['x-echo', ECHO],
  ],
  0,
);
const TRAILERS = fields(
  [
    ['x-echo', ECHO],
    ['grpc-status', '0'],
  ],
  END,
);

const SOUND: readonly (readonly Buffer[])[] = [
  [head('200', [['content-length', '2']]), data('ok', END)],
  [head('200', [['content-length', '2']]), data('o'), data('k'), data('', END)],
  [announced(BODY.length), data(BODY.slice(0, 100)), data(BODY.slice(100), END)],
  [announced(5), frame('DATA', ID, `\x03hello\0\0\0`, FLAG.padded | END)],
  [announced(5), data('hello'), TRAILERS],
  [EARLY_HINTS, EARLY_HINTS, announced(2), data('ok', END)],
  [head('204', [], END)],
  [head('304', [['content-length', '5']], END)],
  [head('404', [['content-length', '0']], END)],
  [head('200', [['grpc-status', '8']], END)],
  [announced(20_000), data('x'.repeat(10_000)), data('y'.repeat(10_000), END)],
  [frame('SETTINGS', 0, settings([3, 50])), announced(2), data('ok', END)],
  [frame('PING', 0, 'pingpong'), rawFrame(99, 0, 'x'), announced(2), data('ok', END)],
  [announced(2), frame('WINDOW_UPDATE', ID, uint32(9)), data('ok', END)],
];

const WRONG: readonly (readonly Buffer[])[] = [
  [head('200', [['content-length', '9']]), data('ok', END)],
  [head('200', [['content-length', '1']]), data('ok', END)],
  [head('200', [['content-length', '9']], END)],
  [head('200', [['content-length', '9']]), TRAILERS],
  [
    head('200', [
      ['content-length', '2'],
      ['content-length', '3'],
    ]),
    data('ok', END),
  ],
  [head('200', [['content-length', 'x']]), data('ok', END)],
  [data('ok', END)],
  [fields([['x-echo', ECHO]], 0), data('ok', END)],
  [
    fields(
      [
        [':status', '200'],
        [':status', '200'],
      ],
      END,
    ),
  ],
  [
    fields(
      [
        ['x-echo', ECHO],
        [':status', '200'],
      ],
      END,
    ),
  ],
  [head('20', [], END)],
  [head('099', [], END)],
  [head('101', [], 0), data('ok', END)],
  [head('103', [], END)],
  [head('200', [[':path', '/']], END)],
  [head('200', [['X-Upper', '1']], END)],
  [head('200', [['connection', 'close']], END)],
  [head('200', [['transfer-encoding', 'chunked']]), data('2\r\nok\r\n0\r\n\r\n', END)],
  [head('200', [['x-crlf', 'a\r\nb: c']], END)],
  [announced(2), data('ok'), fields([[':status', '200']], END)],
  [announced(2), data('ok'), fields([['x-t', '1']], 0)],
  [announced(2), data('ok', END), data('more', END)],
  [announced(2), data('ok', END), head('200', [], END)],
  [announced(9), data('ok'), frame('RST_STREAM', ID, uint32(0))],
  [announced(9), data('ok'), frame('RST_STREAM', ID, uint32(2))],
  [announced(2), data('ok', END), frame('RST_STREAM', ID, uint32(0))],
  [frame('RST_STREAM', ID, uint32(0))],
  [frame('RST_STREAM', ID, uint32(7))],
  [frame('RST_STREAM', ID, uint32(8))],
  [frame('RST_STREAM', ID, uint32(13))],
  [frame('GOAWAY', 0, uint32(0, 0))],
  [frame('GOAWAY', 0, uint32(0, 2))],
  [frame('GOAWAY', 0, uint32(ID, 0)), announced(2), data('ok', END)],
  [announced(9), data('ok'), frame('GOAWAY', 0, uint32(0, 0))],
  [frame('PUSH_PROMISE', ID, Buffer.concat([uint32(2), literalBlock([])]), FLAG.endHeaders)],
  [frame('WINDOW_UPDATE', ID, uint32(0))],
  [frame('WINDOW_UPDATE', ID, uint32(2 ** 31 - 1))],
  [frame('WINDOW_UPDATE', 0, uint32(0))],
  [frame('SETTINGS', 0, settings([4, 2 ** 31]))],
  [frame('SETTINGS', 0, settings([2, 1]))],
  [frame('HEADERS', 2, literalBlock([[':status', '200']]), FLAG.endHeaders | END)],
  [frame('DATA', 99_999, 'ok', END)],
  [frame('HEADERS', ID, Buffer.from([0x80]), FLAG.endHeaders | END)],
  [frame('HEADERS', ID, literalBlock([[':status', '200']]), END), data('ok', END)],
  [announced(70_000), ...Array.from({ length: 7 }, () => data('z'.repeat(10_000))), data('', END)],
  [frame('DATA', ID, 'x'.repeat(16_385))],
  [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'latin1')],
];

/** An answer of the round, Latin-1. */
export function madeAnswer(random: () => number): Answer {
  const chance = new Chance(random);
  const sound = bytesOf(chance.one(SOUND));
  switch (chance.below(14)) {
    case 0:
    case 1:
      return { bytes: bytesOf(chance.one(WRONG)), then: ending(chance), isSound: false };
    case 2: {
      const at = chance.below(sound.length);
      const bytes = sound.slice(0, at) + flipped(sound.charAt(at), chance.below(8));
      // How long the body was meant to be is not known any more.
      const rest = `${bytes}${sound.slice(at + 1)}`.replaceAll('x-length', 'x-longth');
      return { bytes: rest, then: end(chance), isSound: false };
    }
    case 3:
      return {
        bytes: sound.slice(0, chance.below(sound.length)),
        then: end(chance),
        isSound: false,
      };
    case 4:
      return { bytes: sound, then: end(chance), isSound: false };
    default:
      return { bytes: sound, then: 'keep', isSound: true };
  }
}

/** The plainest answer, with the echo or without. */
export function plainAnswer(isEcho: boolean): Answer {
  const echo: readonly Buffer[] = SOUND[0] ?? [];
  const bytes = bytesOf(isEcho ? echo : [fields([[':status', '200']], END)]);
  return { bytes, then: 'keep', isSound: true };
}

function bytesOf(frames: readonly Buffer[]): string {
  return Buffer.concat(frames).toString('latin1');
}

// What was said may end the matter by itself.
function ending(chance: Chance): Answer['then'] {
  return chance.hits(0.5) ? 'keep' : end(chance);
}

// A frame that is cut, or longer than it says, would swallow the answer to the next request: nothing may follow it.
function end(chance: Chance): Answer['then'] {
  return chance.one(['close', 'close', 'reset'] as const);
}
