// HTTP/1.1 for the fuzzer: pipelines of requests, framing that lies, requests hidden in bodies, and mutations of all of
// it at places that mean something.
import { MessageGenerator } from '../support/http1-messages.ts';
import { MARK } from './dialect.ts';
import type { Answer, Dialect } from './dialect.ts';
import { Http1Application } from './http1-application.ts';
import { readHttp1Strictly } from './http1-reading.ts';

export const http1Dialect: Dialect = {
  name: 'http1',
  echo: {
    bytes: `HTTP/1.1 200 OK\r\nX-Echo: ${MARK}\r\nContent-Length: 2\r\n\r\nok`,
    then: 'keep',
    isSound: true,
  },
  unmarked: {
    bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    then: 'keep',
    isSound: true,
  },
  connection: (random) => new Http1Maker(random).connection(),
  answer: (random) => new Http1Maker(random).answer(),
  read: readHttp1Strictly,
  openApplication: () => Http1Application.open(),
};

const LAST = `GET /${MARK}/last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
/** A request that nobody sent as one. */
const HIDDEN = `GET /${MARK}/hidden HTTP/1.1\r\nHost: a\r\n\r\n`;

const framings = [
  'Content-Length: 0',
  'Content-Length: 5',
  `Content-Length: ${String(HIDDEN.length)}`,
  'Content-Length: 5\r\nContent-Length: 5',
  'Content-Length: 5\r\nContent-Length: 0',
  'Content-Length: 5, 5',
  'Content-Length: 05',
  'Content-Length : 5',
  'Content-Length: 5 ',
  'Content-Length:\t5',
  'Content-Length: +5',
  'Content-Length: 18446744073709551621',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Content-Length: 5\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: identity, chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: "chunked"',
  'X: y\r\n Transfer-Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
  'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked',
  'Expect: 100-continue\r\nContent-Length: 5',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5',
] as const;

const bodies = [
  '',
  'hello',
  HIDDEN,
  '5\r\nhello\r\n0\r\n\r\n',
  `0\r\n\r\n${HIDDEN}`,
  '5;a=b\r\nhello\r\n0;z\r\nX-T: 1\r\n\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5\nhello\n0\n\n',
  '5\r\nhello0\r\n\r\n',
  '0005\r\nhello\r\n000\r\n\r\n',
  'fffffffffffffff5\r\nhello\r\n0\r\n\r\n',
  '-5\r\nhello\r\n0\r\n\r\n',
  '0\r\nContent-Length: 5\r\n\r\nhello',
  '1;"\r\nx\r\n0\r\n\r\n',
  `5\r\nhello\r\n0\r\nX: ${'t'.repeat(9_000)}\r\n\r\n`,
] as const;

const extensions = ['', '', ';a', ';a=b', ';a="\\""', ' ', ';'] as const;

const noises = [
  ...['\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t', '\x0b', ':', ';', ',', '"', '\\', '\0', '\x7f'],
  ...['\x80', '\xff', '0', '5', 'chunked', 'HTTP/1.1', '\r\nHost: b', '\r\nX: y', ' HTTP/1.0\r\n'],
  ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '%', '%2e', '..', '#', 'x'.repeat(70_000)],
] as const;

const soundAnswers = [
  `HTTP/1.1 200 OK\r\nX-Echo: ${MARK}\r\nContent-Length: 2\r\n\r\nok`,
  `HTTP/1.1 200 OK\r\nX-Echo: ${MARK}\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nT: 1\r\n\r\n`,
  `HTTP/1.1 103 Early Hints\r\nX-Echo: ${MARK}\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
  `HTTP/1.1 204 No Content\r\nX-Echo: ${MARK}\r\n\r\n`,
  `HTTP/1.1 404 Not Found\r\nX-Echo: ${MARK}\r\nContent-Length: 0\r\n\r\n`,
] as const;

class Http1Maker {
  readonly #random: () => number;
  readonly #messages: MessageGenerator;

  constructor(random: () => number) {
    this.#random = random;
    this.#messages = new MessageGenerator(Math.floor(random() * 2 ** 31));
  }

