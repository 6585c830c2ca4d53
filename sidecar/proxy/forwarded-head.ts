// Hot path. Turns an accepted head into the one the next hop gets: the same bytes, minus the fields that belong to
// one hop (RFC 9110 §7.6.1), plus what the proxy knows. The start line passes byte for byte.
import {
  bitOf,
  CONTENT_LENGTH,
  DATE,
  FORWARDED,
  hopByHopBits,
  RATE_LIMIT,
  RATE_LIMIT_POLICY,
  TE,
  TRANSFER_ENCODING,
  UPGRADE,
  X_FORWARDED_FOR,
  X_FORWARDED_HOST,
  X_FORWARDED_PROTO,
  X_RATE_LIMIT,
  X_RATE_LIMIT_REMAINING,
} from '../http1/field-kind.ts';
import { listElements } from '../http1/field-list.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';

/** What one client connection adds to each of its requests; made once per connection. */
export interface HopFields {
  /** The peer as X-Forwarded-For wants it: an IPv4-mapped address as plain IPv4. */
  readonly address: string;
  /** `X-Forwarded-For: <address>\r\n` */
  readonly forLine: string;
  readonly proto: 'http' | 'https';
  /** `X-Forwarded-Proto: <proto>\r\n` */
  readonly protoLine: string;
  /** `Via: 1.1 <name>\r\n`, or empty. */
  readonly viaLine: string;
}

export function hopFields(peer: string, proto: 'http' | 'https', viaLine: string): HopFields {
  const address = peer.startsWith('::ffff:') && peer.includes('.') ? peer.slice(7) : peer;
  return {
    address,
    forLine: `X-Forwarded-For: ${address}\r\n`,
    proto,
    protoLine: `X-Forwarded-Proto: ${proto}\r\n`,
    viaLine,
  };
}

const editedInRequests = hopByHopBits | bitOf(X_FORWARDED_FOR) | bitOf(FORWARDED);

/**
 * The head for the upstream. X-Forwarded-For grows by one element, Forwarded only where it is present (an
 * application that reads it must not start to trust one of ours alone), X-Forwarded-Proto and -Host are set
 * only when absent: behind an ingress the outer value is the true one, and appending makes
 * applications redirect for ever.
 */
export function forwardedRequestHead(head: RequestHead, hop: HopFields): string {
  const edited = (head.seen & editedInRequests) !== 0;
  let out = edited ? editedRequest(head, hop) : head.text.slice(head.start, head.end - 2);
  if (!head.has(X_FORWARDED_FOR)) out += hop.forLine;
  if (!head.has(X_FORWARDED_PROTO)) out += hop.protoLine;
  if (!head.has(X_FORWARDED_HOST) && head.host !== '') out += `X-Forwarded-Host: ${head.host}\r\n`;
  if (head.upgrade !== '') out += `Connection: Upgrade\r\nUpgrade: ${head.upgrade}\r\n`;
  return `${out}${hop.viaLine}\r\n`;
}

function editedRequest(head: RequestHead, hop: HopFields): string {
  const text = head.text;
  let out = '';
  let from = head.start;
  for (let line = 0; line < head.count; line += 1) {
    const kind = head.kind(line);
    if (kind < X_FORWARDED_FOR) continue;
    out += text.slice(from, head.lineStart(line));
    out += editedLine(head, line, hop);
    from = head.lineEnd(line);
  }
  return out + text.slice(from, head.end - 2);
}

function editedLine(head: RequestHead, line: number, hop: HopFields): string {
  switch (head.kind(line)) {
    case X_FORWARDED_FOR:
      return appended(head, line, hop.address);
    case FORWARDED:
      return appended(head, line, forwardedElement(head.host, hop));
    case TE:
      return listElements(head.value(line)).includes('trailers') ? 'TE: trailers\r\n' : '';
    default:
      return '';
  }
}

