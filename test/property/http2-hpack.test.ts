// Both ends of HPACK keep the same table, whatever is sent: ours with ours, and ours with nghttp2's (of node:http2).
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  performServerHandshake,
  sensitiveHeaders,
} from 'node:http2';
import { type Duplex, duplexPair } from 'node:stream';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Field, type Indexing } from '../../sidecar/http2/field.ts';
import { type FieldBlock, HpackDecoder } from '../../sidecar/http2/hpack-decoder.ts';
import { HpackEncoder } from '../../sidecar/http2/hpack-encoder.ts';
import type { Stream } from '../../sidecar/http2/stream.ts';
import { Side } from '../support/http2-side.ts';

const LIMITS = { maxBytes: 2 ** 20, maxLines: 1_000 };

const indexing = fc.constantFrom<Indexing>('indexed', 'indexed', 'plain', 'never');
/** Few names and values, so that they come again. */
const common = fc.tuple(
  fc.constantFrom('x-a', 'x-b', ':path', 'accept', 'etag', 'user-agent'),
  fc.constantFrom('', '1', '/', 'a longer value than the others', 'x'.repeat(1_500)),
);
const anything = fc.tuple(
  fc.string({ unit: 'binary-ascii', maxLength: 40 }),
  fc.stringMatching(/^[\0-\xff]{0,300}$/),
);
const field = fc
  .tuple(fc.oneof({ weight: 4, arbitrary: common }, anything), indexing)
  .map(([[name, value], kind]) => new Field(name, value, kind));
const size = fc.oneof(
  fc.nat(200),
  fc.nat(8_192),
  fc.constantFrom(0, 32, 4_095, 4_096, 2 ** 32 - 1),
);

/** What happens on a connection: a block, or a table size that the peer asks for. */
const step = fc.oneof(
  { weight: 5, arbitrary: fc.array(field, { maxLength: 12 }) },
  { weight: 1, arbitrary: size },
);

function pairs(fields: readonly Field[]): (readonly [string, string])[] {
  return fields.map(({ name, value }) => [name, value]);
}

describe('our HPACK with ours', () => {
  it('stays in step over any blocks and table sizes', () => {
    const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder(LIMITS);
      for (const one of steps) {
        if (typeof one === 'number') {
          encoder.limitTable(one);
          continue;
        }
        const { fields, isTooLarge } = decoder.decode(encoder.encode(one));
        assert(!isTooLarge);
        assert.deepEqual(pairs(fields), pairs(one));
        for (const [at, { indexing: kind }] of one.entries()) {
          assert.equal(fields[at]?.indexing === 'never', kind === 'never');
        }
      }
    });

    fc.assert(property, { numRuns: 1_000 });
  });

  it('stays in step when lists are too large to be kept', () => {
    const property = fc.property(
      fc.array(fc.array(field, { maxLength: 12 }), { maxLength: 30 }),
      (blocks) => {
        const encoder = new HpackEncoder();
        const strict = new HpackDecoder({ maxBytes: 300, maxLines: 4 });
        for (const one of blocks) {
          const { fields, isTooLarge } = strict.decode(encoder.encode(one));
          const bytes = one.reduce((sum, { size: each }) => sum + each, 0);
          assert.equal(isTooLarge, bytes > 300 || one.length > 4);
          assert.deepEqual(pairs(fields), pairs(one.slice(0, fields.length)));
        }
      },
    );

    fc.assert(property, { numRuns: 1_000 });
  });
});

