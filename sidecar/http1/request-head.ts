// Hot path. The head of one request (RFC 9112 §3, §5, §6): strict, incremental, reused by its connection.
// What it accepts has exactly one meaning for framing and for the host; whatever has two is refused, because
// the upstream gets the same bytes and may read them the other way.
import type { RequestView } from '../rules/request-view.ts';
import { isAuthority } from './authority.ts';
import { isDigit, isTargetChar, isTokenChar } from './characters.ts';
import { connectionOptions } from './connection-options.ts';
import { CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE } from './field-kind.ts';
import { FieldSection } from './field-section.ts';
import { declaredLength, isChunked } from './framing.ts';
import type { Framing } from './framing.ts';
import { maxMethodBytes } from './limits.ts';
import type { Http1Limits } from './limits.ts';
import type { RefusalReason } from './refusal.ts';

/** ` HTTP/1.1` */
const VERSION_BYTES = 9;

export class RequestHead extends FieldSection implements RequestView {
  method = '';
  target = '';
  host = '';
  /** Set by the connection once; a head does not know sockets. */
  peerAddress = '';
  /** 0 or 1. */
  minorVersion = 1;
  framing: Framing = 'none';
  /** Only with framing `length`. */
  contentLength = 0;
  /** Whether the client said, or its version implies, that no further request follows. */
  wantsClose = false;
  /** The protocols asked for, without h2c; empty when the request is not (or cannot be) an upgrade. */
  upgrade = '';
  readonly #maxTargetBytes: number;
  /** The last valid Host: a connection mostly asks for one. */
  #lastHost: string | undefined = undefined;

  constructor(limits: Http1Limits) {
    super({
      maxBytes: limits.maxHeadBytes,
      maxFieldLines: limits.maxFieldLines,
      tooLarge: 'head-too-large',
      skipsEmptyLine: true,
    });
    this.#maxTargetBytes = limits.maxTargetBytes;
  }

  override reset(): void {
    super.reset();
    this.method = '';
    this.target = '';
    this.host = '';
  }

  // request-line = method SP request-target SP HTTP-version, with single spaces (RFC 9112 §3).
  protected override readStartLine(from: number, to: number): RefusalReason | undefined {
    const text = this.text;
    let methodEnd = from;
    while (methodEnd < to && isTokenChar(text.charCodeAt(methodEnd))) methodEnd += 1;
    if (methodEnd === from || methodEnd - from > maxMethodBytes) return 'method';
    if (text.charCodeAt(methodEnd) !== 0x20) return 'request-line';
    const targetEnd = to - VERSION_BYTES;
    if (targetEnd <= methodEnd + 1) return 'request-line';
    this.method = text.slice(from, methodEnd);
    this.target = text.slice(methodEnd + 1, targetEnd);
    return this.#readVersion(targetEnd) ?? this.#readTarget();
  }

