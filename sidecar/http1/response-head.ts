// Hot path. The head of one response (RFC 9112 §4, §5, §6.3), read from the upstream: as strict as for requests,
// because a response whose end is uncertain would be mixed up with the next one on the same connection.
import { isDigit, isValueChar } from './characters.ts';
import { connectionOptions } from './connection-options.ts';
import { CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING } from './field-kind.ts';
import { FieldSection } from './field-section.ts';
import { declaredLength, isChunked } from './framing.ts';
import type { Framing } from './framing.ts';
import type { Http1Limits } from './limits.ts';
import type { RefusalReason } from './refusal.ts';

/** `HTTP/1.1 ` */
const VERSION_BYTES = 9;

export class ResponseHead extends FieldSection {
  /** 100..999. */
  status = 0;
  /** 0 or 1. */
  minorVersion = 1;
  /** Whether the upstream will close, or its version implies it. */
  wantsClose = false;
  /** What the head says about framing; `framingFor` adds what request and status say. */
  #declared: Framing = 'close';
  /** Only with a declared length. */
  contentLength = 0;

  constructor(limits: Http1Limits) {
    super({
      maxBytes: limits.maxHeadBytes,
      maxFieldLines: limits.maxFieldLines,
      tooLarge: 'head-too-large',
      skipsEmptyLine: false,
    });
  }

  // status-line = HTTP-version SP status-code SP [ reason-phrase ] (RFC 9112 §4). A missing second space is common
  // and has one reading, so it is taken.
  protected override readStartLine(from: number, to: number): RefusalReason | undefined {
    const text = this.text;
    if (to - from < VERSION_BYTES + 3 || !text.startsWith('HTTP/1.', from)) return 'status-line';
    const minor = text.charCodeAt(from + 7);
    if ((minor !== 0x30 && minor !== 0x31) || text.charCodeAt(from + 8) !== 0x20) {
      return 'status-line';
    }
    this.minorVersion = minor - 0x30;
    this.status = parseStatus(text, from + VERSION_BYTES);
    if (this.status < 100) return 'status-line';
    return this.#judgeReason(from + VERSION_BYTES + 3, to);
  }

  #judgeReason(from: number, to: number): RefusalReason | undefined {
    if (from < to && this.text.charCodeAt(from) !== 0x20) return 'status-line';
    for (let i = from; i < to; i += 1) {
      if (!isValueChar(this.text.charCodeAt(i))) return 'status-line';
    }
    return undefined;
  }

  protected override judge(): RefusalReason | undefined {
    this.wantsClose = this.minorVersion === 0;
    return this.#judgeFraming() ?? this.#judgeConnection();
  }

  #judgeFraming(): RefusalReason | undefined {
    this.#declared = 'close';
    this.contentLength = 0;
    if (this.has(TRANSFER_ENCODING)) {
      if (this.has(CONTENT_LENGTH)) return 'length-and-chunked';
      return this.#judgeTransferEncoding();
    }
    if (!this.has(CONTENT_LENGTH)) return undefined;
    if (!this.hasOne(CONTENT_LENGTH)) return 'content-length-repeated';
    this.contentLength = declaredLength(this);
    if (this.contentLength < 0) return 'content-length';
    this.#declared = 'length';
    return undefined;
  }

  #judgeTransferEncoding(): RefusalReason | undefined {
    if (this.minorVersion === 0) return 'transfer-encoding';
    if (!this.hasOne(TRANSFER_ENCODING)) return 'transfer-encoding-repeated';
    if (!isChunked(this)) return 'transfer-encoding';
    this.#declared = 'chunked';
    return undefined;
  }

  #judgeConnection(): RefusalReason | undefined {
    if (!this.has(CONNECTION)) return undefined;
    const options = connectionOptions(this);
    if (options === undefined) return 'connection-options';
    for (const option of options) {
      if (option === 'close') this.wantsClose = true;
      else if (option !== 'keep-alive' && option !== 'upgrade') this.nominate(option);
    }
    return undefined;
  }

  /** Whether this is a 1xx other than 101: more responses follow to the same request. */
  get isInterim(): boolean {
    return this.status < 200 && this.status !== 101;
  }

  /** How the body ends, given the request's method (RFC 9112 §6.3). A length of 0 is `none`. */
  framingFor(method: string): Framing {
    if (method === 'HEAD' || this.status < 200 || this.status === 204 || this.status === 304) {
      return 'none';
    }
    return this.#declared === 'length' && this.contentLength === 0 ? 'none' : this.#declared;
  }
}

/** Three digits, the first of 1..9; 0 when they are not. */
function parseStatus(text: string, from: number): number {
  let status = 0;
  for (let i = from; i < from + 3; i += 1) {
    const code = text.charCodeAt(i);
    if (!isDigit(code)) return 0;
    status = status * 10 + (code - 0x30);
  }
  return status;
}