/** The line with an element added; a list in several lines grows at its last one (RFC 9110 §5.3). */
function appended(head: RequestHead, line: number, element: string): string {
  const text = head.text;
  if (head.lineOf(head.kind(line), line + 1) < head.count) {
    return text.slice(head.lineStart(line), head.lineEnd(line));
  }
  const value = head.value(line);
  return `${head.name(line)}: ${value === '' ? '' : `${value}, `}${element}\r\n`;
}

/** One element of Forwarded (RFC 7239 §4); an IPv6 address is bracketed and quoted (§6). */
export function forwardedElement(host: string, hop: HopFields): string {
  const node = hop.address.includes(':') ? `"[${hop.address}]"` : hop.address;
  return `for=${node}${host === '' ? '' : `;host="${host}"`};proto=${hop.proto}`;
}

export interface ResponseAdditions {
  /** Complete field lines to add. */
  readonly fields: string;
  /** Whether the quota fields of the upstream give way to those in `fields`. */
  readonly replacesQuota: boolean;
  /** `Date: …\r\n`, used when the upstream sent none (RFC 9110 §6.6.1). */
  readonly dateLine: string;
  readonly viaLine: string;
  readonly closes: boolean;
}

const quotaBits =
  bitOf(RATE_LIMIT) |
  bitOf(RATE_LIMIT_POLICY) |
  bitOf(X_RATE_LIMIT) |
  bitOf(X_RATE_LIMIT_REMAINING);

const framingBits = bitOf(CONTENT_LENGTH) | bitOf(TRANSFER_ENCODING);

/** 1xx and 204 have no body, and none of these fields (RFC 9110 §8.6, RFC 9112 §6.1). */
export function mayNotSpeakOfBody(head: ResponseHead): boolean {
  return head.status === 204 || head.status < 200;
}

/** The head of a final response, or of a 101, for the client. */
export function forwardedResponseHead(head: ResponseHead, additions: ResponseAdditions): string {
  let removed = additions.replacesQuota ? hopByHopBits | quotaBits : hopByHopBits;
  if (mayNotSpeakOfBody(head)) removed |= framingBits;
  const date = head.has(DATE) ? '' : additions.dateLine;
  const connection = connectionLine(head, additions.closes);
  return `${responseLines(head, removed)}${additions.fields}${date}${additions.viaLine}${connection}\r\n`;
}

/** The head of an interim response for the client. */
export function forwardedInterimHead(head: ResponseHead): string {
  return `${responseLines(head, hopByHopBits | framingBits)}\r\n`;
}

// The proxy answers with its own version (RFC 9110 §6.2): HTTP/1.0 from the upstream says nothing to the client.
function responseLines(head: ResponseHead, removed: number): string {
  const version = head.minorVersion === 0 ? 'HTTP/1.1' : '';
  const text = head.text;
  let from = head.minorVersion === 0 ? head.start + 8 : head.start;
  if ((head.seen & removed) === 0) return version + text.slice(from, head.end - 2);
  let out = version;
  for (let line = 0; line < head.count; line += 1) {
    if ((bitOf(head.kind(line)) & removed) === 0 || keepsUpgrade(head, line)) continue;
    out += text.slice(from, head.lineStart(line));
    from = head.lineEnd(line);
  }
  return out + text.slice(from, head.end - 2);
}

/** 101 and 426 are about Upgrade (RFC 9110 §7.8, §15.5.22); elsewhere it is an offer to the next hop only. */
function keepsUpgrade(head: ResponseHead, line: number): boolean {
  return head.kind(line) === UPGRADE && speaksOfUpgrade(head);
}

function speaksOfUpgrade(head: ResponseHead): boolean {
  return head.status === 101 || head.status === 426;
}

function connectionLine(head: ResponseHead, closes: boolean): string {
  const upgrade = head.has(UPGRADE) && speaksOfUpgrade(head);
  if (closes) return upgrade ? 'Connection: close, Upgrade\r\n' : 'Connection: close\r\n';
  return upgrade ? 'Connection: Upgrade\r\n' : '';
}
