// Every difference between direct access and access through the sidecar that is allowed, with its reason, and nothing
// else: docs/http.md shows this list, and a case in which anything else differs fails.
import { fieldOf, nameOf } from './message.ts';
import type { Message } from './message.ts';

export interface Difference {
  readonly in: 'request' | 'response';
  /** Words of docs/http.md. */
  readonly what: string;
  readonly why: string;
}

/** A name that the comparison reports as used. */
export type DifferenceName =
  | 'bodiless-framing'
  | 'connection-fields'
  | 'empty-line'
  | 'forwarded-about'
  | 'forwarded-for'
  | 'interim-to-old-client'
  | 'quota-fields'
  | 'refusal'
  | 'request-extensions'
  | 'response-connection'
  | 'response-connection-fields'
  | 'response-date'
  | 'response-extensions'
  | 'response-version'
  | 'te-trailers'
  | 'upgrade-line';

export const differences: Readonly<Record<DifferenceName, Difference>> = {
  'connection-fields': {
    in: 'request',
    what: '`Connection` and the fields it names, `Keep-Alive`, `Proxy-Connection`, `Upgrade`, `HTTP2-Settings` and `TE` are missing',
    why: 'they speak of the connection to the sidecar (RFC 9110 §7.6.1)',
  },
  'te-trailers': {
    in: 'request',
    what: '`TE` says `trailers` only, where the client says it',
    why: 'trailers pass; codings of one connection do not',
  },
  'upgrade-line': {
    in: 'request',
    what: '`Connection: Upgrade` and `Upgrade` stand at the end, without `h2c`',
    why: 'the upgrade is asked of the application anew; h2c is not offered',
  },
  'forwarded-for': {
    in: 'request',
    what: '`X-Forwarded-For` and `Forwarded` are longer by the peer, the former is there always',
    why: 'applications behind a proxy look there for the client',
  },
  'forwarded-about': {
    in: 'request',
    what: '`X-Forwarded-Proto` and `X-Forwarded-Host` are there',
    why: 'set only where no outer proxy has set them',
  },
  'empty-line': {
    in: 'request',
    what: 'an empty line before the request line is missing',
    why: 'it is no part of a message (RFC 9112 §2.2)',
  },
  'request-extensions': {
    in: 'request',
    what: 'chunk extensions are missing',
    why: 'they speak of the connection (RFC 9112 §7.1.1), and are used to smuggle',
  },
  'response-connection-fields': {
    in: 'response',
    what: '`Connection` and the fields it names, `Keep-Alive`, `Proxy-Connection`, `TE`, `HTTP2-Settings`, and `Upgrade` but in 101 and 426 are missing',
    why: 'they speak of the connection to the application',
  },
  'response-connection': {
    in: 'response',
    what: '`Connection: close` or `Connection: Upgrade` stands at the end',
    why: 'the sidecar says what becomes of its own connection',
  },
  'response-version': {
    in: 'response',
    what: 'the status line says HTTP/1.1 where the application says HTTP/1.0',
    why: 'a proxy answers with its own version (RFC 9110 §6.2)',
  },
  'response-date': {
    in: 'response',
    what: '`Date` is there where the application sent none',
    why: 'RFC 9110 §6.6.1',
  },
  'quota-fields': {
    in: 'response',
    what: '`RateLimit` and `RateLimit-Policy` are there, in place of looser ones of the application',
    why: 'the product',
  },
  'response-extensions': {
    in: 'response',
    what: 'chunk extensions are missing',
    why: 'as in requests',
  },
  'bodiless-framing': {
    in: 'response',
    what: '`Content-Length` and `Transfer-Encoding` of a 1xx or 204 are missing',
    why: 'they must not be there (RFC 9110 §8.6, RFC 9112 §6.1)',
  },
  'interim-to-old-client': {
    in: 'response',
    what: '1xx are missing for a client of HTTP/1.0',
    why: 'RFC 9110 §15.2',
  },
  refusal: {
    in: 'response',
    what: 'a message that Weir refuses on purpose gets its answer',
    why: 'two parsers could read it in two ways, see “What is refused”',
  },
};

