// The Secret that holds our authority: the one truth of all replicas.
//   ca.crt, ca.key            signs
//   ca-next.crt, ca-next.key  is trusted already, will sign
//   ca-previous.crt           is trusted still
//   promoted-at               ISO 8601: since when ca.crt signs
import { Buffer } from 'node:buffer';
import { checkPair, invalid, validityOf } from '../../contract/certificate.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import type { KeyPair } from './authority.ts';
import type { RotationState } from './rotation.ts';

export const secretResource: Resource = {
  ...{ group: '', version: 'v1', plural: 'secrets', kind: 'Secret', isNamespaced: true },
};

export const AUTHORITY_SECRET = 'weir-ca';

export interface SecretObject extends KubeObject {
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface Authorities {
  readonly current: KeyPair;
  readonly next?: KeyPair;
  /** PEM text. */
  readonly previous?: string;
  readonly promotedAtMs?: number;
}

export function encodeAuthorities(authorities: Authorities): Readonly<Record<string, string>> {
  const { current, next, previous, promotedAtMs } = authorities;
  const texts = {
    'ca.crt': current.cert,
    'ca.key': current.key,
    ...(next === undefined ? {} : { 'ca-next.crt': next.cert, 'ca-next.key': next.key }),
    ...(previous === undefined ? {} : { 'ca-previous.crt': previous }),
    ...(promotedAtMs === undefined ? {} : { 'promoted-at': new Date(promotedAtMs).toISOString() }),
  };
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  );
}

/** Throws CERTIFICATE_INVALID naming the entry; an authority that is over is no fault, the plan replaces it. */
export function decodeAuthorities({ data = {} }: SecretObject): Authorities {
  const text = (name: string): string | undefined => {
    const value = data[name];
    return value === undefined || value === ''
      ? undefined
      : Buffer.from(value, 'base64').toString();
  };
  const pair = (cert = '', key = '', name = ''): KeyPair => {
    checkPair({ cert, key }, `${name} in Secret ${AUTHORITY_SECRET}`);
    return { cert, key };
  };
  const [nextCert, previous] = [text('ca-next.crt'), text('ca-previous.crt')];
  const promotedAtMs = Date.parse(text('promoted-at') ?? '');
  if (previous !== undefined && Number.isNaN(promotedAtMs)) {
    throw invalid(`promoted-at in Secret ${AUTHORITY_SECRET}`, 'it is no time');
  }
  return {
    current: pair(text('ca.crt'), text('ca.key'), 'ca.crt'),
    ...(nextCert === undefined ? {} : { next: pair(nextCert, text('ca-next.key'), 'ca-next.crt') }),
    ...(previous === undefined ? {} : { previous }),
    ...(Number.isNaN(promotedAtMs) ? {} : { promotedAtMs }),
  };
}

export function rotationStateOf({
  current,
  next,
  previous,
  promotedAtMs,
}: Authorities): RotationState {
  return {
    current: validityOf(current.cert, 'ca.crt'),
    ...(next === undefined ? {} : { next: validityOf(next.cert, 'ca-next.crt') }),
    ...(previous === undefined ? {} : { previous: validityOf(previous, 'ca-previous.crt') }),
    ...(promotedAtMs === undefined ? {} : { promotedAtMs }),
  };
}

/** PEM texts of everything that is to be trusted. */
export function trustOf({ current, next, previous }: Authorities): string {
  return [current.cert, next?.cert, previous].filter((one) => one !== undefined).join('');
}