  #readVersion(from: number): RefusalReason | undefined {
    const text = this.text;
    if (!text.startsWith(' HTTP/', from)) return 'request-line';
    const major = text.charCodeAt(from + 6);
    const minor = text.charCodeAt(from + 8);
    if (!isDigit(major) || text.charCodeAt(from + 7) !== 0x2e || !isDigit(minor)) {
      return 'request-line';
    }
    if (major === 0x32 && this.method === 'PRI' && this.target === '*') return 'http2-preface';
    if (major !== 0x31 || minor > 0x31) return 'version';
    this.minorVersion = minor - 0x30;
    return undefined;
  }

  // request-target (RFC 9112 §3.2): origin-form, absolute-form, or the asterisk of OPTIONS.
  #readTarget(): RefusalReason | undefined {
    const target = this.target;
    if (target.length > this.#maxTargetBytes) return 'target-too-long';
    if (this.method === 'CONNECT') return 'connect';
    if (this.method === 'PRI') return 'method'; // reserved for the preface of HTTP/2 (RFC 9113 §11.6)
    for (let i = 0; i < target.length; i += 1) {
      if (!isTargetChar(target.charCodeAt(i))) return 'target';
    }
    if (target.charCodeAt(0) === 0x2f) return undefined;
    if (target === '*') return this.method === 'OPTIONS' ? undefined : 'target';
    return targetAuthority(target) === undefined ? 'target' : undefined;
  }

  protected override judge(): RefusalReason | undefined {
    this.wantsClose = this.minorVersion === 0;
    this.upgrade = '';
    return this.#judgeHost() ?? this.#judgeFraming() ?? this.#judgeConnection();
  }

  // RFC 9112 §3.2: exactly one valid Host in HTTP/1.1, and equal to the target's authority in absolute-form.
  #judgeHost(): RefusalReason | undefined {
    this.host = '';
    const authority = targetAuthority(this.target);
    if (!this.has(HOST)) {
      this.host = authority ?? '';
      return this.minorVersion === 0 ? undefined : 'host-missing';
    }
    if (!this.hasOne(HOST)) return 'host-repeated';
    this.host = this.value(this.lineOf(HOST, 0));
    if (this.host !== this.#lastHost && !isAuthority(this.host)) return 'host-invalid';
    this.#lastHost = this.host;
    if (authority === undefined) return undefined;
    return authority.toLowerCase() === this.host.toLowerCase() ? undefined : 'host-mismatch';
  }

  // RFC 9112 §6: Transfer-Encoding is exactly `chunked`, or Content-Length exactly one number, never both.
  #judgeFraming(): RefusalReason | undefined {
    this.framing = 'none';
    this.contentLength = 0;
    if (this.has(TRANSFER_ENCODING)) {
      if (this.has(CONTENT_LENGTH)) return 'length-and-chunked';
      return this.#judgeTransferEncoding();
    }
    if (!this.has(CONTENT_LENGTH)) return undefined;
    if (!this.hasOne(CONTENT_LENGTH)) return 'content-length-repeated';
    this.contentLength = declaredLength(this);
    if (this.contentLength < 0) return 'content-length';
    this.framing = this.contentLength === 0 ? 'none' : 'length';
    return undefined;
  }

  #judgeTransferEncoding(): RefusalReason | undefined {
    if (this.minorVersion === 0) return 'transfer-encoding'; // RFC 9112 §6.1: faulty in HTTP/1.0
    if (!this.hasOne(TRANSFER_ENCODING)) return 'transfer-encoding-repeated';
    if (!isChunked(this)) return 'transfer-encoding';
    this.framing = 'chunked';
    return undefined;
  }

  #judgeConnection(): RefusalReason | undefined {
    if (!this.has(CONNECTION)) return undefined;
    const options = connectionOptions(this);
    if (options === undefined) return 'connection-options';
    for (const option of options) {
      if (option === 'close') this.wantsClose = true;
      else if (option === 'upgrade') this.#readUpgrade();
      else if (option !== 'keep-alive' && option !== 'te') this.nominate(option);
    }
    return undefined;
  }

  // An upgrade in HTTP/1.0 is ignored (RFC 9110 §7.8). One with content is too: until the body has passed, both
  // ends would have to agree where the new protocol starts. h2c is not offered (RFC 9113 §3.1 deprecates it).
  #readUpgrade(): void {
    if (this.minorVersion === 0 || this.framing !== 'none') return;
    const protocols: string[] = [];
    for (let line = this.lineOf(UPGRADE, 0); line < this.count;) {
      protocols.push(...this.value(line).split(','));
      line = this.lineOf(UPGRADE, line + 1);
    }
    const kept = protocols.map((p) => p.trim()).filter((p) => p !== '' && !isHttp2Name(p));
    this.upgrade = kept.join(', ');
  }

  /** Whether a request may be sent twice without harm (RFC 9110 §9.2.2). */
  get isIdempotent(): boolean {
    switch (this.method) {
      case 'GET':
      case 'HEAD':
      case 'OPTIONS':
      case 'TRACE':
      case 'PUT':
      case 'DELETE':
        return true;
      default:
        return false;
    }
  }
}

/** The authority of an absolute-form http(s) target; undefined when it is not one. */
function targetAuthority(target: string): string | undefined {
  if (target.charCodeAt(0) === 0x2f) return undefined;
  const match = /^https?:\/\/([^/?]*)/i.exec(target);
  const authority = match?.[1];
  return authority !== undefined && isAuthority(authority) ? authority : undefined;
}

function isHttp2Name(protocol: string): boolean {
  const lower = protocol.toLowerCase();
  return lower === 'h2c' || lower === 'h2' || lower.startsWith('http/');
}