/** A message as it has to arrive, and which differences that took. */
export interface Expected {
  readonly startLine: string;
  /** Lines in order; then each of `additions` at most once, in order. */
  readonly lines: readonly string[];
  readonly additions: readonly Addition[];
  readonly body: string;
  readonly used: ReadonlySet<DifferenceName>;
}

export interface Addition {
  readonly name: DifferenceName;
  readonly line: RegExp;
  /** Whether it may be missing. */
  readonly optional: boolean;
}

const hopNames: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'te',
  'http2-settings',
]);

/** What the application has to see of a request. */
export function expectedRequest(direct: Message): Expected {
  const used = new Set<DifferenceName>();
  const nominated = nominatedBy(direct.lines);
  const lines: string[] = [];
  const lastOf = (name: string): string | undefined =>
    direct.lines.filter((line) => nameOf(line) === name && !nominated.has(name)).at(-1);
  for (const line of direct.lines) {
    const name = nameOf(line);
    if (name === 'te' && /(^|[ ,])trailers($|[ ,])/i.test(valueOf(line))) {
      used.add('te-trailers');
      lines.push('TE: trailers');
    } else if (hopNames.has(name) || nominated.has(name)) {
      used.add('connection-fields');
    } else if (line === lastOf('x-forwarded-for') || line === lastOf('forwarded')) {
      used.add('forwarded-for');
      lines.push(extended(line, direct));
    } else {
      lines.push(line);
    }
  }
  if (direct.prefix !== '') used.add('empty-line');
  const body = withoutExtensions(direct, used, 'request-extensions');
  const { startLine } = direct;
  return { startLine, lines, additions: requestAdditions(direct, nominated), body, used };
}

function requestAdditions(direct: Message, nominated: ReadonlySet<string>): Addition[] {
  const additions: Addition[] = [];
  const has = (name: string): boolean =>
    !nominated.has(name) && fieldOf(direct.lines, name) !== undefined;
  const add = (name: DifferenceName, line: RegExp): void => {
    additions.push({ name, line, optional: false });
  };
  if (!has('x-forwarded-for')) add('forwarded-for', /^X-Forwarded-For: 127\.0\.0\.1$/);
  if (!has('x-forwarded-proto')) add('forwarded-about', /^X-Forwarded-Proto: http$/);
  const host = hostOf(direct);
  if (!has('x-forwarded-host') && host !== '') {
    add('forwarded-about', new RegExp(`^X-Forwarded-Host: ${RegExp.escape(host)}$`));
  }
  const protocols = upgradeOf(direct);
  if (protocols !== '') {
    add('upgrade-line', /^Connection: Upgrade$/);
    add('upgrade-line', new RegExp(`^Upgrade: ${RegExp.escape(protocols)}$`));
  }
  return additions;
}

/** What the client has to see of a response. */
export function expectedResponse(direct: Message): Expected {
  const used = new Set<DifferenceName>();
  const nominated = nominatedBy(direct.lines);
  const status = Number(direct.startLine.slice(9, 12));
  const lines: string[] = [];
  for (const line of direct.lines) {
    const missing = missingInResponse(direct, { name: nameOf(line), status, nominated });
    if (missing === undefined) lines.push(line);
    else used.add(missing);
  }
  const isOld = direct.startLine.startsWith('HTTP/1.0');
  if (isOld) used.add('response-version');
  const isInterim = status < 200 && status !== 101;
  return {
    startLine: isOld ? `HTTP/1.1${direct.startLine.slice(8)}` : direct.startLine,
    lines,
    additions: isInterim ? [] : responseAdditions(direct, nominated),
    body: withoutExtensions(direct, used, 'response-extensions'),
    used,
  };
}

interface ResponseLine {
  readonly name: string;
  readonly status: number;
  readonly nominated: ReadonlySet<string>;
}

/** Why the client does not see a line; undefined when it does. */
function missingInResponse(
  direct: Message,
  { name, status, nominated }: ResponseLine,
): DifferenceName | undefined {
  const staysAsUpgrade = name === 'upgrade' && (status === 101 || status === 426);
  if ((hopNames.has(name) || nominated.has(name)) && !staysAsUpgrade) {
    return 'response-connection-fields';
  }
  if (isFraming(name) && (status < 200 || status === 204)) return 'bodiless-framing';
  return isLooserQuota(direct, name) ? 'quota-fields' : undefined;
}

