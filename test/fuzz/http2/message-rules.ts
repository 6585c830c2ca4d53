// What the fields of a message may be (RFC 9113 §8, RFC 9110 §5, RFC 8441), for the oracle. A text is what is wrong.
import type { Line } from './hpack-tables.ts';

/** What a request says in its fields. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** Of an extended CONNECT. */
  readonly protocol: string | undefined;
  readonly contentLength: number | undefined;
}

/** What a response says in its fields. */
export interface ResponseHead {
  readonly status: number;
  readonly contentLength: number | undefined;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;
const PATH = /^\/[!"$-~\x80-\xff]*$/;
const LENGTH = /^\d{1,16}$/;
const STATUS = /^[1-9]\d\d$/;
/** They speak of one connection (RFC 9113 §8.2.2). */
const OF_ONE_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'],
]);
const OF_REQUESTS: ReadonlySet<string> = new Set([
  ...[':method', ':scheme', ':path', ':authority', ':protocol'],
]);

export function readRequestHead(lines: readonly Line[]): RequestHead | string {
  const pseudo = pseudoFields(lines, OF_REQUESTS);
  const flaw = typeof pseudo === 'string' ? pseudo : flawOfLines(regular(lines));
  if (typeof pseudo === 'string' || flaw !== undefined) return flaw ?? '';
  const contentLength = lengthIn(lines);
  if (typeof contentLength === 'string') return contentLength;
  const wrong = flawOfTarget(pseudo) ?? flawOfHost(pseudo.get(':authority'), lines);
  if (wrong !== undefined) return wrong;
  return {
    method: pseudo.get(':method') ?? '',
    path: pseudo.get(':path') ?? '',
    protocol: pseudo.get(':protocol'),
    contentLength,
  };
}

export function readResponseHead(lines: readonly Line[]): ResponseHead | string {
  const pseudo = pseudoFields(lines, new Set([':status']));
  const flaw = typeof pseudo === 'string' ? pseudo : flawOfLines(regular(lines));
  if (typeof pseudo === 'string' || flaw !== undefined) return flaw ?? '';
  const status = pseudo.get(':status');
  if (status === undefined || !STATUS.test(status)) return 'no status';
  const contentLength = lengthIn(lines);
  if (typeof contentLength === 'string') return contentLength;
  return { status: Number(status), contentLength };
}

/** Trailers say nothing of the message that is over (RFC 9110 §6.5.1). */
export function flawOfTrailers(lines: readonly Line[]): string | undefined {
  if (lines.some(([name]) => name.startsWith(':'))) return 'a pseudo-field in trailers';
  const late = lines.find(([name]) => name === 'content-length' || name === 'host');
  return late === undefined ? flawOfLines(lines) : `${late[0]} in trailers`;
}

function regular(lines: readonly Line[]): Line[] {
  return lines.filter(([name]) => !name.startsWith(':'));
}

function pseudoFields(
  lines: readonly Line[],
  known: ReadonlySet<string>,
): ReadonlyMap<string, string> | string {
  const found = new Map<string, string>();
  for (const [at, [name, value]] of lines.entries()) {
    if (!name.startsWith(':')) continue;
    if (at !== found.size) return 'a pseudo-field behind another field';
    if (!known.has(name) || found.has(name)) return `${name} twice, or never known`;
    if (!VALUE.test(value)) return `the value of ${name}`;
    found.set(name, value);
  }
  return found;
}

function flawOfLines(lines: readonly Line[]): string | undefined {
  for (const [name, value] of lines) {
    if (!TOKEN.test(name)) return `the name ${name}`;
    if (!VALUE.test(value)) return `the value of ${name}`;
    if (OF_ONE_HOP.has(name) || (name === 'te' && value !== 'trailers')) return name;
  }
  return undefined;
}

function lengthIn(lines: readonly Line[]): number | undefined | string {
  const values = lines.filter(([name]) => name === 'content-length').map(([, value]) => value);
  const [first] = values;
  if (first === undefined) return undefined;
  const isClear = values.every((value) => LENGTH.test(value) && Number(value) === Number(first));
  return isClear ? Number(first) : 'content-length';
}

function flawOfTarget(pseudo: ReadonlyMap<string, string>): string | undefined {
  const [method, path] = [pseudo.get(':method'), pseudo.get(':path')];
  const isExtended = pseudo.has(':protocol');
  if (method === undefined || !METHOD.test(method)) return 'no method';
  if (method === 'CONNECT' && !isExtended) return flawOfConnect(pseudo);
  return flawOfUsual(pseudo, method, path);
}

function flawOfConnect(pseudo: ReadonlyMap<string, string>): string | undefined {
  const isWrong = pseudo.has(':scheme') || pseudo.has(':path') || !pseudo.has(':authority');
  return isWrong ? 'CONNECT with too much or too little' : undefined;
}

function flawOfUsual(
  pseudo: ReadonlyMap<string, string>,
  method: string,
  path: string | undefined,
): string | undefined {
  const isExtended = pseudo.has(':protocol');
  if (isExtended && (method !== 'CONNECT' || !pseudo.has(':authority'))) return ':protocol';
  if (!pseudo.has(':scheme') || path === undefined) return 'no scheme, or no path';
  return PATH.test(path) || (path === '*' && method === 'OPTIONS') ? undefined : 'the path';
}

/** One host at most, without a user, and the same wherever it stands (RFC 9113 §8.3.1). */
function flawOfHost(authority: string | undefined, lines: readonly Line[]): string | undefined {
  const hosts = lines.filter(([name]) => name === 'host').map(([, value]) => value);
  if (hosts.length > 1) return 'two hosts';
  const [host = authority] = hosts;
  if (authority?.includes('@') === true) return 'a user in the authority';
  const isSame = authority === undefined || host?.toLowerCase() === authority.toLowerCase();
  return isSame ? undefined : 'an authority and another host';
}
