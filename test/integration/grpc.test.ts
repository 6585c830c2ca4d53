// gRPC through a sidecar as a user has it: grpc-js on both ends, all four kinds of calls, a limit, and a drain.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type ServiceDefinition,
  type ServiceError,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';

const PACKAGE = '/shop.Prices/';
const identity = (bytes: Buffer): Buffer => bytes;

function method(name: string, requestStream: boolean, responseStream: boolean): MethodOf {
  return {
    ...{ path: `${PACKAGE}${name}`, requestStream, responseStream },
    ...{ requestSerialize: identity, requestDeserialize: identity },
    ...{ responseSerialize: identity, responseDeserialize: identity },
  };
}

type MethodOf = ServiceDefinition[string];

const SERVICE: ServiceDefinition = {
  get: method('Get', false, false),
  collect: method('Collect', true, false),
  watch: method('Watch', false, true),
  chat: method('Chat', true, true),
};

const IMPLEMENTATION: UntypedServiceImplementation = {
  get(call: { request: Buffer; metadata: Metadata }, callback: Callback) {
    if (call.request.toString() === 'fail') {
      callback({ code: status.NOT_FOUND, details: 'no such price: 100 %' });
      return;
    }
    callback(null, Buffer.from(`${call.request.toString()}!`), new Metadata());
  },
  collect(call: Readable, callback: Callback) {
    const parts: Buffer[] = [];
    call.on('data', (part: Buffer) => parts.push(part));
    call.on('end', () => {
      callback(null, Buffer.concat(parts));
    });
  },
  watch(call: Writable & { request: Buffer }) {
    for (let i = 0; i < 100; i += 1) call.write(Buffer.from(`${call.request.toString()} ${i}`));
    call.end();
  },
  chat(call: Readable & Writable) {
    call.on('data', (part: Buffer) => call.write(Buffer.from(part.toString().toUpperCase())));
    call.on('end', () => {
      call.end();
    });
  },
};

type Callback = (error: Partial<ServiceError> | null, value?: Buffer, trailer?: Metadata) => void;
interface Readable {
  on(event: 'data', listener: (part: Buffer) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}
interface Writable {
  write(part: Buffer): unknown;
  end(): unknown;
}

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: calls }
spec:
  selector: {}
  rules:
    - name: get
      match: [{ methods: [POST], path: { type: Exact, value: ${PACKAGE}Get } }]
      buckets: [{ capacity: 3, refill: { tokens: 1, every: 1h } }]
`;

class PriceService implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async open(): Promise<PriceService> {
    const server = new Server();
    server.addService(SERVICE, IMPLEMENTATION);
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    return new PriceService(server, port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    return Promise.resolve();
  }
}

class PriceClient implements Disposable {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  }

  get(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        ...([`${PACKAGE}Get`, identity, identity, Buffer.from(text)] as const),
        (error, value) => {
          if (error === null) resolve(String(value));
          else reject(error);
        },
      );
    });
  }

  collect(parts: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = this.#client.makeClientStreamRequest(
        ...([`${PACKAGE}Collect`, identity, identity] as const),
        (error, value) => {
          if (error === null) resolve(String(value));
          else reject(error);
        },
      );
      for (const part of parts) call.write(Buffer.from(part));
      call.end();
    });
  }

  async watch(text: string): Promise<string[]> {
    const call = this.#client.makeServerStreamRequest(
      ...([`${PACKAGE}Watch`, identity, identity, Buffer.from(text)] as const),
    );
    return (await call.toArray()).map(String);
  }

  chat(): ClientDuplexStream<Buffer, Buffer> {
    return this.#client.makeBidiStreamRequest(`${PACKAGE}Chat`, identity, identity);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** A service behind a sidecar, and a client of it. */
async function open(): Promise<
  AsyncDisposable & { readonly sidecar: SidecarProcess; readonly client: PriceClient }
> {
  await using stack = new AsyncDisposableStack();
  const service = stack.use(await PriceService.open());
  const files = { 'calls.yaml': POLICY };
  const sidecar = stack.use(await SidecarProcess.open({ files, upstreamPort: service.port }));
  const client = stack.use(new PriceClient(sidecar.port));
  const opened = stack.move();
  return { sidecar, client, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

describe('calls of gRPC through a sidecar', () => {
  it('are those without it: unary, streams of the client, of the server, and of both', async () => {
    await using opened = await open();
    const { client } = opened;

    const large = 'x'.repeat(200_000);
    assert.equal(await client.get('tea'), 'tea!');
    assert.equal(await client.collect(['a', large, 'b']), `a${large}b`);
    const watched = await client.watch('tea');
    assert.deepEqual([watched.length, watched[0], watched[99]], [100, 'tea 0', 'tea 99']);
    const chat = client.chat();
    const heard: string[] = [];
    chat.on('data', (part: Buffer) => heard.push(part.toString()));
    for (const word of ['one', 'two', 'three']) {
      chat.write(Buffer.from(word));
      await eventually(`${word} came back`, () =>
        Promise.resolve(heard.at(-1) === word.toUpperCase()),
      );
    }
    chat.end();
    assert.deepEqual(heard, ['ONE', 'TWO', 'THREE']);
  });

  it('keep the status and the message that the service gives', async () => {
    await using opened = await open();
    const { client } = opened;

    await assert.rejects(client.get('fail'), {
      code: status.NOT_FOUND,
      details: 'no such price: 100 %',
    });
  });

  it('over a limit are RESOURCE_EXHAUSTED with what to wait for, and others go on', async () => {
    await using opened = await open();
    const { client } = opened;

    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => client.get(String(i))),
    );

    const refused = outcomes.filter((one) => one.status === 'rejected');
    assert.equal(refused.length, 5);
    for (const { reason } of refused) {
      const error = reason as ServiceError;
      assert.equal(error.code, status.RESOURCE_EXHAUSTED);
      assert.equal(error.details, 'The rate limit calls/get/main has been reached.');
      assert.deepEqual(error.metadata.get('retry-after'), ['3600']);
    }
    assert.equal((await client.watch('tea')).length, 100);
  });

  it('of clients that come while the pod drains are served, and each next one too', async () => {
    await using opened = await open();
    const { sidecar } = opened;
    await sidecar.ask('/drain', 'POST');

    const outcomes: string[][] = [];
    for (let i = 0; i < 5; i += 1) {
      using client = new PriceClient(sidecar.port);
      outcomes.push(await client.watch('tea'));
      outcomes.push(await client.watch('tea'));
    }

    assert(outcomes.every(({ length }) => length === 100));
  });

  it('under way when the pod drains come to their end, and the next ones go elsewhere', async () => {
    await using opened = await open();
    const { client } = opened;
    const chat = client.chat();
    const heard: string[] = [];
    const ended = new Promise<void>((resolve, reject) => {
      chat.on('data', (part: Buffer) => heard.push(part.toString()));
      chat.on('error', reject);
      chat.on('end', resolve);
    });
    chat.write(Buffer.from('before'));
    await eventually('it has begun', () => Promise.resolve(heard.length === 1));

    await opened.sidecar.ask('/drain', 'POST');
    assert.equal(await client.get('during'), 'during!');
    opened.sidecar.kill('SIGTERM');
    chat.write(Buffer.from('after'));
    await eventually('it goes on', () => Promise.resolve(heard.length === 2));
    chat.end();
    await ended;

    assert.deepEqual(heard, ['BEFORE', 'AFTER']);
    assert.equal(await opened.sidecar.exited, 0);
  });
});
