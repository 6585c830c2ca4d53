// What a client of a soak does on one visit: requests of every kind, and every way of leaving in the middle. Each visit
// enters into the ledger what the sidecar has to have counted for it.
import assert from 'node:assert/strict';
import type { ClientHttp2Stream } from 'node:http2';
import { RawSocket } from '../support/raw-socket.ts';
import type { Ledger } from './ledger.ts';
import { SoakHttp2Client } from './soak-http2.ts';
import type { SoakUpstream } from './soak-upstream.ts';

export interface Visitor {
  readonly ledger: Ledger;
  readonly upstream: SoakUpstream;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Listener in front of the application. */
  readonly port: number;
  /** Listener in front of a port that nothing listens on. */
  readonly deadPort: number;
  /** Listener in front of the application's HTTP/2. */
  readonly http2Port: number;
  /** Value of `X-Client`: whose buckets are charged. */
  readonly client: string;
  /** An `X-Id` that nobody had before. */
  readonly newId: () => string;
}

const PATIENCE_MS = 60_000;

type Visit = (visitor: Visitor) => Promise<void>;

/** Name → how often, and what. */
export const visits: Readonly<Record<string, readonly [weight: number, visit: Visit]>> = {
  'kept connection': [10, keptConnection],
  'one request': [6, (visitor) => answered(visitor, '/plain/ok', [200], 'Connection: close\r\n')],
  'pipelined requests': [4, pipelined],
  'large response': [3, (visitor) => answered(visitor, '/plain/large', [200])],
  'chunked response': [3, (visitor) => answered(visitor, '/plain/chunks', [200])],
  'late response': [3, (visitor) => answered(visitor, '/plain/later', [200])],
  'interim responses': [2, hinted],
  'nobody’s request': [4, exempt],
  'small bucket': [8, scarce],
  'priced request': [6, priced],
  'chunked upload': [4, chunkedUpload],
  'slow upload': [3, slowUpload],
  'expected continue': [2, expectedContinue],
  'early response': [2, earlyResponse],
  tunnel: [4, tunnel],
  'application resets': [2, (visitor) => answered(visitor, '/plain/reset', [502])],
  'application talks nonsense': [2, (visitor) => answered(visitor, '/plain/bad', [502])],
  'application cuts': [2, cutResponse],
  'application is silent': [1, (visitor) => answered(visitor, '/plain/never', [504])],
  'application is away': [2, awayApplication],
  'malformed head': [3, malformedHead],
  'malformed body': [3, malformedBody],
  'unfinished head': [3, unfinishedHead],
  'gone after the request': [8, goneAfterRequest],
  'gone once the application has it': [6, goneOnceSeen],
  'gone in an upload': [5, goneInUpload],
  'gone in a response': [5, goneInResponse],
  'gone in a tunnel': [4, goneInTunnel],
  'HTTP/2 requests': [4, http2Requests],
  'gone in streams of HTTP/2': [4, goneInStreams],
  'gone from HTTP/2': [3, goneFromHttp2],
};

function head(visitor: Visitor, line: string, fields = ''): string {
  return `${line} HTTP/1.1\r\nHost: soak\r\nX-Client: ${visitor.client}\r\n${fields}\r\n`;
}

function get(visitor: Visitor, target: string, fields = ''): string {
  return head(visitor, `GET ${target}`, fields);
}

/** A client that waits for as long as a busy machine may take. */
async function connected(visitor: Visitor, port: number = visitor.port): Promise<RawSocket> {
  const client = await RawSocket.connect(port);
  client.patienceMs = PATIENCE_MS;
  return client;
}

function below({ random }: Visitor, limit: number): number {
  return Math.floor(random() * limit);
}

/** One admitted request with an answer of one of the statuses. */
async function answered(
  visitor: Visitor,
  target: string,
  statuses: readonly number[],
  fields = '',
): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, target, fields));
  await admitted(visitor, client, statuses);
}

async function admitted(
  { ledger }: Visitor,
  client: RawSocket,
  statuses: readonly number[] = [200],
): Promise<void> {
  const { status } = await client.response();
  ledger.admit();
  assert(statuses.includes(status), `answered ${String(status)}`);
}

