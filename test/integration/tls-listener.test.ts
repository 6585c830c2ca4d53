// A sidecar that serves its clients over TLS: both versions of HTTP by ALPN, certificates of clients, and renewal.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:http2';
import { connect as connectTcp } from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import type { WeirError } from '../../contract/errors.ts';
import { CertificateFiles } from '../../sidecar/tls/certificate-files.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { framesIn, uint32 } from '../support/http2-frames.ts';
import { Http2Client, Http2Upstream } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: five }
spec:
  selector: {}
  rules:
    - { name: all, buckets: [{ capacity: 5, refill: { tokens: 1, every: 1h } }] }
`;

function open(
  { folder }: Certificates,
  upstreamPort: number,
  flags: readonly string[] = [],
): Promise<SidecarProcess> {
  const tls = ['--tls-cert', `${folder}/server.crt`, '--tls-key', `${folder}/server.key`];
  return SidecarProcess.open({
    ...{ files: { 'five.yaml': POLICY }, upstreamPort },
    flags: [...tls, ...flags],
  });
}

/** One request over HTTP/1.1; the response, and the serial of the certificate that was shown. */
async function ask(
  port: number,
  options: { ca: string; cert?: string; key?: string },
): Promise<{ readonly text: string; readonly serial: string }> {
  const socket: TLSSocket = connect({ host: '127.0.0.1', port, ...options });
  await once(socket, 'secureConnect');
  const serial = socket.getPeerCertificate().serialNumber;
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  await once(socket, 'close');
  return { text, serial };
}

async function descriptorsOf(sidecar: SidecarProcess): Promise<number> {
  return (await readdir(`/proc/${sidecar.pid}/fd`)).length;
}

async function copyPair(from: Certificates, to: Certificates): Promise<void> {
  for (const name of ['server.crt', 'server.key']) {
    await copyFile(path.join(from.folder, name), path.join(to.folder, name));
  }
}

describe('a listener with a certificate', () => {
  it('serves HTTP/1.1 over TLS, limits it, and tells the application that it was https', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await open(certificates, upstream.port);

    const texts: string[] = [];
    for (let i = 0; i < 6; i += 1) texts.push((await ask(sidecar.port, certificates)).text);

    assert.match(texts[0] ?? '', /^HTTP\/1.1 200 OK\r\n.*ok$/s);
    assert.match(texts[5] ?? '', /^HTTP\/1.1 429 /);
    assert.match(upstream.heads[0] ?? '', /^X-Forwarded-Proto: https\r$/m);
  });

  for (const workers of ['1', '2']) {
    it(`serves HTTP/2 to whom ALPN gives it, with --workers ${workers}`, async () => {
      await using certificates = await makeCertificates();
      await using upstream = await Http2Upstream.open((stream) => {
        stream.respond({}, { endStream: true });
      });
      await using sidecar = await open(certificates, upstream.port, ['--workers', workers]);
      const { ca } = certificates;
      await using client = new Http2Client(`https://127.0.0.1:${sidecar.port}`, { ca });

      const statuses: number[] = [];
      for (let i = 0; i < 6; i += 1) statuses.push((await client.ask({ ':path': '/' })).status);

      assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);
      assert.equal(upstream.seen[0]?.['x-forwarded-proto'], 'https');
      assert.equal(client.session.alpnProtocol, 'h2');
    });
  }

  const refused = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';
  for (const [spoken, { both, old, young }] of Object.entries({
    auto: { both: 'http/1.1', old: 'http/1.1', young: 'h2' },
    'http/1.1': { both: 'http/1.1', old: 'http/1.1', young: refused },
    h2: { both: 'h2', old: refused, young: 'h2' },
  })) {
    it(`agrees upon what the application speaks, --upstream-protocol ${spoken}, or refuses`, async () => {
      await using certificates = await makeCertificates();
      await using upstream = await AnsweringUpstream.open(OK);
      const flags = ['--upstream-protocol', spoken];
      await using sidecar = await open(certificates, upstream.port, flags);
      const agreed = async (...offered: string[]): Promise<unknown> => {
        const { ca } = certificates;
        const socket = connect({
          host: '127.0.0.1',
          port: sidecar.port,
          ca,
          ALPNProtocols: offered,
        });
        const outcome = await once(socket, 'secureConnect').then(
          () => socket.alpnProtocol,
          (error: unknown): unknown => Reflect.get(Object(error), 'code'),
        );
        socket.destroy();
        return outcome;
      };

      assert.equal(await agreed('h2', 'http/1.1'), both, 'a client of both');
      assert.equal(await agreed('http/1.1'), old, 'a client of HTTP/1.1');
      assert.equal(await agreed('h2'), young, 'a client of HTTP/2');
      assert.equal(await agreed(), false, 'a client that knows of no ALPN');
    });
  }

  it('with --tls-client-ca lets in whoever shows a certificate of it, and nobody else', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    const flags = ['--tls-client-ca', `${certificates.folder}/ca.crt`];
    await using sidecar = await open(certificates, upstream.port, flags);
    const { ca, cert, key } = certificates;

    const known = await ask(sidecar.port, { ca, cert, key });
    await assert.rejects(ask(sidecar.port, { ca }));

    assert.match(known.text, /^HTTP\/1.1 200 /);
    assert.equal(upstream.heads.length, 1);
    await eventually(
      'it is counted',
      async () => (await sidecar.metric('weir_tls_failures_total')) === 1,
    );
  });

  it('takes on a renewed certificate, and keeps the last good one while the files are not in order', async () => {
    await using certificates = await makeCertificates();
    await using renewed = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await open(certificates, upstream.port);
    const before = await ask(sidecar.port, certificates);

    await writeFile(path.join(certificates.folder, 'server.crt'), 'nonsense');
    await eventually('it is said', () =>
      Promise.resolve(sidecar.events('certificate').some(({ level }) => level === 'error')),
    );
    const during = await ask(sidecar.port, certificates);
    await copyPair(renewed, certificates);
    await eventually('it is taken on', () =>
      Promise.resolve(sidecar.events('certificate').some(({ level }) => level === 'info')),
    );
    const after = await ask(sidecar.port, renewed);

    assert.equal(during.serial, before.serial);
    assert.notEqual(after.serial, before.serial);
  });

  it('takes on a certificate that is not valid yet when it is, and says once that it waits', async () => {
    await using certificates = await makeCertificates();
    const cert = path.join(certificates.folder, 'server.crt');
    const paths = { cert, key: cert.replace('.crt', '.key'), clientCa: undefined };
    const told: string[] = [];
    let now = Date.now();
    await using files = await CertificateFiles.open(
      paths,
      {
        onRenewed: () => told.push('renewed'),
        onRefused: (error) => told.push(String((error as WeirError).details['problem'])),
      },
      { wallClock: () => now },
    );
    const from = new Date(Math.ceil(now / 1_000) * 1_000 + 3_600_000);
    await using next = await makeCertificates(from);
    await copyPair(next, certificates);

    await files.look();
    await files.look();
    now = from.getTime();
    await files.look();

    assert.deepEqual(told, [`it begins on ${from.toISOString()}`, 'renewed']);
  });

  it('says in HTTP/2 to whom ALPN gave it that too many connections are open', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using sidecar = await open(certificates, upstream.port, ['--max-connections', '1']);
    const { ca } = certificates;
    await using first = new Http2Client(`https://127.0.0.1:${sidecar.port}`, { ca });
    assert.equal((await first.ask({ ':path': '/' })).status, 200);

    const options = { host: '127.0.0.1', port: sidecar.port, ca, ALPNProtocols: ['h2'] };
    const said = framesIn(await buffer(connect(options)));

    assert.deepEqual(
      said.map(({ name }) => name),
      ['SETTINGS', 'WINDOW_UPDATE', 'GOAWAY'],
    );
    const goAway = uint32(0, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    assert.deepEqual(
      said.at(-1)?.payload,
      Buffer.concat([goAway, Buffer.from('too many connections')]),
    );
    assert.equal(await sidecar.metric('weir_connections_refused_total'), 1);
    assert.equal((await first.ask({ ':path': '/' })).status, 200);
  });

  it('lets go of a connection whose TLS breaks after the handshake', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await open(certificates, upstream.port);
    const { ca } = certificates;
    await ask(sidecar.port, certificates);
    const before = await descriptorsOf(sidecar);

    for (let i = 0; i < 20; i += 1) {
      const raw = connectTcp(sidecar.port, '127.0.0.1');
      const secure = connect({ socket: raw, ca, host: '127.0.0.1' });
      secure.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(secure, 'data');
      const gone = new Promise((resolve) => secure.once('error', resolve));
      raw.write(Buffer.alloc(100, 9));
      await gone;
      raw.end();
    }

    await eventually(
      'their descriptors are closed',
      async () => (await descriptorsOf(sidecar)) <= before,
    );
  });

  it('keeps no place for a client that leaves in the middle of the handshake', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    const flags = ['--max-connections', '3', '--header-timeout', '1h'];
    await using sidecar = await open(certificates, upstream.port, flags);

    for (let i = 0; i < 80; i += 1) {
      const client = connectTcp(sidecar.port, '127.0.0.1').on('error', () => undefined);
      await once(client, 'connect');
      client.end();
    }

    await eventually('another one is served', async () => {
      const { text } = await ask(sidecar.port, certificates).catch(() => ({ text: '' }));
      return text.startsWith('HTTP/1.1 200');
    });
  });

  it('that is closing waits for handshakes that have begun', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    const read = (name: string): Promise<string> =>
      readFile(path.join(certificates.folder, name), 'utf8');
    const tls = { cert: await read('server.crt'), key: await read('server.key') };
    await using fixture = await ProxyFixture.open(upstream, { tls });
    const { port } = fixture.proxy.address;
    const raw = connectTcp(port, '127.0.0.1');
    await eventually('it has come', () =>
      Promise.resolve(fixture.proxy.counters.connectionsTotal === 1),
    );

    const stopped = fixture.proxy.stop(30_000);
    fixture.advance(1_500);
    const secure = connect({ socket: raw, ca: certificates.ca, host: '127.0.0.1' });
    await once(secure, 'secureConnect');
    secure.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [answer] = (await once(secure, 'data')) as [Buffer];
    secure.end();

    assert.match(answer.toString('latin1'), /^HTTP\/1.1 200 /);
    await stopped;
  });

  it('agrees on TLS once in a connection', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await open(certificates, upstream.port);
    const { ca } = certificates;
    const options = { host: '127.0.0.1', port: sidecar.port, ca, maxVersion: 'TLSv1.2' } as const;
    const before = await descriptorsOf(sidecar);
    const socket = connect(options);
    await once(socket, 'secureConnect');

    const failed = once(socket, 'error') as Promise<[Error]>;
    socket.renegotiate({}, () => undefined);

    assert.match((await failed)[0].message, /no renegotiation/);
    await eventually(
      'the connection has gone',
      async () =>
        (await sidecar.metric('weir_connections')) === 0 &&
        (await descriptorsOf(sidecar)) <= before,
    );
  });

  it('leaves out whoever speaks no TLS, and goes on with the others', async () => {
    await using certificates = await makeCertificates();
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await open(certificates, upstream.port);

    await assert.rejects(fetch(`http://127.0.0.1:${sidecar.port}/`));

    assert.match((await ask(sidecar.port, certificates)).text, /^HTTP\/1.1 200 /);
  });
});

