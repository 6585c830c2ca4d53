// Whatever a peer sends, it is answered by the rules: nothing is thrown, nothing grows beyond what came, and it makes no
// difference how the bytes were cut.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Http2Request } from '../../sidecar/http2/request.ts';
import type { FieldBlock } from '../../sidecar/http2/hpack-decoder.ts';
import { areTrailers, readResponse } from '../../sidecar/http2/response.ts';
import type { Stream } from '../../sidecar/http2/stream.ts';
import { PREFACE_BYTES, rawFrame, settings, uint32 } from '../support/http2-frames.ts';
import { fieldsOf, Side } from '../support/http2-side.ts';

const MAX_STREAMS = 3;

/** An end that does with everything what a proxy would. */
class Peer extends Side {
  override onRequest(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    super.onRequest(stream, block, endsStream);
    const request = new Http2Request(block, {
      peerAddress: '',
      maxTargetBytes: 100,
      knownHost: '',
      isWhole: endsStream,
    });
    if (request.refusal === 'malformed') this.endpoint.reset(stream, 1);
    else {
      stream.bytesDue = endsStream ? -1 : request.contentLength;
      this.endpoint.sender.fields(stream, fieldsOf(':status: 200'), false);
      this.endpoint.sender.data(stream, Buffer.from('a body'), true);
    }
  }

  override onFields(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    super.onFields(stream, block, endsStream);
    if (stream.hasFields) areTrailers(block);
    else if (readResponse(block) === undefined) this.endpoint.reset(stream, 1);
    else stream.hasFields = true;
  }

  override onData(stream: Stream, bytes: Buffer, endsStream: boolean): void {
    super.onData(stream, bytes, endsStream);
    this.endpoint.credit(stream, bytes.length);
  }
}

const streamId = fc.oneof(
  fc.constantFrom(0, 1, 1, 3, 3, 5, 2, 7, 2 ** 31 - 1, 2 ** 31 + 1),
  fc.nat(30),
  fc.nat(2 ** 32 - 1),
);
const flags = fc.oneof(fc.constantFrom(0, 1, 4, 5, 5, 5, 8, 13, 32), fc.nat(255));
const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));
const number = fc.oneof(fc.nat(100), fc.nat(2 ** 32 - 1), fc.constantFrom(0, 2 ** 31 - 1, 2 ** 31));
const setting = fc.tuple(fc.nat(9), number);
const block = fc.constantFrom(
  '828684010161', // GET / of a
  '838684010161', // POST / of a
  '828684010161' + '4001610162', // with a: b for the table
  'be',
  '88',
  '8e',
  '0001740131', // t: 1
  '3fe11f',
  '20',
);
const payload = fc.oneof(
  { weight: 4, arbitrary: block.map((hex) => Buffer.from(hex, 'hex')) },
  { weight: 2, arbitrary: anyBytes },
  { weight: 1, arbitrary: fc.nat(16_400).map((length) => Buffer.alloc(length)) },
  { weight: 2, arbitrary: number.map((value) => uint32(value)) },
  { weight: 1, arbitrary: fc.tuple(number, number).map((values) => uint32(...values)) },
  {
    weight: 2,
    arbitrary: fc.array(setting, { maxLength: 4 }).map((entries) => settings(...entries)),
  },
);
const type = fc.oneof(fc.constantFrom(0, 1, 1, 1, 4, 8, 9), fc.nat(10), fc.nat(255));
const someFrame = fc
  .tuple(type, streamId, payload, flags)
  .map(([kind, id, bytes, set]) => rawFrame(kind, id, bytes, set));
/** Requests that are right, so that something is open. */
const goodRequest = fc
  .tuple(fc.nat(20), fc.constantFrom(4, 5))
  .map(([at, set]) => rawFrame(1, 2 * at + 1, Buffer.from('828684010161', 'hex'), set));
const frames = fc
  .array(fc.oneof({ weight: 4, arbitrary: someFrame }, { weight: 3, arbitrary: goodRequest }), {
    maxLength: 60,
  })
  .map((all) => Buffer.concat(all));
/** Bytes that are changed: where, as a share of the whole, and to what. */
const changes = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(255)), {
  maxLength: 3,
});
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

function changed(bytes: Buffer, all: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(bytes);
  for (const [share, byte] of all) copy[Math.floor(share * copy.length)] = byte;
  return copy.subarray(0, bytes.length);
}

function partsOf(bytes: Buffer, shares: readonly number[]): Buffer[] {
  const places = [0, ...shares.map((share) => Math.floor(share * bytes.length)), bytes.length];
  places.sort((a, b) => a - b);
  return places.slice(1).map((to, at) => Buffer.from(bytes.subarray(places[at], to)));
}

interface Outcome {
  readonly told: string[];
  readonly sent: Buffer;
  readonly isBroken: boolean;
}

function outcome(role: 'client' | 'server', parts: readonly Buffer[]): Outcome {
  const peer = new Peer(role, { maxConcurrentStreams: MAX_STREAMS });
  if (role === 'server') peer.receive(PREFACE_BYTES);
  peer.receive(rawFrame(4, 0));
  if (role === 'client') for (let count = 0; count < 3; count += 1) peer.open(true, ':method: GET');
  peer.sent();
  for (const part of parts) {
    peer.receive(part);
    part.fill(0xff);
    assert(peer.endpoint.openStreams <= MAX_STREAMS);
  }
  const { isBroken } = peer.endpoint;
  return { told: peer.told(), sent: peer.sent(), isBroken };
}

describe('an end of HTTP/2', () => {
  for (const role of ['client', 'server'] as const) {
    it(`reads any frames as a ${role} without a fault of its own, the same however they are cut`, () => {
      const property = fc.property(frames, changes, cuts, (bytes, mutations, shares) => {
        const input = changed(bytes, mutations);
        const whole = outcome(role, [Buffer.from(input)]);
        // A frame costs at least nine bytes, and brings an answer with its body, a window and a reset at most.
        assert(whole.sent.length <= 8 * input.length + 200);
        assert.deepEqual(outcome(role, partsOf(input, shares)), whole);
      });

      fc.assert(property, { numRuns: 2_000 });
    });

    it(`reads any bytes as a ${role}`, () => {
      const bytes = fc.uint8Array({ maxLength: 200 }).map((all) => Buffer.from(all));
      const property = fc.property(bytes, cuts, (input, shares) => {
        const whole = outcome(role, [Buffer.from(input)]);
        assert.deepEqual(outcome(role, partsOf(input, shares)), whole);
      });

      fc.assert(property, { numRuns: 2_000 });
    });
  }
});
