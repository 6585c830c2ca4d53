// Requests of HTTP/2 for the fuzzer: fields that are mostly right, and what each of them may be wrong in.
import { MARK } from '../dialect.ts';
import type { Chance } from './chance.ts';
import type { Line } from './hpack-tables.ts';

/** A request before it is cut into frames. */
export interface PlannedRequest {
  readonly lines: readonly Line[];
  readonly body: string;
  readonly trailers: readonly Line[] | undefined;
}

type Change = (lines: readonly Line[]) => readonly Line[];

/** What strict readers refuse, or other readers than HTTP/2's would read in another way. */
const ODDITIES: readonly Change[] = [
  without(':method'),
  without(':path'),
  without(':scheme'),
  without(':authority'),
  again(':method'),
  again(':path'),
  again(':authority'),
  (lines) => lines.toReversed(),
  (lines) => [...lines.slice(1), ...lines.slice(0, 1)],
  ...(
    [
      [':method', 'G T'],
      [':method', 'GET / HTTP/1.1\r\nx: y\r\n\r\n'],
      [':method', 'CONNECT'],
      [':method', 'get'],
      [':method', ''],
      [':path', ''],
      [':path', 'a'],
      [':path', '*'],
      [':path', '//b/c'],
      [':path', `/${MARK}/0000 HTTP/1.1\r\nHost: b\r\n\r\nGET /${MARK}/hidd`],
      [':path', `/${MARK}/0000#a`],
      [':path', `http://b/${MARK}/0000`],
      [':path', `/${MARK}/0000/\x80\xff%2e%2e/..`],
      [':scheme', 'https'],
      [':scheme', 'x y'],
      [':authority', 'u@a'],
      [':authority', 'a b'],
      [':authority', ''],
    ] as const
  ).map(replaced),
  ...(
    [
      ['connection', 'x-a'],
      ['connection', 'close'],
      ['keep-alive', 'timeout=5'],
      ['proxy-connection', 'keep-alive'],
      ['transfer-encoding', 'chunked'],
      ['upgrade', 'h2c'],
      ['http2-settings', 'AAMAAABkAAQAAP__'],
      ['te', 'gzip'],
      ['te', 'trailers, deflate'],
      ['host', 'b'],
      ['host', 'A'],
      ['X-Upper', '1'],
      ['x y', '1'],
      ['x:y', '1'],
      ['', '1'],
      ['x-\x80', '1'],
      ['x-lf', 'a\nb: c'],
      ['x-crlf', `a\r\n\r\nGET /${MARK}/hidd HTTP/1.1\r\n\r\n`],
      ['x-nul', 'a\0b'],
      ['x-space', ' a'],
      ['x-tab', 'a\t'],
      ['x-del', '\x7f'],
      ['x-high', '\x80\xff'],
      ['x-empty', ''],
      [':status', '200'],
      [':weird', '1'],
      [':protocol', 'websocket'],
      ['content-length', '5, 5'],
      ['content-length', '+5'],
      ['content-length', ''],
      ['content-length', '18446744073709551621'],
      ['content-length', '0'],
      ['content-length', '5'],
      ['expect', '100-continue'],
      ['x-large', 'l'.repeat(70_000)],
    ] as const
  ).map(added),
];

/** A client may send all of them. */
const FIELDS: readonly Line[] = [
  ['te', 'trailers'],
  ['accept', '*/*'],
  ['user-agent', 'x/1 (y; z)'],
  ['cookie', 'a=b'],
  ['cookie', 'c="d e"'],
  ['x-forwarded-for', '192.0.2.1'],
  ['forwarded', 'for=192.0.2.1'],
  ['host', 'a'],
  ['content-type', 'application/grpc'],
  ['x-mark', MARK],
  ['x-high', 'caf\xe9'],
  ['x-long', 'v'.repeat(900)],
];

const TRAILERS: readonly (readonly Line[])[] = [
  [['x-t', '1']],
  [['x-sum', MARK]],
  [],
  [[':path', '/hidden']],
  [['content-length', '5']],
  [['X-T', '1']],
  [['connection', 'close']],
];

function without(name: string): Change {
  return (lines) => lines.filter(([one]) => one !== name);
}

function again(name: string): Change {
  return (lines) => lines.flatMap((line) => (line[0] === name ? [line, line] : [line]));
}

function replaced(line: Line): Change {
  return (lines) => lines.map((one) => (one[0] === line[0] ? line : one));
}

function added(line: Line): Change {
  return (lines) => [...lines, line];
}

/** `tag` is what the request calls itself, `hidden` a body that would be a request for a reader that is out of step. */
export function plannedRequest(chance: Chance, tag: string, hidden: string): PlannedRequest {
  const isTunnel = chance.hits(0.04);
  const body = chance.hits(0.5) ? bodyOf(chance, tag, hidden) : '';
  let lines: readonly Line[] = [
    ...pseudoFields(chance, tag, isTunnel),
    ...Array.from({ length: chance.below(4) }, () => chance.one(FIELDS)),
  ];
  if (!isTunnel && chance.hits(body === '' ? 0.1 : 0.6)) {
    const length = body.length + (chance.hits(0.1) ? chance.one([-1, 1, 5]) : 0);
    lines = [...lines, ['content-length', String(length)]];
  }
  if (chance.hits(0.12)) lines = chance.one(ODDITIES)(lines);
  const trailers = chance.one(chance.hits(0.8) ? TRAILERS.slice(0, 2) : TRAILERS);
  return { lines, body, trailers: chance.hits(0.2) ? trailers : undefined };
}

function pseudoFields(chance: Chance, tag: string, isTunnel: boolean): Line[] {
  const method = chance.one(['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH']);
  const end = chance.hits(0.08) ? '/early' : '';
  const path = chance.hits(0.04) ? `/deny/${tag}` : `/${MARK}/${tag}${end}`;
  const lines: Line[] = [
    [':method', isTunnel ? 'CONNECT' : method],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'a'],
  ];
  if (isTunnel) lines.push([':protocol', 'websocket']);
  if (chance.hits(0.2)) lines.reverse();
  return lines;
}

function bodyOf(chance: Chance, tag: string, hidden: string): string {
  switch (chance.below(5)) {
    case 0:
      return hidden;
    case 1:
      return `${MARK}/${tag};`.repeat(1 + chance.below(200));
    case 2:
      return `GET /${MARK}/hidd HTTP/1.1\r\nHost: a\r\n\r\n`;
    default:
      return 'hello';
  }
}