describe('a certificate that cannot be used', () => {
  const broken: Readonly<Record<string, (certificates: Certificates) => Promise<void>>> = {
    'is no PEM': ({ folder }) => writeFile(path.join(folder, 'server.crt'), 'nonsense'),
    'has the key of another one': async ({ folder }) => {
      await writeFile(
        path.join(folder, 'server.key'),
        await readFile(path.join(folder, 'client.key')),
      );
    },
    'is not valid yet': async (certificates) => {
      await using later = await makeCertificates(new Date(Date.now() + 3_600_000));
      await copyPair(later, certificates);
    },
    'is not there': ({ folder }) => rm(path.join(folder, 'server.crt')),
  };

  for (const [claim, breakIt] of Object.entries(broken)) {
    it(`ends the start with the file's name: it ${claim}`, async () => {
      await using certificates = await makeCertificates();
      await breakIt(certificates);

      await assert.rejects(open(certificates, 1), (error: Error) => {
        assert.match(error.message, /the certificate cannot be used/);
        assert.match(error.message, /server\.crt/);
        return true;
      });
    });
  }

  it('for its key ends the start with the name of the file of the key', async () => {
    await using certificates = await makeCertificates();
    await writeFile(path.join(certificates.folder, 'server.key'), 'nonsense');

    await assert.rejects(
      open(certificates, 1),
      /server\.key\s+problem: there is no private key in PEM form, unencrypted/,
    );
  });

  it('that is half given is a mistake of the command line', async () => {
    await assert.rejects(
      SidecarProcess.open({
        ...{ files: { 'five.yaml': POLICY }, upstreamPort: 1 },
        flags: ['--tls-cert', 'a.crt'],
      }),
      /--tls-key/,
    );
  });
});
