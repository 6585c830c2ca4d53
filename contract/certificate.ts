// What a PEM text says, and whether it can serve: read by Node itself.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { WeirError } from './errors.ts';

/** When a certificate begins and ends to be valid, in milliseconds since the epoch. */
export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Of the first certificate in the text. Throws CERTIFICATE_INVALID; `what` names it for a person. */
export function validityOf(pem: string, what: string): Validity {
  const { validFromDate, validToDate } = parseCertificate(pem, what);
  return { notBeforeMs: validFromDate.getTime(), notAfterMs: validToDate.getTime() };
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Throws CERTIFICATE_INVALID unless every certificate of the text can be read, and there is one. OpenSSL leaves out what
 * follows one that cannot be: half of a bundle would be in force, and nobody told.
 */
export function checkAuthorities(pem: string, what: string): void {
  const blocks = pem.match(BLOCK) ?? [];
  const begun = pem.split(BEGIN).length - 1;
  if (blocks.length === 0 || blocks.length !== begun) {
    const problem = begun === 0 ? 'it holds no certificate' : 'a certificate in it breaks off';
    throw invalid(what, `${problem}: CA certificates in PEM form are wanted`);
  }
  for (const block of blocks) parseCertificate(block, what);
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Throws CERTIFICATE_INVALID when the key is not the certificate's, or the certificate is not valid at `nowMs`; undefined =
 * whenever it is. `what` names the two for a person, or where both come from.
 */
export function checkPair({ cert, key }: Pair, what: string | Pair, nowMs?: number): void {
  const names = typeof what === 'string' ? { cert: what, key: what } : what;
  const certificate = parseCertificate(cert, names.cert);
  if (!certificate.checkPrivateKey(parseKey(key, names.key))) {
    const which = typeof what === 'string' ? 'the private key' : `the private key of ${what.key}`;
    throw invalid(names.cert, `${which} is not the one of the certificate`);
  }
  if (nowMs !== undefined) checkTime(certificate, names.cert, nowMs);
}

function checkTime(
  { validFromDate, validToDate }: X509Certificate,
  what: string,
  nowMs: number,
): void {
  if (validFromDate.getTime() > nowMs) {
    throw invalid(what, `it begins on ${validFromDate.toISOString()}`);
  }
  if (validToDate.getTime() <= nowMs) {
    throw invalid(what, `it ended on ${validToDate.toISOString()}`);
  }
}

function parseCertificate(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw invalid(what, 'it is no certificate in PEM form', cause);
  }
}

function parseKey(pem: string, what: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(pem);
  } catch {
    // The cause may quote the key.
    throw invalid(what, 'there is no private key in PEM form, unencrypted');
  }
}

/** CERTIFICATE_INVALID; `what` names the file or the entry. */
export function invalid(what: string, problem: string, cause?: unknown): WeirError {
  return new WeirError('CERTIFICATE_INVALID', { what, problem }, { cause });
}
