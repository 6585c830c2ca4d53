// A certificate authority of the test's own, a server certificate for 127.0.0.1 and a client certificate: Node can
// read certificates but not make them, and not every machine has an openssl.
// x509 wants a Reflect with metadata before it is loaded.
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
  type Extension,
  type X509Certificate,
} from '@peculiar/x509';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Certificates extends AsyncDisposable {
  readonly folder: string;
  /** PEM texts. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Writes `ca.crt`, `server.crt`, `server.key`, `client.crt` and `client.key` to a folder of their own. The server's is valid
 * from a day ago, so that no clock is too early for it, or from `serverFrom`.
 */
export async function makeCertificates(serverFrom?: Date): Promise<Certificates> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-tls-'));
  const ca = await makeAuthority();
  const server = await sign(
    ca,
    'CN=server',
    [
      new SubjectAlternativeNameExtension([
        { type: 'ip', value: '127.0.0.1' },
        { type: 'dns', value: 'redis.test' },
      ]),
    ],
    serverFrom,
  );
  const client = await sign(ca, 'CN=client', [
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
  ]);
  const texts = {
    'ca.crt': pem(ca.certificate),
    ...{ 'server.crt': server.cert, 'server.key': server.key },
    ...{ 'client.crt': client.cert, 'client.key': client.key },
  };
  for (const [name, text] of Object.entries(texts)) await writeFile(path.join(folder, name), text);
  return {
    folder,
    ca: texts['ca.crt'],
    cert: client.cert,
    key: client.key,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;

export interface Authority {
  readonly certificate: X509Certificate;
  readonly keys: CryptoKeyPair;
}

/** A self-signed authority of its own. */
export async function makeAuthority(): Promise<Authority> {
  const keys = await makeKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: 'CN=ca',
    signingAlgorithm: algorithm,
    keys,
    // Told apart by their keys: two authorities of one name may stand in one bundle.
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate, keys };
}

/** Certificate and private key as PEM texts. `subject` as RFC 4514 writes it, e.g. `CN=server`. */
export async function sign(
  authority: Authority,
  subject: string,
  extensions: Extension[],
  notBefore?: Date,
): Promise<{ readonly cert: string; readonly key: string }> {
  const keys = await makeKeys();
  const certificate = await X509CertificateGenerator.create({
    ...validity(notBefore),
    subject,
    issuer: authority.certificate.subject,
    publicKey: keys.publicKey,
    signingKey: authority.keys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      ...extensions,
      await AuthorityKeyIdentifierExtension.create(authority.keys.publicKey),
    ],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: pem(certificate), key: `${PemConverter.encode(key, 'PRIVATE KEY')}\n` };
}

function makeKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function validity(notBefore: Date = new Date(Date.now() - DAY_MS)): {
  readonly notBefore: Date;
  readonly notAfter: Date;
} {
  return { notBefore, notAfter: new Date(Date.now() + 2 * DAY_MS) };
}

export function pem(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}
