// Two ends of ours, connected through pipes that pass any number of bytes at a time: whatever is sent on whichever stream,
// with whatever windows, arrives once and in order, and every stream ends.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { EndpointOptions } from '../../sidecar/http2/endpoint.ts';
import type { FieldBlock } from '../../sidecar/http2/hpack-decoder.ts';
import type { Stream } from '../../sidecar/http2/stream.ts';
import { settings } from '../support/http2-frames.ts';
import { fieldsOf, Side } from '../support/http2-side.ts';

const REQUEST = [':method: POST', ':scheme: http', ':path: /', ':authority: a'];
const RESPONSE = fieldsOf(':status: 200');
const TRAILERS = fieldsOf('t: 1');

/** What one end knows of one stream. */
interface Flow {
  readonly stream: Stream;
  sent: number;
  received: number;
  /** Bytes that came and are not credited. */
  owed: number;
  told: number;
  hasEnded: boolean;
  peerHasEnded: boolean;
  isReset: boolean;
}

function isOpen({ hasEnded, isReset }: Flow): boolean {
  return !hasEnded && !isReset;
}

/** The bytes from `at` on of what `role` sends on a stream. */
function bytesOf(role: string, id: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const first = id * 7 + (role === 'client' ? 0 : 101);
  for (let index = 0; index < length; index += 1) bytes[index] = first + (at + index) * 31;
  return bytes;
}

class End extends Side {
  readonly role: 'client' | 'server';
  readonly flows = new Map<number, Flow>();
  /** What is under way to the other end. */
  pipe: Buffer = Buffer.alloc(0);
  readonly initialWindow: number;
  /** The initial windows that the peer was told: the last, and the lowest. */
  toldWindow: number;
  lowestWindow: number;

  constructor(role: 'client' | 'server', options: Partial<EndpointOptions>) {
    super(role, { maxConcurrentStreams: 100, ...options });
    this.role = role;
    this.initialWindow = options.initialWindow ?? 0;
    this.toldWindow = this.initialWindow;
    this.lowestWindow = this.initialWindow;
  }

  get other(): string {
    return this.role === 'client' ? 'server' : 'client';
  }

  /** The flow that `pick` falls on among those that satisfy. */
  flow(pick: number, suits: (flow: Flow) => boolean): Flow | undefined {
    const flows = [...this.flows.values()].filter(suits);
    return flows[pick % Math.max(1, flows.length)];
  }

  begin(): void {
    if (!this.endpoint.hasRoom) return;
    this.keep(this.open(false, ...REQUEST));
  }

  keep(stream: Stream): void {
    const flow = { sent: 0, received: 0, owed: 0, told: 0 };
    const state = { hasEnded: false, peerHasEnded: false, isReset: false };
    this.flows.set(stream.id, { stream, ...flow, ...state });
  }

  send(flow: Flow, length: number, ends: boolean): void {
    const bytes = bytesOf(this.role, flow.stream.id, flow.sent, length);
    flow.sent += length;
    flow.hasEnded = ends;
    this.endpoint.sender.data(flow.stream, bytes, ends);
    bytes.fill(0);
  }

  end(flow: Flow, hasTrailers: boolean): void {
    flow.hasEnded = true;
    this.endpoint.sender.end(flow.stream, hasTrailers ? TRAILERS : undefined);
  }

  reset(flow: Flow): void {
    flow.isReset = true;
    this.endpoint.reset(flow.stream, 8);
  }

  credit(flow: Flow, bytes: number): void {
    const count = Math.min(bytes, flow.owed);
    flow.owed -= count;
    this.endpoint.credit(flow.stream, count);
  }

  /** Ends every stream that is open, and passes on whatever came. */
  finishAll(): void {
    for (const flow of this.flows.values()) {
      if (isOpen(flow)) this.end(flow, true);
      if (flow.owed > 0) this.credit(flow, flow.owed);
    }
  }

  /** Tells the peer another initial window, never above the one that we keep to. */
  tellWindow(share: number): void {
    const window = Math.floor(this.initialWindow * share);
    this.toldWindow = window;
    this.lowestWindow = Math.min(this.lowestWindow, window);
    this.endpoint.sender.output.settings(settings([4, window]));
  }

  pass(to: End, most: number): boolean {
    this.pipe = Buffer.concat([this.pipe, this.sent()]);
    const part = this.pipe.subarray(0, most);
    this.pipe = this.pipe.subarray(part.length);
    to.receive(Buffer.from(part));
    return part.length > 0;
  }

  override onRequest(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    super.onRequest(stream, block, endsStream);
    this.keep(stream);
    this.endpoint.sender.fields(stream, RESPONSE, false);
  }

  override onFields(stream: Stream, _: FieldBlock, endsStream: boolean): void {
    stream.hasFields = true;
    if (endsStream) this.#of(stream).peerHasEnded = true;
  }

  override onData(stream: Stream, bytes: Buffer, endsStream: boolean): void {
    const flow = this.#of(stream);
    assert(!flow.peerHasEnded);
    assert(bytes.equals(bytesOf(this.other, stream.id, flow.received, bytes.length)));
    flow.received += bytes.length;
    flow.owed += bytes.length;
    if (endsStream) flow.peerHasEnded = true;
  }

  override onSent(stream: Stream, bytes: number): void {
    this.#of(stream).told += bytes;
  }

  override onReset(stream: Stream): void {
    this.#of(stream).isReset = true;
  }

  #of(stream: Stream): Flow {
    const flow = this.flows.get(stream.id);
    assert(flow !== undefined);
    return flow;
  }
}

type Step = (client: End, server: End) => void;

