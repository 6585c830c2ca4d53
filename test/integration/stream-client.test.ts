// The sidecar's end of the stream, with an operator of the test's own that says whatever it likes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { checkSidecarFrame, FrameDecoder } from '../../contract/frame-codec.ts';
import { FRAME_BYTES_MAX, type PolicyRefusal, type SidecarFrame } from '../../contract/stream.ts';
import { ConfigKeeper } from '../../sidecar/policy/config-keeper.ts';
import { StreamSource } from '../../sidecar/policy/stream-source.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { compiledPolicy } from '../support/compiled-policy.ts';
import { eventually } from '../support/redis.ts';

const none: readonly PolicyRefusal[] = [];

/** One stream that the sidecar opened. */
class Scripted {
  readonly heard: SidecarFrame[] = [];
  readonly http: ServerHttp2Stream;
  readonly token: string;
  readonly #decoder = new FrameDecoder<SidecarFrame>(checkSidecarFrame);

  constructor(http: ServerHttp2Stream, token: string) {
    this.http = http;
    this.token = token;
    http.on('error', () => undefined);
    http.on('data', (bytes: Buffer) => {
      for (const one of this.#decoder.push(bytes))
        if (one.kind === 'frame') this.heard.push(one.frame);
    });
  }

  say(line: unknown): void {
    this.http.write(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`);
  }

  push(nonce: number, rest: Readonly<Record<string, unknown>> = {}): void {
    const policies = [compiledPolicy({ generation: nonce })];
    const version = `v${nonce}`;
    this.say({ type: 'config', nonce, version, policies, settings: {}, issuedAt: '', ...rest });
  }

  async hear(what: SidecarFrame['type']): Promise<SidecarFrame> {
    await eventually(what, () => this.heard.some(({ type }) => type === what));
    const found = this.heard.findLast(({ type }) => type === what);
    assert(found);
    return found;
  }
}

class ScriptedOperator implements AsyncDisposable {
  readonly streams: Scripted[] = [];
  /** Streams are answered with it. */
  status = 200;
  readonly #server: Http2SecureServer;

  private constructor(server: Http2SecureServer) {
    this.#server = server;
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.respond({ ':status': this.status });
      this.streams.push(new Scripted(stream, headers.authorization ?? ''));
    });
    server.on('sessionError', () => undefined);
  }

  static async open({ folder }: Certificates): Promise<ScriptedOperator> {
    const [cert, key] = await Promise.all(
      ['server.crt', 'server.key'].map((name) => readFile(path.join(folder, name), 'utf8')),
    );
    const server = createSecureServer({ cert: cert ?? '', key: key ?? '' });
    server.listen({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new ScriptedOperator(server);
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The n-th stream, from 0. */
  async stream(n: number): Promise<Scripted> {
    await eventually(`stream ${n}`, () => this.streams.length > n);
    const found = this.streams[n];
    assert(found);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { http } of this.streams) http.session?.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

describe('the stream of a sidecar', () => {
  let certificates: Certificates;
  let folder: string;
  before(async () => {
    certificates = await makeCertificates();
    folder = await mkdtemp(path.join(tmpdir(), 'weir-client-'));
    await writeFile(path.join(folder, 'token'), 'first\n');
  });
  after(async () => {
    await certificates[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  function open(operator: ScriptedOperator): Disposable & { readonly keeper: ConfigKeeper } {
    const log = pino({ enabled: false });
    const target = { apply: () => Promise.resolve(none), report: () => ({ clientIpIsProxy: [] }) };
    const keeper = new ConfigKeeper(target, log);
    const source = new StreamSource({
      ...{ url: operator.url, ca: certificates.ca, tokenFile: path.join(folder, 'token') },
      ...{ keeper, log, version: '1.2.3', report: () => target.report() },
      pod: { namespace: 'shop', name: 'api-1', uid: 'pod-1' },
      onInForce: () => undefined,
      onFailure: () => undefined,
      // No jitter: at once.
      random: () => 0,
    });
    return {
      keeper,
      [Symbol.dispose]: () => {
        source[Symbol.dispose]();
      },
    };
  }

  it('begins with what it can run and has, and answers a push when it is in force', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    using client = open(operator);
    const stream = await operator.stream(0);
    const hello = await stream.hear('hello');

    stream.push(1);
    const ack = await stream.hear('ack');

    assert(hello.type === 'hello');
    assert.deepEqual(
      [hello.sidecar.version, hello.sidecar.formats, hello.have.version],
      ['1.2.3', [1], ''],
    );
    assert.deepEqual(ack, { type: 'ack', nonce: 1, version: 'v1' });
    assert.equal(client.keeper.inForce?.bundle.version, 'v1');
    const state = await stream.hear('state');
    assert.equal(state.type === 'state' && state.version, 'v1');
  });

  it('goes on after a frame it does not know and after one that is not in order', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    using client = open(operator);
    const stream = await operator.stream(0);
    await stream.hear('hello');

    stream.say({ type: 'weather', sky: 'blue' });
    await eventually('its answer', () => stream.heard.some((one) => one.type === 'nack'));
    const unknown = stream.heard.findLast((one) => one.type === 'nack');
    stream.push(5, { policies: 'none' });
    await eventually(
      'its answer',
      () => stream.heard.filter((one) => one.type === 'nack').length === 2,
    );
    const bad = stream.heard.findLast((one) => one.type === 'nack');
    stream.push(6);
    await stream.hear('ack');

    assert.deepEqual([unknown?.code, bad?.code, bad?.nonce], ['UnknownFrame', 'BadFrame', 5]);
    assert.equal(client.keeper.inForce?.bundle.version, 'v6');
    assert.equal(operator.streams.length, 1);
  });

  it('begins anew after a line without end, with what it has and the token of then', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    using client = open(operator);
    const first = await operator.stream(0);
    first.push(1);
    await first.hear('ack');
    await writeFile(path.join(folder, 'token'), 'second\n');

    first.say('x'.repeat(FRAME_BYTES_MAX));
    const second = await operator.stream(1);
    const hello = await second.hear('hello');
    second.push(2);
    await second.hear('ack');
    await writeFile(path.join(folder, 'token'), 'first\n');

    assert(hello.type === 'hello');
    assert.deepEqual(hello.have, {
      version: 'v1',
      sources: [{ uid: 'uid-api', generation: 1 }],
      origin: 'stream',
    });
    assert.deepEqual([first.token, second.token], ['Bearer first', 'Bearer second']);
    assert.equal(client.keeper.inForce?.bundle.version, 'v2');
    assert.deepEqual(
      second.heard.slice(0, 3).map(({ type }) => type),
      ['hello', 'state', 'ack'],
      'it tells how it is before it is asked for anything',
    );
  });

  it('asks for the whole bundle when it is told a difference to something else', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    using client = open(operator);
    const stream = await operator.stream(0);
    stream.push(1);
    await stream.hear('ack');

    stream.say({
      type: 'delta',
      nonce: 2,
      base: 'v0',
      version: 'v2',
      upsert: [],
      remove: ['uid-api'],
      issuedAt: '',
    });
    const nack = await stream.hear('nack');

    assert.equal(nack.type === 'nack' && nack.code, 'UnknownBase');
    assert.equal(client.keeper.inForce?.bundle.policies.length, 1);
  });

  it('comes back after a bye, but not before it was told to', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    using client = open(operator);
    const stream = await operator.stream(0);
    stream.push(1);
    await stream.hear('ack');
    const saidMs = performance.now();

    stream.say({ type: 'bye', reason: 'SomethingNew', retryAfterMs: 700 });
    await operator.stream(1);

    assert(performance.now() - saidMs >= 690);
    assert.equal(client.keeper.inForce?.bundle.version, 'v1');
  });

  it('is tried again when it is refused, or breaks', async () => {
    await using operator = await ScriptedOperator.open(certificates);
    operator.status = 401;
    using client = open(operator);
    const refused = await operator.stream(0);
    refused.http.end('no\n');
    await operator.stream(1);
    operator.status = 200;
    for (const { http } of operator.streams) http.session?.destroy();

    await eventually('a good one', () => {
      operator.streams.at(-1)?.push(1);
      return client.keeper.inForce !== undefined;
    });

    assert(operator.streams.length >= 3);
  });
});
