// Why a stream or a connection ends (RFC 9113 §7).

/** A 32-bit code of RST_STREAM and GOAWAY; unknown ones pass as they are. */
export type ErrorCode = number;

export const NO_ERROR = 0x0;
export const PROTOCOL_ERROR = 0x1;
export const INTERNAL_ERROR = 0x2;
export const FLOW_CONTROL_ERROR = 0x3;
export const STREAM_CLOSED = 0x5;
export const FRAME_SIZE_ERROR = 0x6;
export const REFUSED_STREAM = 0x7;
export const CANCEL = 0x8;
export const COMPRESSION_ERROR = 0x9;
export const ENHANCE_YOUR_CALM = 0xb;

/** The peer broke the protocol in a way that ends the whole connection. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly code: ErrorCode;

  /** `message` says what was wrong; it goes out as the debug data of GOAWAY. */
  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
