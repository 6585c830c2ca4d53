// A client of HTTP/2 that reset a response under way was heard by its connection first: the exchange took itself for done,
// and the application was left with a stream that nobody read from, or ended, any more.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect, createServer, type ServerHttp2Stream } from 'node:http2';
import { describe, it } from 'node:test';
import { listenOnLoopback } from '../support/loopback.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/raw-socket.ts';

const CANCEL = 8;
const REQUESTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  response: { ':method': 'GET' },
  tunnel: { ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http', ':path': '/' },
};

interface UnderWay {
  readonly session: ClientHttp2Session;
  readonly fixture: ProxyFixture;
  readonly application: ServerHttp2Stream;
  readonly reset: () => void;
}

/** A response whose body has begun and does not end. */
async function underWay(
  stack: AsyncDisposableStack,
  request: Readonly<Record<string, string>>,
): Promise<UnderWay> {
  const server = createServer({ settings: { enableConnectProtocol: true } });
  stack.defer(() => {
    server.close();
  });
  const port = await listenOnLoopback(server);
  const fixture = stack.use(await ProxyFixture.open({ port }));
  const session = connect(`http://127.0.0.1:${fixture.proxy.address.port}`);
  stack.defer(() => {
    session.destroy();
  });
  await once(session, 'remoteSettings');
  const opened = once(server, 'stream');
  const client = session.request(request, { endStream: false });
  client.on('error', () => undefined).resume();
  const [application] = (await opened) as [ServerHttp2Stream];
  application.on('error', () => undefined);
  application.respond({ ':status': 200 });
  application.write('some of it');
  await once(client, 'response');
  const reset = (): void => {
    client.close(CANCEL);
  };
  return { session, fixture, application, reset };
}

describe('a response that its client does not want any more', () => {
  for (const [what, request] of Object.entries(REQUESTS)) {
    it(`is not left open with the application when it is reset (${what})`, async () => {
      await using stack = new AsyncDisposableStack();
      const { fixture, application, reset } = await underWay(stack, request);
      const { counters } = fixture.proxy;
      assert.equal(counters.tunnelsOpen, what === 'tunnel' ? 1 : 0);

      reset();

      await eventually(() => application.closed, 'the reset');
      assert.equal(application.rstCode, CANCEL);
      assert.equal(counters.clientAborts, 1);
      assert.equal(counters.streamsOpen, 0);
      assert.equal(counters.tunnelsOpen, 0);
    });

    it(`is not left open with the application when its connection goes (${what})`, async () => {
      await using stack = new AsyncDisposableStack();
      const { session, fixture, application } = await underWay(stack, request);

      session.destroy();

      await eventually(() => application.closed, 'the reset');
      assert.equal(fixture.proxy.counters.clientAborts, 1);
      assert.equal(fixture.proxy.counters.tunnelsOpen, 0);
    });
  }
});
