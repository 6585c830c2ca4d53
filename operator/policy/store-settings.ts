// How sidecars reach the store, read from a Secret. A Secret that is not in order is told by the name of its key and
// never by what it holds; the last settings that were good stay.
import type { WeirError } from '../../contract/errors.ts';
import { MAX_PARTITIONS, parseStoreSettings } from '../../contract/store-settings.ts';
import type { SidecarSettings } from '../../contract/stream.ts';

export type StoreSettings = NonNullable<SidecarSettings['store']>;

export type StoreState =
  /** No Secret is named in the operator's settings: failure modes decide. */
  | { readonly kind: 'none' }
  | { readonly kind: 'configured' }
  /** The Secret is missing or faulty; `isKept`: the last good settings are still in use. */
  | { readonly kind: 'faulty'; readonly message: string; readonly isKept: boolean };

export type StoreSecretOutcome =
  | { readonly kind: 'settings'; readonly settings: StoreSettings }
  /** `message` names Secret and key, and holds no value. */
  | { readonly kind: 'faulty'; readonly message: string };

export interface SecretData {
  /** `namespace/name`. */
  readonly name: string;
  /** Base64, as the API gives it. */
  readonly data: Readonly<Record<string, string>>;
}

/** A key or certificate chain; what is larger is not one. */
export const PEM_BYTES_MAX = 65_536;
/** Longer than any address with a password of 512 characters. */
export const URL_LENGTH_MAX = 2_048;
const DEFAULT_PORT = '6379';
/** As the sidecar reads it: one or several hosts, TLS by scheme, no query and no fragment. */
const URL_FORM = /^(redis|rediss)(\+(sentinel|cluster))?:\/\/[^\s?#/]+(\/[^\s?#]*)?$/i;
const HOST_FORM = /^(\[?[0-9A-Fa-f:.]+\]?|[^\s:[\]/@,?#]+)$/;

/** `url`, or `host` with `port`, `username`, `password`, `tls`; and `ca.crt`, `tls.crt`, `tls.key`, `partitions`. */
export function readStoreSecret(secret: SecretData): StoreSecretOutcome {
  const reader = new SecretReader(secret);
  const url = urlOf(reader);
  const tls = tlsOf(reader);
  if (tls !== undefined && reader.fault === undefined && !/^rediss/i.test(url)) {
    reader.refuse('url', 'has TLS files beside it: begin it with rediss, or remove them');
  }
  const partitions = partitionsOf(reader);
  const settings = {
    url,
    ...(partitions === undefined ? {} : { partitions }),
    ...(tls === undefined ? {} : { tls }),
  };
  if (reader.fault === undefined) reader.tryAsSidecar(settings);
  if (reader.fault !== undefined) return { kind: 'faulty', message: reader.fault };
  return { kind: 'settings', settings };
}

class SecretReader {
  /** The first one. */
  fault: string | undefined;
  readonly #secret: SecretData;

  constructor(secret: SecretData) {
    this.#secret = secret;
  }

  /** Undefined = not there, or empty. */
  text(key: string): string | undefined {
    const encoded = this.#secret.data[key];
    if (encoded === undefined) return undefined;
    const text = Buffer.from(encoded, 'base64').toString('utf8').trim();
    return text === '' ? undefined : text;
  }

  /** The reader of the sidecars has the last word; what it found is not told, since it may hold a password. */
  tryAsSidecar(settings: StoreSettings): void {
    try {
      parseStoreSettings(settings);
    } catch (error) {
      const { right } = (error as WeirError).details; // it throws nothing else
      this.refuse('url', `is not an address that sidecars take; right is ${String(right)}`);
    }
  }

  refuse(key: string, problem: string): void {
    this.fault ??= `Secret ${this.#secret.name}, key ${key}: ${problem}`;
  }
}

function urlOf(reader: SecretReader): string {
  const written = reader.text('url');
  if (written === undefined) return urlFromParts(reader);
  if (reader.text('host') !== undefined) reader.refuse('host', 'remove it, or remove url');
  if (!URL_FORM.test(written)) {
    reader.refuse('url', 'is not an address such as redis://redis.shop:6379 or rediss://…');
  }
  if (written.length > URL_LENGTH_MAX) {
    reader.refuse('url', `is longer than ${String(URL_LENGTH_MAX)} characters`);
  }
  return written;
}

function urlFromParts(reader: SecretReader): string {
  const host = reader.text('host');
  if (host === undefined) {
    reader.refuse('url', 'is missing: write url, or host with port, username and password');
    return '';
  }
  const port = reader.text('port') ?? DEFAULT_PORT;
  if (!isPort(port)) reader.refuse('port', 'is not a number from 1 to 65535');
  const scheme = schemeOf(reader);
  const user = encodeURIComponent(reader.text('username') ?? '');
  const password = reader.text('password');
  const login = password === undefined ? user : `${user}:${encodeURIComponent(password)}`;
  if (!HOST_FORM.test(host)) reader.refuse('host', 'is not a host name or an address');
  return `${scheme}://${login === '' ? '' : `${login}@`}${bracketed(host)}:${port}`;
}

function schemeOf(reader: SecretReader): 'redis' | 'rediss' {
  const written = reader.text('tls');
  if (written !== undefined && written !== 'true' && written !== 'false') {
    reader.refuse('tls', 'is neither true nor false');
  }
  return written === 'true' ? 'rediss' : 'redis';
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

function isPort(text: string): boolean {
  return /^[1-9][0-9]{0,4}$/.test(text) && Number(text) <= 65_535;
}

const PEM_KEYS = [
  ['ca', 'ca.crt', 'CERTIFICATE'],
  ['cert', 'tls.crt', 'CERTIFICATE'],
  ['key', 'tls.key', 'PRIVATE KEY'],
] as const;

function tlsOf(reader: SecretReader): StoreSettings['tls'] {
  const texts: { ca?: string; cert?: string; key?: string } = {};
  for (const [field, key, label] of PEM_KEYS) {
    const text = reader.text(key);
    if (text === undefined) continue;
    if (!isPem(text, label)) reader.refuse(key, `is not PEM with a ${label}`);
    texts[field] = text;
  }
  if (texts.cert !== undefined && texts.key === undefined) {
    reader.refuse('tls.key', 'is missing beside tls.crt');
  }
  if (texts.key !== undefined && texts.cert === undefined) {
    reader.refuse('tls.crt', 'is missing beside tls.key');
  }
  return Object.keys(texts).length === 0 ? undefined : texts;
}

function isPem(text: string, label: string): boolean {
  return (
    text.length <= PEM_BYTES_MAX &&
    text.startsWith('-----BEGIN ') &&
    text.includes(`${label}-----`) &&
    text.includes('-----END ')
  );
}

function partitionsOf(reader: SecretReader): number | undefined {
  const text = reader.text('partitions');
  if (text === undefined) return undefined;
  const count = /^[1-9][0-9]*$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_PARTITIONS) {
    reader.refuse('partitions', `is not a number from 1 to ${String(MAX_PARTITIONS)}`);
    return undefined;
  }
  return count;
}