async function keptConnection(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  for (let n = 1 + below(visitor, 8); n > 0; n -= 1) {
    client.send(get(visitor, n % 3 === 0 ? '/plain/chunks' : '/plain/ok'));
    await admitted(visitor, client);
  }
}

async function pipelined(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, '/plain/ok').repeat(5));
  for (let n = 0; n < 5; n += 1) await admitted(visitor, client);
}

async function hinted(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, '/plain/hints'));
  await client.until('103 Early Hints\r\n');
  await client.until('\r\n\r\n');
  await admitted(visitor, client);
}

async function exempt(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, '/free/ok'));
  const { status } = await client.response();
  visitor.ledger.exempt += 1;
  assert.equal(status, 200);
}

async function scarce(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  for (let n = 0; n < 5; n += 1) {
    client.send(get(visitor, '/scarce/ok'));
    const { status } = await client.response();
    if (status === 429) visitor.ledger.denied += 1;
    else visitor.ledger.admit('scarce');
    assert(status === 429 || status === 200, `answered ${String(status)}`);
  }
}

async function priced(visitor: Visitor): Promise<void> {
  const [cost, took] = [1 + below(visitor, 9), below(visitor, 6)];
  await using client = await connected(visitor);
  client.send(
    get(visitor, '/priced/took', `X-Cost: ${String(cost)}\r\nX-Will-Take: ${String(took)}\r\n`),
  );
  const { status } = await client.response();
  visitor.ledger.admit('priced', cost + took);
  assert.equal(status, 200);
}

async function chunkedUpload(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(head(visitor, 'POST /plain/upload', 'Transfer-Encoding: chunked\r\n'));
  for (let n = 1 + below(visitor, 5); n > 0; n -= 1) {
    const size = 1 + below(visitor, 3_000);
    client.send(`${size.toString(16)};x=y\r\n${'u'.repeat(size)}\r\n`);
    await turn();
  }
  client.send('0\r\nX-Sum: 1\r\n\r\n');
  await admitted(visitor, client);
}

async function slowUpload(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(head(visitor, 'PUT /plain/upload', 'Content-Length: 20\r\n'));
  for (let n = 0; n < 20; n += 1) {
    client.send('s');
    await pause(10);
  }
  await admitted(visitor, client);
}

async function expectedContinue(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  const fields = 'Content-Length: 4\r\nExpect: 100-continue\r\n';
  client.send(head(visitor, 'POST /plain/upload', fields));
  await client.until('HTTP/1.1 100 Continue\r\n\r\n');
  client.send('body');
  await admitted(visitor, client);
}

async function earlyResponse(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(`${head(visitor, 'POST /plain/early', 'Content-Length: 100000\r\n')}some`);
  await admitted(visitor, client, [413]);
}

async function openTunnel(visitor: Visitor, prefix: string): Promise<RawSocket> {
  const client = await connected(visitor);
  client.send(get(visitor, `${prefix}/tunnel`, 'Connection: Upgrade\r\nUpgrade: echo\r\n'));
  await client.until('HTTP/1.1 101 Switching Protocols\r\n');
  await client.until('\r\n\r\n');
  return client;
}

async function tunnel(visitor: Visitor): Promise<void> {
  await using client = await openTunnel(visitor, '/plain');
  visitor.ledger.admit();
  for (let n = 1 + below(visitor, 4); n > 0; n -= 1) {
    const text = 'e'.repeat(1 + below(visitor, 2_000));
    client.send(text);
    await client.bytes(text.length);
  }
  client.end('bye');
  assert.equal(await client.rest(), 'bye');
}

async function cutResponse(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, '/plain/cut'));
  const text = await client.rest();
  visitor.ledger.admit();
  assert.match(text, /^HTTP\/1\.1 200 /);
}

async function awayApplication(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor, visitor.deadPort);
  client.send(get(visitor, '/plain/ok'));
  await admitted(visitor, client, [503]);
}

async function malformedHead(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(get(visitor, '/plain/ok', 'Bad : field\r\n'));
  const { status } = await client.response();
  visitor.ledger.malformed += 1;
  assert.equal(status, 400);
}