const name = fc.stringMatching(/^x-[a-z0-9!#$&'*+.^_`|~-]{1,12}$/);
const value = fc.oneof(
  fc.constantFrom('', '1', 'no-cache', 'y'.repeat(900)),
  fc.stringMatching(/^[!-~\x80-\xff]([ \t]?[!-~\x80-\xff]){0,30}$/),
);
const someNames = fc.oneof({ weight: 3, arbitrary: fc.constantFrom('x-a', 'x-b', 'x-c') }, name);
const message = fc.uniqueArray(fc.tuple(someNames, value, indexing), {
  selector: ([lower]) => lower,
  maxLength: 8,
});
type Message = readonly (readonly [name: string, value: string, indexing: Indexing])[];
const messages = fc.array(fc.tuple(message, message), { minLength: 1, maxLength: 20 });

const SIDE = { maxHeaderListBytes: 65_536, maxHeaderLines: 100 };

/** Passes bytes between one of our ends and a stream that node:http2 has the other end of. */
function wire(side: Side, stream: Duplex): void {
  const flush = (): void => {
    const bytes = side.sent();
    if (bytes.length > 0) stream.write(bytes);
  };
  stream.on('data', (bytes: Buffer) => {
    side.receive(bytes);
    flush();
  });
  flush();
}

function headersOf(fields: Message): Record<string, string> {
  return Object.fromEntries(fields.map(([lower, text]) => [lower, text]));
}

function linesOf(fields: Message): [string, string][] {
  return fields.map(([lower, text]) => [lower, text]);
}

/** Those that a test has chosen: nghttp2's own and pseudo-fields are left out. */
function chosen(headers: object): [string, string][] {
  return (Object.entries(headers) as [string, string][]).filter(([lower]) =>
    lower.startsWith('x-'),
  );
}

function ourFields(first: Field, fields: Message): Field[] {
  return [first, ...fields.map(([lower, text, kind]) => new Field(lower, text, kind))];
}

const GET = [
  new Field(':method', 'GET', 'indexed'),
  new Field(':scheme', 'http', 'indexed'),
  new Field(':path', '/', 'indexed'),
];

class Server extends Side {
  readonly seen: Field[][] = [];
  answer: Message = [];

  override onRequest(stream: Stream, { fields }: FieldBlock): void {
    this.seen.push(fields);
    const status = new Field(':status', '200', 'indexed');
    this.endpoint.sender.fields(stream, ourFields(status, this.answer), true);
  }
}

class Client extends Side {
  readonly seen: Field[][] = [];
  onAnswer: () => void = () => undefined;

  override onFields(_: Stream, { fields }: FieldBlock): void {
    this.seen.push(fields);
    this.onAnswer();
  }
}

async function ask(session: ClientHttp2Session, fields: Message): Promise<object> {
  const secrets = fields.filter(([, , kind]) => kind === 'never').map(([lower]) => lower);
  const stream = session.request(
    { ':path': '/', ...headersOf(fields), [sensitiveHeaders]: secrets },
    { endStream: true },
  );
  const closed = once(stream.resume(), 'close');
  const [headers] = (await once(stream, 'response')) as [object];
  await closed;
  return headers;
}

describe("our HPACK with nghttp2's", () => {
  it('is understood by its client, and understands it', async () => {
    const property = fc.asyncProperty(messages, async (all) => {
      const [ours, theirs] = duplexPair();
      const server = new Server('server', SIDE);
      wire(server, ours);
      const session = connect('http://a.example', { createConnection: () => theirs });
      for (const [request, answer] of all) {
        server.answer = answer;
        const headers = await ask(session, request);
        assert.deepEqual(chosen(headers), linesOf(answer));
        const fields = server.seen.at(-1) ?? [];
        const own = fields.filter(({ name: lower }) => lower.startsWith('x-'));
        assert.deepEqual(pairs(own), linesOf(request));
        for (const [at, [, , kind]] of request.entries()) {
          assert.equal(own[at]?.indexing === 'never', kind === 'never');
        }
      }
      session.destroy();
    });

    await fc.assert(property, { numRuns: 100 });
  });

  it('is understood by its server, and understands it', async () => {
    const property = fc.asyncProperty(messages, async (all) => {
      const [ours, theirs] = duplexPair();
      const session = performServerHandshake(theirs, { settings: { headerTableSize: 512 } });
      const asked: object[] = [];
      let answer: Message = [];
      session.on('stream', (stream, headers) => {
        asked.push(headers);
        stream.respond({ ':status': 200, ...headersOf(answer) }, { endStream: true });
      });
      const client = new Client('client', SIDE);
      wire(client, ours);
      for (const [at, [request, next]] of all.entries()) {
        answer = next;
        const { promise, resolve } = Promise.withResolvers<undefined>();
        client.onAnswer = () => {
          resolve(undefined);
        };
        const fields = [
          ...GET,
          ...ourFields(new Field(':authority', 'a.example', 'plain'), request),
        ];
        client.endpoint.request(fields, true, client);
        ours.write(client.sent());
        await promise;
        assert.deepEqual(chosen(asked[at] ?? {}), linesOf(request));
        const own = client.seen.at(-1)?.filter(({ name: lower }) => lower.startsWith('x-')) ?? [];
        assert.deepEqual(pairs(own), linesOf(next));
      }
      session.destroy();
    });

    await fc.assert(property, { numRuns: 100 });
  });
});
