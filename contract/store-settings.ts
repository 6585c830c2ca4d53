// Where the store is, as an operator writes it: one URL, and what a URL should not hold.
// `redis://user@host:6379/0` · `rediss://…` (TLS) · `redis+sentinel://host:26379,host:26379/<master name>[/<db>]` ·
// `redis+cluster://host:6379,host:6379` · `rediss+sentinel://…`, `rediss+cluster://…`.
import { WeirError } from './errors.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Contents of PEM files, and the name the server's certificate must carry when it is not the host. */
export interface TlsSettings {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
}

export interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

export type StoreSettings = CommonStoreSettings & AnyKindOfSettings;

type AnyKindOfSettings =
  | { readonly kind: 'single'; readonly address: HostPort; readonly database: number }
  | {
      readonly kind: 'sentinel';
      readonly addresses: readonly HostPort[];
      readonly masterName: string;
      readonly database: number;
    }
  | { readonly kind: 'cluster'; readonly addresses: readonly HostPort[] };

type KindOfSettings<Kind extends string> = Extract<AnyKindOfSettings, { readonly kind: Kind }>;

interface CommonStoreSettings {
  readonly credentials: Credentials;
  /** For the sentinels, when they ask for their own. */
  readonly sentinelCredentials: Credentials;
  /** Absent = no TLS. */
  readonly tls?: TlsSettings;
  /** Hash tags a policy is spread over in a Cluster, 1..1 024. */
  readonly partitions: number;
}

export interface StoreSettingsInput {
  readonly url: string;
  /** These win over what the URL says. */
  readonly credentials?: Credentials;
  readonly sentinelCredentials?: Credentials;
  /** Allowed only with a `rediss` URL. */
  readonly tls?: TlsSettings;
  readonly partitions?: number;
}

/** More tags than this would leave no bucket beside another: a Cluster has at most 1 000 nodes. */
export const MAX_PARTITIONS = 1_024;
const MAX_ADDRESSES = 64;
const SCHEME = /^(redis|rediss)(?:\+(sentinel|cluster))?:\/\/(.*)$/i;
const DEFAULT_PORT = 6379;
const DEFAULT_SENTINEL_PORT = 26_379;

/** Reads the settings. Throws WeirError STORE_SETTINGS_INVALID that names what is wrong and what would be right. */
export function parseStoreSettings(input: StoreSettingsInput): StoreSettings {
  const [, scheme, kind, rest] = SCHEME.exec(input.url) ?? [];
  if (scheme === undefined || rest === undefined) {
    throw invalid(
      'url',
      `no known scheme in ${quote(redact(input.url))}`,
      'redis://host:6379, rediss://…, redis+sentinel://… or redis+cluster://…',
    );
  }
  const parts = splitUrl(rest);
  const common = {
    credentials: { ...parts.credentials, ...input.credentials },
    sentinelCredentials: input.sentinelCredentials ?? {},
    partitions: checkPartitions(input.partitions ?? 1),
    ...tlsOf(scheme.toLowerCase() === 'rediss', input.tls),
  };
  if (kind?.toLowerCase() === 'sentinel') return { ...common, ...sentinelFrom(parts) };
  if (kind?.toLowerCase() === 'cluster') return { ...common, ...clusterFrom(parts) };
  return { ...common, ...singleFrom(parts) };
}

function sentinelFrom({ authority, path }: UrlParts): KindOfSettings<'sentinel'> {
  const [masterName = '', database] = path;
  if (masterName === '') {
    throw invalid('url', 'no master name', 'redis+sentinel://host:26379/<master name>');
  }
  const addresses = parseAddresses(authority, DEFAULT_SENTINEL_PORT);
  return { kind: 'sentinel', addresses, masterName, database: parseDatabase(database) };
}

function clusterFrom({ authority, path }: UrlParts): KindOfSettings<'cluster'> {
  if (path[0] !== undefined && path[0] !== '0') {
    throw invalid('url', `database ${quote(path[0])}`, 'a Cluster has only database 0');
  }
  return { kind: 'cluster', addresses: parseAddresses(authority, DEFAULT_PORT) };
}

function singleFrom({ authority, path }: UrlParts): KindOfSettings<'single'> {
  const [address, ...others] = parseAddresses(authority, DEFAULT_PORT);
  if (address === undefined || others.length > 0) {
    throw invalid(
      'url',
      `${others.length + 1} hosts`,
      'one host, or redis+cluster:// or redis+sentinel:// for several',
    );
  }
  return { kind: 'single', address, database: parseDatabase(path[0]) };
}

interface UrlParts {
  readonly authority: string;
  readonly path: readonly string[];
  readonly credentials: Credentials;
}

function splitUrl(rest: string): UrlParts {
  if (/[?#]/.test(rest)) {
    throw invalid(
      'url',
      'a query or fragment',
      'settings of their own; a ? or # in a password is written %3F or %23',
    );
  }
  const at = rest.lastIndexOf('@');
  const [hosts = '', ...path] = rest.slice(at + 1).split('/');
  const userInfo = at < 0 ? '' : rest.slice(0, at);
  const colon = userInfo.indexOf(':');
  const username = decode(colon < 0 ? userInfo : userInfo.slice(0, colon));
  const password = colon < 0 ? '' : decode(userInfo.slice(colon + 1));
  return {
    authority: hosts,
    path: path.filter((segment) => segment !== '').map(decode),
    credentials: {
      ...(username === '' ? {} : { username }),
      ...(password === '' ? {} : { password }),
    },
  };
}

function parseAddresses(authority: string, defaultPort: number): HostPort[] {
  const texts = authority.split(',');
  if (texts.length > MAX_ADDRESSES) {
    throw invalid('url', `${texts.length} hosts`, `at most ${MAX_ADDRESSES}`);
  }
  return texts.map((text) => parseAddress(text, defaultPort));
}

function parseAddress(text: string, defaultPort: number): HostPort {
  const [, ipv6, name, portText] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = ipv6 ?? name;
  if (host === undefined) {
    throw invalid('url', `host ${quote(text)}`, 'host, host:port or [IPv6]:port');
  }
  const port = portText === undefined ? defaultPort : Number(portText);
  if (port < 1 || port > 65_535) throw invalid('url', `port ${port}`, '1..65535');
  return { host, port };
}

function parseDatabase(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d{1,4}$/.test(text)) throw invalid('url', `database ${quote(text)}`, 'a number');
  return Number(text);
}

function checkPartitions(partitions: number): number {
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > MAX_PARTITIONS) {
    throw invalid('partitions', String(partitions), `1..${MAX_PARTITIONS}`);
  }
  return partitions;
}

function tlsOf(isTls: boolean, tls: TlsSettings | undefined): { readonly tls?: TlsSettings } {
  if (!isTls) {
    if (tls !== undefined) throw invalid('url', 'TLS settings with a plain scheme', 'rediss://…');
    return {};
  }
  if ((tls?.cert === undefined) !== (tls?.key === undefined)) {
    throw invalid(
      'tls',
      'a client certificate without its key, or the key alone',
      'both or neither',
    );
  }
  return { tls: tls ?? {} };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw invalid('url', 'a broken percent escape', '%25 for a percent sign', cause);
  }
}

/** Passwords never reach a message. */
function redact(url: string): string {
  return url.replace(/\/\/[^/]*@/, '//***@').slice(0, 100);
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function invalid(setting: string, wrong: string, right: string, cause?: unknown): WeirError {
  return new WeirError('STORE_SETTINGS_INVALID', { setting, wrong, right }, { cause });
}