const quotaPolicy = /^RateLimit-Policy: "all\/all\/main";q=\d+;w=\d+$/;
const quota = /^RateLimit: "all\/all\/main";r=\d+;t=\d+$/;

function responseAdditions({ lines }: Message, nominated: ReadonlySet<string>): Addition[] {
  const additions: Addition[] = [
    { name: 'quota-fields', line: quotaPolicy, optional: true },
    { name: 'quota-fields', line: quota, optional: true },
  ];
  if (fieldOf(lines, 'date') === undefined || nominated.has('date')) {
    additions.push({ name: 'response-date', line: /^Date: .* GMT$/, optional: false });
  }
  const line = /^Connection: (close|Upgrade|close, Upgrade)$/;
  additions.push({ name: 'response-connection', line, optional: true });
  return additions;
}

function isFraming(name: string): boolean {
  return name === 'content-length' || name === 'transfer-encoding';
}

/** Quota fields of an application that would leave the client more than Weir does. */
function isLooserQuota({ lines }: Message, name: string): boolean {
  if (!name.startsWith('ratelimit')) return false;
  const remaining = /;r=(\d+)/.exec(fieldOf(lines, 'ratelimit') ?? '')?.[1];
  return remaining !== undefined && Number(remaining) > MOST_REMAINING;
}

/** What the corpus' own policy leaves at most. */
export const MOST_REMAINING = 1_000_000;

function valueOf(line: string): string {
  return line.slice(line.indexOf(':') + 1).trim();
}

/** Names that Connection lists, lower case. */
function nominatedBy(lines: readonly string[]): ReadonlySet<string> {
  const values = lines.filter((line) => nameOf(line) === 'connection').map(valueOf);
  const names = values.flatMap((value) => value.split(',')).map((one) => one.trim().toLowerCase());
  return new Set(names.filter((name) => name !== '' && !hopNames.has(name)));
}

/** A list with the peer as its last element. */
function extended(line: string, direct: Message): string {
  const host = hostOf(direct);
  const about = host === '' ? '' : `;host="${host}"`;
  const element = nameOf(line) === 'forwarded' ? `for=127.0.0.1${about};proto=http` : '127.0.0.1';
  const before = valueOf(line) === '' ? '' : `${valueOf(line)}, `;
  return `${line.slice(0, line.indexOf(':'))}: ${before}${element}`;
}

function hostOf({ lines, startLine }: Message): string {
  return fieldOf(lines, 'host') ?? /^\S+ https?:\/\/([^/? ]*)/i.exec(startLine)?.[1] ?? '';
}

function upgradeOf({ lines, startLine }: Message): string {
  const asks = lines.some((line) => nameOf(line) === 'connection' && /upgrade/i.test(line));
  if (!asks || startLine.endsWith('HTTP/1.0') || lines.some((line) => isBody(line))) return '';
  return lines
    .filter((line) => nameOf(line) === 'upgrade')
    .flatMap((line) => valueOf(line).split(','))
    .map((one) => one.trim())
    .filter((one) => one !== '' && !/^h2c?$|^http\//i.test(one))
    .join(', ');
}

function isBody(line: string): boolean {
  const name = nameOf(line);
  return name === 'transfer-encoding' || (name === 'content-length' && valueOf(line) !== '0');
}

/** The body with every chunk's size line cut at its first semicolon. */
function withoutExtensions(
  { lines, body }: Message,
  used: Set<DifferenceName>,
  name: DifferenceName,
): string {
  if (fieldOf(lines, 'transfer-encoding') === undefined) return body;
  let out = '';
  let at = 0;
  while (at < body.length) {
    const lineEnd = body.indexOf('\r\n', at);
    const [size = ''] = body.slice(at, lineEnd).split(';');
    if (at + size.length < lineEnd) used.add(name);
    const length = Number.parseInt(size, 16);
    const end = length > 0 ? lineEnd + 2 + length + 2 : body.length;
    out += size + body.slice(lineEnd, end);
    at = end;
  }
  return out;
}