const pick = fc.nat(1_000);
/** Picks one of both ends; the other end comes second. */
const end = fc.boolean().map(
  (isClient) =>
    (client: End, server: End): [End, End] =>
      isClient ? [client, server] : [server, client],
);
const length = fc.oneof(fc.nat(20), fc.nat(2_000), fc.nat(100_000));

const opening = fc.constant<Step>((client) => {
  client.begin();
});
const sending = fc
  .tuple(end, pick, length, fc.nat(9))
  .map(([of, at, bytes, tenth]): Step => (...ends) => {
    const [from] = of(...ends);
    const flow = from.flow(at, isOpen);
    if (flow !== undefined) from.send(flow, bytes, tenth === 0);
  });
const ending = fc.tuple(end, pick, fc.boolean()).map(([of, at, hasTrailers]): Step => (...ends) => {
  const [from] = of(...ends);
  const flow = from.flow(at, isOpen);
  if (flow !== undefined) from.end(flow, hasTrailers);
});
const resetting = fc.tuple(end, pick).map(([of, at]): Step => (...ends) => {
  const [from] = of(...ends);
  const flow = from.flow(at, ({ isReset }) => !isReset);
  if (flow !== undefined) from.reset(flow);
});
const crediting = fc.tuple(end, pick, length).map(([of, at, bytes]): Step => (...ends) => {
  const [from] = of(...ends);
  const flow = from.flow(at, ({ owed }) => owed > 0);
  if (flow !== undefined) from.credit(flow, bytes);
});
const passing = fc
  .tuple(end, fc.oneof(fc.constant(1), fc.nat(30), fc.nat(200_000)))
  .map(([of, most]): Step => (...ends) => {
    const [from, to] = of(...ends);
    from.pass(to, most);
  });
const blocking = fc.tuple(end, fc.boolean()).map(([of, isBlocked]): Step => (...ends) => {
  const { sender } = of(...ends)[0].endpoint;
  sender.isBlocked = isBlocked;
  sender.pump();
});
const telling = fc
  .tuple(end, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([of, share]): Step => (...ends) => {
    of(...ends)[0].tellWindow(share);
  });
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: opening },
    { weight: 8, arbitrary: sending },
    { weight: 2, arbitrary: ending },
    { weight: 1, arbitrary: resetting },
    { weight: 3, arbitrary: crediting },
    { weight: 10, arbitrary: passing },
    { weight: 1, arbitrary: blocking },
    { weight: 1, arbitrary: telling },
  ),
  { maxLength: 150 },
);

const options = fc.record({
  initialWindow: fc.oneof(
    fc.integer({ min: 1, max: 100 }),
    fc.integer({ min: 1, max: 200_000 }),
    fc.constant(200_000),
  ),
  connectionWindow: fc.oneof(fc.constant(65_536), fc.integer({ min: 65_536, max: 200_000 })),
  creditsAtOnce: fc.boolean(),
});

function assertWindows(client: End, server: End): void {
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    assert(!from.endpoint.isBroken);
    assert(from.endpoint.sender.window >= 0);
    for (const { stream } of from.flows.values()) {
      // Below zero only by what SETTINGS have taken away.
      assert(stream.sendWindow >= to.lowestWindow - to.initialWindow);
      assert(stream.receiveWindow >= 0);
      assert(stream.owed >= 0);
    }
  }
}

/** With nothing under way, what one end may send on a stream is what the other one expects. */
function assertAgreement(client: End, server: End): void {
  while ([client.pass(server, 10_000), server.pass(client, 10_000)].some(Boolean));
  for (const [id, { stream, isReset, hasEnded }] of client.flows) {
    const other = server.flows.get(id);
    if (other === undefined || isReset || other.isReset) continue;
    if (!hasEnded) assertSame(stream, other.stream, server);
    if (!other.hasEnded) assertSame(other.stream, stream, client);
  }
}

function assertSame(sending: Stream, receiving: Stream, receiver: End): void {
  const taken = receiver.initialWindow - receiver.toldWindow;
  assert.equal(sending.sendWindow, receiving.receiveWindow - taken);
}

/** Lets everything that is under way come to its end. */
function settle(client: End, server: End): void {
  for (const side of [client, server]) side.tellWindow(1);
  for (let isMoving = true; isMoving;) {
    isMoving = false;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.endpoint.sender.isBlocked = false;
      from.endpoint.sender.pump();
      from.finishAll();
      isMoving = from.pass(to, 10_000) || isMoving;
    }
  }
}

describe('two ends of HTTP/2', () => {
  it('pass every byte once and in order, within their windows, and end every stream', () => {
    const property = fc.property(options, options, steps, (ofClient, ofServer, all) => {
      const client = new End('client', ofClient);
      const server = new End('server', ofServer);
      // Until it is told otherwise, each goes by windows of 65 535 bytes.
      client.pass(server, 1_000);
      server.pass(client, 1_000);
      for (const step of all) {
        step(client, server);
        assertWindows(client, server);
      }
      assertAgreement(client, server);
      settle(client, server);

      assertWindows(client, server);
      assert.equal(client.endpoint.openStreams, 0);
      assert.equal(server.endpoint.openStreams, 0);
      assert(!client.endpoint.isWithinHead && !server.endpoint.isWithinHead);
      for (const [id, ours] of client.flows) {
        const theirs = server.flows.get(id);
        if (theirs === undefined || ours.isReset || theirs.isReset) continue;
        assert.equal(theirs.received, ours.sent);
        assert.equal(ours.received, theirs.sent);
        assert.equal(ours.told, ours.sent);
        assert.equal(theirs.told, theirs.sent);
        assert(ours.peerHasEnded && theirs.peerHasEnded);
      }
    });

    fc.assert(property, { numRuns: 500 });
  });
});