  connection(): string[] {
    let bytes = '';
    for (let n = this.#below(4); n >= 0; n -= 1) bytes += this.#request();
    for (let n = this.#chance(0.5) ? 0 : 1 + this.#below(3); n > 0; n -= 1) {
      bytes = this.#mutated(bytes);
    }
    return this.#pieces(bytes + LAST);
  }

  #request(): string {
    if (this.#chance(0.3)) return marked(this.#messages.request());
    const method = this.#one(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS']);
    const { framing, body } = this.#framedBody();
    const lines = [
      `${method} /${this.#chance(0.05) ? 'deny' : MARK}/${String(this.#below(9))} HTTP/1.1`,
      ...this.#shuffledFields(framing),
    ];
    return `${lines.join('\r\n')}\r\n\r\n${body}`;
  }

  /** Mostly in agreement. */
  #framedBody(): { readonly framing: string; readonly body: string } {
    const content = this.#one(['', 'hello', HIDDEN, HIDDEN + HIDDEN]);
    if (this.#chance(0.35)) return { framing: this.#one(framings), body: this.#one(bodies) };
    if (this.#chance(0.5)) {
      return { framing: `Content-Length: ${String(content.length)}`, body: content };
    }
    const size = content.length.toString(16);
    const chunk = content === '' ? '' : `${size}${this.#one(extensions)}\r\n${content}\r\n`;
    const trailer = this.#chance(0.3) ? 'X-T: 1\r\n' : '';
    return { framing: 'Transfer-Encoding: chunked', body: `${chunk}0\r\n${trailer}\r\n` };
  }

  #shuffledFields(framing: string): string[] {
    const fields: string[] = ['Host: a', framing];
    if (this.#chance(0.3)) fields.push('Connection: keep-alive, X-Hop', 'X-Hop: 1');
    if (this.#chance(0.1)) fields.push(`X-Long: ${'v'.repeat(this.#below(9_000))}`);
    return this.#chance(0.5) ? fields : fields.reverse();
  }

  // Mutations cut at ends of lines more often than elsewhere: that is where parsers look.
  #mutated(bytes: string): string {
    const at = this.#place(bytes);
    switch (this.#below(7)) {
      case 0:
        return bytes.slice(0, at) + this.#one(noises) + bytes.slice(at);
      case 1:
        return bytes.slice(0, at) + bytes.slice(at + 1 + this.#below(4));
      case 2:
        return bytes.slice(0, at) + this.#one(noises) + bytes.slice(at + 1);
      case 3: {
        const to = this.#place(bytes);
        return (
          bytes.slice(0, at) + bytes.slice(Math.min(at, to), Math.max(at, to)) + bytes.slice(at)
        );
      }
      case 4:
        return bytes.slice(0, at) + this.#one(bodies) + bytes.slice(at);
      case 5:
        return bytes.slice(0, at) + this.#one(framings) + '\r\n' + bytes.slice(at);
      default:
        return bytes.slice(0, at) + flipped(bytes.charAt(at), this.#below(8)) + bytes.slice(at + 1);
    }
  }

  #place(bytes: string): number {
    const at = this.#below(bytes.length + 1);
    if (this.#chance(0.5)) return at;
    const lineEnd = bytes.indexOf('\r\n', at);
    return lineEnd < 0 ? at : lineEnd + this.#below(3);
  }

  #pieces(bytes: string): string[] {
    if (this.#chance(0.5)) return [bytes];
    const cuts = Array.from({ length: 1 + this.#below(4) }, () => this.#place(bytes)).sort(
      (a, b) => a - b,
    );
    const pieces: string[] = [];
    let from = 0;
    for (const cut of [...cuts, bytes.length]) {
      if (cut > from) pieces.push(bytes.slice(from, cut));
      from = Math.max(from, cut);
    }
    return pieces;
  }

  // A switch of protocols would make a tunnel of the connection, in which nothing is judged.
  answer(): Answer {
    const answer = this.#anyAnswer();
    return { ...answer, bytes: answer.bytes.replaceAll(' 101', ' 102') };
  }

  #anyAnswer(): Answer {
    const sound = this.#one(soundAnswers);
    switch (this.#below(12)) {
      case 0:
        return { bytes: echoing(this.#messages.response()), then: this.#ending(), isSound: false };
      case 1:
        return { bytes: this.#mutated(sound), then: this.#ending(), isSound: false };
      case 2:
        // An answer that nobody asked for.
        return { bytes: sound + this.#one(soundAnswers), then: 'keep', isSound: false };
      case 3:
        return { bytes: sound.slice(0, this.#place(sound)), then: this.#ending(), isSound: false };
      case 4:
        return { bytes: sound, then: this.#one(['close', 'reset'] as const), isSound: false };
      default:
        return { bytes: sound, then: 'keep', isSound: true };
    }
  }

  // Silence costs a timeout: rare.
  #ending(): Answer['then'] {
    return this.#chance(0.05) ? 'keep' : this.#one(['close', 'close', 'reset'] as const);
  }

  #one<T>(items: readonly T[]): T {
    const item = items[this.#below(items.length)];
    if (item === undefined) throw new RangeError('nothing to choose from');
    return item;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}

function flipped(char: string, bit: number): string {
  return char === '' ? '' : String.fromCharCode(char.charCodeAt(0) ^ (1 << bit));
}

/** With the mark in its path, where it has one. */
function marked(request: string): string {
  return request.replace(/^(\S+) \/(\S*) /, `$1 /${MARK}/$2 `);
}

function echoing(response: string): string {
  return response.replace('\r\n', `\r\nX-Echo: ${MARK}\r\n`);
}
