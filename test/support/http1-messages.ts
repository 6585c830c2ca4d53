// Makes HTTP/1.1 messages that are mostly right and often a little wrong, where parsers are known to disagree. Own
// generator instead of fast-check's: hundreds of thousands of messages per run, seeded and replayable.

/** mulberry32: small, seeded, good enough to pick test inputs. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const methods = ['GET', 'GET', 'POST', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'PURGE', 'WEIRD', 'get'];
const oddMethods = ['CONNECT', 'PRI', 'G(T', '', 'GET\t', 'M-SEARCH', 'G\xe9T', 'SOURCE'];
const targets = ['/', '/a', '/a/b?c=d', '/%2e%2e/x', '//x', '/caf\xe9', '*', 'http://h.example/p'];
const oddTargets = [
  'a',
  '/a#b',
  '/a b',
  '',
  'http://u@h/',
  'HTTPS://h.example',
  '/\0',
  '/\x7f',
  '?',
];
const versions = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'];
const oddVersions = ['HTTP/1.2', 'HTTP/0.9', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ', 'HTTP/11', ''];
const statusLines = [
  '200 OK',
  '200 ',
  '200',
  '404 Not Found',
  '500 d\xe9j\xe0',
  '299 a b c',
  '201 \t',
];
const oddStatusLines = ['20 OK', '2000 OK', '2x0 OK', '099 No', '', ' 200 OK', '200  OK', '200OK'];
const plainFields = [
  'Accept: */*',
  'User-Agent: x/1 (y; z)',
  'X-Key:k',
  'x-key: \t v \t',
  'Empty:',
  'Cookie: a=b; c="d e"',
  'X-High: \x80\xff',
  'Connection: keep-alive',
  'Connection: x-key',
  'X-Forwarded-For: 192.0.2.1',
  'Expect: 100-continue',
  'Keep-Alive: timeout=5',
  'Trailer: T',
  'Upgrade: websocket',
];
const oddFields = [
  'Bad : x',
  ' folded',
  '\tfolded',
  'no-colon',
  ': empty',
  'N\xe9: v',
  'A: b\0c',
  'A: b\rc',
  'A: b\x0bc',
  'Content-Length: 3',
  'Content-Length: 3, 3',
  'Content-Length: 3\t',
  'Content-Length:\t3',
  'Transfer-Encoding:\tchunked',
  'Transfer-Encoding:chunked ',
  'Content-Length: +3',
  'Content-Length: 0x3',
  'Content-Length:',
  'Content-Length : 3',
  'content-length: 00',
  'Content_Length: 9',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, gzip',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: chunked\t',
  'Transfer-Encoding : chunked',
  'transfer-encoding: CHUNKED',
  'Host: other',
  'Connection: close',
  'Connection: upgrade',
  'Connection: content-length',
  'Connection: a b',
];
const bodies = ['a', 'abc', '0\r\n\r\n', 'GET /smuggled HTTP/1.1\r\nHost: s\r\n\r\n', '\0\xff'];
const extensions = [
  '',
  '',
  '',
  ';a',
  ';a=b',
  ';a="b;c"',
  ';a="\\""',
  '; a',
  ';',
  ';a=',
  ' ',
  ';\xe9',
];
const trailerLines = [
  'T: u\r\n',
  'X-Sum: 1\r\nY:\r\n',
  'Content-Length: 9\r\n',
  'T : u\r\n',
  ' f\r\n',
];
const ends = ['\r\n', '\n', '\r', '\r\r\n', ''];
const noise = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '\0',
  '\x7f',
  '\xe9',
  '0',
  'a',
  '/',
  'HTTP/1.1',
];

export class MessageGenerator {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  request(): string {
    const method = this.#pick(methods, oddMethods);
    const target = this.#pick(targets, oddTargets);
    const start = `${method} ${target} ${this.#pick(versions, oddVersions)}`;
    const host = this.#chance(0.97) ? `Host: ${this.#host(target)}` : undefined;
    return this.#mutate(this.#message(start, host, this.#chance(0.5)));
  }

  response(): string {
    const version = this.#pick(versions, oddVersions);
    const start = `${version} ${this.#pick(statusLines, oddStatusLines)}`;
    return this.#mutate(this.#message(start, undefined, true));
  }

  #host(target: string): string {
    if (target.startsWith('http:')) return 'h.example';
    return this.#pick(['a.example', 'a:80', '[::1]:8'], ['', 'a b', 'u@a', 'a/b', 'a:x']);
  }

  #message(start: string, host: string | undefined, withBody: boolean): string {
    const fields = host === undefined ? [] : [host];
    for (let n = this.#below(4); n > 0; n -= 1) fields.push(this.#pick(plainFields, oddFields));
    let body = '';
    if (withBody && this.#chance(0.5)) {
      body = this.#one(bodies);
      fields.push(`Content-Length: ${String(body.length)}`);
    } else if (withBody) {
      body = this.#chunks();
      fields.push('Transfer-Encoding: chunked');
    }
    const lines = [start, ...this.#shuffled(fields)].map((line) => line + this.#end());
    return `${lines.join('')}${this.#end()}${body}`;
  }

  #chunks(): string {
    let text = '';
    for (let n = this.#below(3); n > 0; n -= 1) {
      const data = this.#one(bodies);
      text += `${data.length.toString(16)}${this.#pick([''], extensions)}${this.#end()}${data}${this.#end()}`;
    }
    const trailers = this.#chance(0.2) ? this.#one(trailerLines) : '';
    return `${text}0${this.#pick([''], extensions)}${this.#end()}${trailers}${this.#end()}`;
  }

  /** The second half of the runs gets one to three edits at arbitrary places. */
  #mutate(text: string): string {
    if (this.#chance(0.6)) return text;
    let mutated = text;
    for (let n = 1 + this.#below(3); n > 0; n -= 1) {
      const at = this.#below(mutated.length + 1);
      const removed = this.#below(3);
      const added = this.#chance(0.7) ? this.#one(noise) : '';
      mutated = mutated.slice(0, at) + added + mutated.slice(at + removed);
    }
    return mutated;
  }

  #end(): string {
    return this.#chance(0.99) ? '\r\n' : this.#one(ends);
  }

  #shuffled(items: readonly string[]): string[] {
    const pool = [...items];
    const order: string[] = [];
    while (pool.length > 0) order.push(...pool.splice(this.#below(pool.length), 1));
    return order;
  }

  /** Mostly one of the usual, now and then one of the odd. */
  #pick(usual: readonly string[], odd: readonly string[]): string {
    return this.#one(this.#chance(0.93) ? usual : odd);
  }

  #one(items: readonly string[]): string {
    return items[this.#below(items.length)] ?? '';
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}
