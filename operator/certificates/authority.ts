// Makes certificates: an authority of our own and what it signs. The only place that knows the X.509 library.
// x509 wants a Reflect with metadata before it is loaded.
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { isIP } from 'node:net';
import { CA_LIFE_MS, LEAF_LIFE_MS } from './rotation.ts';

/** PEM texts. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface LeafRequest {
  /** Host names and addresses; never a common name alone, which no client looks at any more. */
  readonly names: readonly string[];
  readonly nowMs: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The other side's clock may be late; five minutes is what Kerberos allows, and NTP keeps well below. */
const BACKDATED_MS = 300_000;

/** A self-signed authority, valid for `CA_LIFE_MS`. */
export async function createAuthority(nowMs: number): Promise<KeyPair> {
  const keys = await makeKeys();
  const { serialNumber, label } = makeSerial();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    // Two authorities are valid at once during a rotation: each needs a name of its own to be found by.
    name: `CN=weir-ca-${label}`,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + CA_LIFE_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      // It signs leaves only.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pemOf(certificate), key: await exportKey(keys.privateKey) };
}

/** A server certificate, valid for `LEAF_LIFE_MS` and never longer than its authority. */
export async function issueLeaf(authority: KeyPair, request: LeafRequest): Promise<KeyPair> {
  const issuer = new X509Certificate(authority.cert);
  const signingKey = await importKey(authority.key);
  const keys = await makeKeys();
  const { serialNumber } = makeSerial();
  const end = Math.min(request.nowMs + LEAF_LIFE_MS, issuer.notAfter.getTime());
  const certificate = await X509CertificateGenerator.create({
    serialNumber,
    subject: 'CN=weir-operator',
    issuer: issuer.subject,
    notBefore: new Date(Math.max(request.nowMs - BACKDATED_MS, issuer.notBefore.getTime())),
    notAfter: new Date(end),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        request.names.map((value) => ({ type: typeOf(value), value })),
      ),
      await AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { cert: pemOf(certificate), key: await exportKey(keys.privateKey) };
}

function typeOf(name: string): 'dns' | 'ip' {
  return isIP(name) === 0 ? 'dns' : 'ip';
}

function makeKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

/** A serial is a positive integer: the first bit stays clear. */
function makeSerial(): { readonly serialNumber: string; readonly label: string } {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return { serialNumber: `4${hex.slice(1)}`, label: hex.slice(0, 8) };
}

async function exportKey(key: CryptoKey): Promise<string> {
  return `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;
}

function importKey(pem: string): Promise<CryptoKey> {
  return crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), ALGORITHM, false, [
    'sign',
  ]);
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}
