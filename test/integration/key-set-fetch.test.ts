import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import path from 'node:path';
import { describe, it } from 'node:test';
import {
  openKeySetFetch,
  type KeySetFetchOptions,
} from '../../operator/policy-controllers/key-set-fetch.ts';
import { addressFault } from '../../operator/policy/key-set-address.ts';
import { KEY_SET_BYTES_MAX, type FetchOutcome } from '../../operator/policy/key-set-plan.ts';
import { makeCertificates } from '../support/certificates.ts';
import { listenOnLoopback } from '../support/loopback.ts';

const { signal } = new AbortController();
/** In the certificate of the test's server. */
const HOST = 'redis.test';
const HERE = async (): Promise<readonly { address: string; family: number }[]> => [
  { address: '127.0.0.1', family: 4 },
];

interface Issuer extends AsyncDisposable {
  fetch(options?: Partial<KeySetFetchOptions>, host?: string): Promise<FetchOutcome>;
  readonly connections: () => number;
}

async function openIssuer(answer: RequestListener): Promise<Issuer> {
  const certificates = await makeCertificates();
  const file = (name: string): Promise<string> =>
    readFile(path.join(certificates.folder, name), 'utf8');
  const server = createServer({ cert: await file('server.crt'), key: await file('server.key') });
  let connections = 0;
  server.on('request', answer).on('connection', () => (connections += 1));
  const port = await listenOnLoopback(server);
  return {
    connections: () => connections,
    fetch: (options = {}, host = HOST) =>
      openKeySetFetch({
        allowedHosts: [],
        ca: certificates.ca,
        resolve: HERE,
        // The issuer of a test is on this host.
        judge: () => undefined,
        ...options,
      })(`https://${host}:${String(port)}/jwks`, signal),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await certificates[Symbol.asyncDispose]();
    },
  };
}

describe('fetching a key set', () => {
  it('takes the text and how long it is fresh', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.setHeader('cache-control', 'max-age=60').end('{"keys": []}');
    });

    assert.deepEqual(await issuer.fetch(), {
      kind: 'fetched',
      text: '{"keys": []}',
      cacheControl: 'max-age=60',
    });
  });

  it('follows no redirect', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.writeHead(302, { location: 'https://169.254.169.254/' }).end();
    });

    const outcome = await issuer.fetch();

    assert.equal(outcome.kind, 'unavailable');
    assert.match('message' in outcome ? outcome.message : '', /redirect \(302\)/);
    assert.equal(issuer.connections(), 1);
  });

  it('takes a text of the largest size, and none that is larger by a byte', async () => {
    let size = KEY_SET_BYTES_MAX;
    await using issuer = await openIssuer((_request, response) => {
      response.end('x'.repeat(size));
    });

    const largest = await issuer.fetch();
    size += 1;
    const larger = await issuer.fetch();

    assert.deepEqual([largest.kind, larger.kind], ['fetched', 'unavailable']);
  });

  it('does not connect where one of the addresses of a name is this host', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.end('secret');
    });
    const resolve = async (): Promise<readonly { address: string; family: number }[]> => [
      { address: '93.184.216.34', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];

    const outcome = await issuer.fetch({ resolve, judge: addressFault });

    assert.deepEqual(outcome, {
      kind: 'refused',
      message: 'resolves to an address that names this host (loopback)',
    });
    assert.equal(issuer.connections(), 0);
  });

  it('does not connect to an address in the URL that is this host', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.end('secret');
    });

    const outcome = await issuer.fetch({}, '127.0.0.1');

    assert.deepEqual([outcome.kind, issuer.connections()], ['refused', 0]);
  });

  it('connects to the address that it looked at, and looks once', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.end('{}');
    });
    let asked = 0;
    const looked: string[] = [];
    const resolve = async (): Promise<readonly { address: string; family: number }[]> => {
      asked += 1;
      return [{ address: asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }];
    };
    const judge = (address: string): undefined => {
      looked.push(address);
      return undefined;
    };

    const outcome = await issuer.fetch({ resolve, judge });

    assert.deepEqual([outcome.kind, asked, looked], ['fetched', 1, ['127.0.0.1']]);
  });

  it('trusts no certificate of another authority', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.end('{}');
    });
    await using other = await makeCertificates();

    const outcome = await issuer.fetch({ ca: other.ca });

    assert.equal(outcome.kind, 'unavailable');
    assert.equal('message' in outcome && outcome.message.includes('('), true);
  });

  it('ends when the issuer does not', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.write('{');
    });

    assert.deepEqual(await issuer.fetch({ timeoutMs: 200 }), {
      kind: 'unavailable',
      message: 'does not answer in time',
    });
  });

  it('says what was answered by its status only', async () => {
    await using issuer = await openIssuer((_request, response) => {
      response.writeHead(500).end('stack trace of the issuer');
    });

    assert.deepEqual(await issuer.fetch(), { kind: 'unavailable', message: 'answers 500' });
  });

  it('asks nothing but https, and shows no password', async () => {
    const fetch = openKeySetFetch({ allowedHosts: [] });

    const kinds = await Promise.all(
      ['http://id.example.com/', 'https://u:p@id.example.com/', 'nonsense'].map(
        async (uri) => (await fetch(uri, signal)).kind,
      ),
    );

    assert.deepEqual(kinds, ['refused', 'refused', 'refused']);
  });
});