async function malformedBody(visitor: Visitor): Promise<void> {
  await using client = await connected(visitor);
  client.send(`${head(visitor, 'POST /plain/upload', 'Transfer-Encoding: chunked\r\n')}1\r\nx`);
  if (visitor.random() < 0.5) await pause(5);
  client.send('y\r\n');
  await admitted(visitor, client, [400]);
}

async function unfinishedHead(visitor: Visitor): Promise<void> {
  const client = await connected(visitor);
  await sendAndLeave(client, get(visitor, '/plain/ok').slice(0, -3));
}

// What is sent before an orderly end is read by the sidecar before it sees the end.
async function goneAfterRequest(visitor: Visitor): Promise<void> {
  const client = await connected(visitor);
  const target = ['/aborted/later', '/aborted/large', '/aborted/never'][below(visitor, 3)] ?? '';
  const text = get(visitor, target);
  await sendAndLeave(client, text, visitor.random() < 0.5 ? below(visitor, 20) : 0);
  visitor.ledger.abandoned += 1;
}

async function goneOnceSeen(visitor: Visitor): Promise<void> {
  const id = visitor.newId();
  const seen = visitor.upstream.sees(id);
  const client = await connected(visitor);
  client.send(get(visitor, '/aborted/never', `X-Id: ${id}\r\n`));
  await Promise.race([seen, client.gone()]);
  assert(!client.ended && !client.closed, `answered ${client.received}`);
  visitor.ledger.abandoned += 1;
  client.reset();
}

async function goneInUpload(visitor: Visitor): Promise<void> {
  const client = await connected(visitor);
  const upload = head(visitor, 'POST /aborted/upload', 'Content-Length: 100000\r\n');
  await sendAndLeave(client, upload + 'u'.repeat(below(visitor, 50_000)), below(visitor, 10));
  visitor.ledger.abandoned += 1;
}

async function goneInResponse(visitor: Visitor): Promise<void> {
  const client = await connected(visitor);
  client.send(get(visitor, '/aborted/endless'));
  await client.until('first');
  visitor.ledger.abandoned += 1;
  if (visitor.random() < 0.5) client.reset();
  else await client[Symbol.asyncDispose]();
}

async function goneInTunnel(visitor: Visitor): Promise<void> {
  const client = await openTunnel(visitor, '/aborted');
  visitor.ledger.abandoned += 1;
  client.send('e'.repeat(1_000));
  if (visitor.random() < 0.5) client.reset();
  else await client[Symbol.asyncDispose]();
}

async function http2Requests(visitor: Visitor): Promise<void> {
  await using client = new SoakHttp2Client(visitor.http2Port);
  const asked = Array.from({ length: 1 + below(visitor, 5) }, async () => {
    const status = await client.get('/plain/ok', { 'x-client': visitor.client });
    visitor.ledger.admit();
    assert.equal(status, 200);
  });
  await Promise.all(asked);
}

async function goneInStreams(visitor: Visitor): Promise<void> {
  await using client = new SoakHttp2Client(visitor.http2Port);
  const streams = await Promise.all([1, 2, 3].map(() => abandonedStream(visitor, client)));
  for (const stream of streams) client.cancel(stream);
  const status = await client.get('/plain/ok', { 'x-client': visitor.client });
  visitor.ledger.admit();
  assert.equal(status, 200);
}

async function goneFromHttp2(visitor: Visitor): Promise<void> {
  await using client = new SoakHttp2Client(visitor.http2Port);
  await Promise.all([1, 2].map(() => abandonedStream(visitor, client)));
}

/** A request that the application has and does not answer. */
async function abandonedStream(
  visitor: Visitor,
  client: SoakHttp2Client,
): Promise<ClientHttp2Stream> {
  const id = visitor.newId();
  const seen = visitor.upstream.sees(id);
  const stream = client.begin('/aborted/never', { 'x-client': visitor.client, 'x-id': id });
  await seen;
  visitor.ledger.abandoned += 1;
  return stream;
}

async function sendAndLeave(client: RawSocket, text: string, afterMs = 0): Promise<void> {
  await new Promise<void>((resolve) => {
    client.socket.write(text, 'latin1', () => {
      resolve();
    });
  });
  if (afterMs > 0) await pause(afterMs);
  await client[Symbol.asyncDispose]();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
