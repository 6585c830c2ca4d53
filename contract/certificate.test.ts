import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { type Certificates, makeCertificates } from '../test/support/certificates.ts';
import { checkAuthorities, checkPair, validityOf } from './certificate.ts';
import { WeirError } from './errors.ts';

const DAY_MS = 86_400_000;

async function serverPair({ folder }: Certificates): Promise<{ cert: string; key: string }> {
  const read = (name: string): Promise<string> => readFile(path.join(folder, name), 'utf8');
  return { cert: await read('server.crt'), key: await read('server.key') };
}

function problemOf(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    assert(error instanceof WeirError);
    assert.deepEqual([error.code, error.details['what']], ['CERTIFICATE_INVALID', 'tls.crt']);
    return error.details['problem'];
  }
  return undefined;
}

describe('certificates of authorities', () => {
  it('are taken as a whole, with what people write between them', async () => {
    await using one = await makeCertificates();
    await using other = await makeCertificates();
    const text = `# one\r\n${one.ca}\n\n# other - the next one\n${other.ca}`;

    assert.equal(
      problemOf(() => {
        checkAuthorities(text, 'tls.crt');
      }),
      undefined,
    );
  });

  for (const [claim, spoil, problem] of [
    ['holds none', () => 'nothing', /^it holds no certificate/],
    ['breaks off in the second', (a: string, b: string) => a + b.slice(0, 200), /breaks off/],
    [
      'has a second one that is none',
      (a: string, b: string) => a + b.replace('MII', 'MIX'),
      /no certificate/,
    ],
    ['begins another before one ends', (a: string, b: string) => a.slice(0, 200) + b, /breaks off/],
  ] as const) {
    it(`are refused in a text that ${claim}`, async () => {
      await using one = await makeCertificates();
      await using other = await makeCertificates();

      const said = problemOf(() => {
        checkAuthorities(spoil(one.ca, other.ca), 'tls.crt');
      });

      assert.match(String(said), problem);
    });
  }
});

describe('a certificate and its key', () => {
  it('serve together from its beginning to its end', async () => {
    await using certificates = await makeCertificates();
    const pair = await serverPair(certificates);
    const { notBeforeMs, notAfterMs } = validityOf(pair.cert, 'tls.crt');

    assert(notBeforeMs < Date.now() && notAfterMs > Date.now());
    assert.equal(
      problemOf(() => {
        checkPair(pair, 'tls.crt', Date.now());
      }),
      undefined,
    );
    assert.equal(
      problemOf(() => {
        checkPair(pair, 'tls.crt', notBeforeMs);
      }),
      undefined,
    );
    assert.equal(
      problemOf(() => {
        checkPair(pair, 'tls.crt', notBeforeMs - 1);
      }),
      `it begins on ${new Date(notBeforeMs).toISOString()}`,
    );
    assert.equal(
      problemOf(() => {
        checkPair(pair, 'tls.crt', notAfterMs + DAY_MS);
      }),
      `it ended on ${new Date(notAfterMs).toISOString()}`,
    );
    assert.equal(
      problemOf(() => {
        checkPair(pair, 'tls.crt');
      }),
      undefined,
    );
  });

  it('are refused in words that never hold the key', async () => {
    await using certificates = await makeCertificates();
    const pair = await serverPair(certificates);
    const check = (given: Partial<typeof pair>): unknown =>
      problemOf(() => {
        checkPair({ ...pair, ...given }, 'tls.crt', Date.now());
      });

    assert.equal(check({ cert: 'nonsense' }), 'it is no certificate in PEM form');
    assert.equal(check({ key: 'nonsense' }), 'there is no private key in PEM form, unencrypted');
    assert.equal(
      check({ key: certificates.key }),
      'the private key is not the one of the certificate',
    );
  });
});
