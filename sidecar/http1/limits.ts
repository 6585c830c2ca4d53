// Every bound of the engine. A message is refused at the first byte past one of them.

export interface Http1Limits {
  /** Start line and field lines with all their CRLFs, bytes. */
  readonly maxHeadBytes: number;
  readonly maxFieldLines: number;
  /** Request-target, bytes. */
  readonly maxTargetBytes: number;
  /** Chunk size with extensions and CRLF, bytes. */
  readonly maxChunkLineBytes: number;
  /** Trailer field lines with their CRLFs and the closing one, bytes. */
  readonly maxTrailerBytes: number;
}

/**
 * - 64 KiB of head: the largest default among common application servers (Node 16, Go 1 024 but documented as
 *   too much, Jetty 8, Tomcat 8, gunicorn ~ 800 for 100 lines of 8 KiB): the application refuses first.
 * - 128 field lines: browsers behind two proxies send about 40; Tomcat and gunicorn refuse at 100.
 * - 16 KiB of target: twice nginx's and Apache's 8 KiB.
 * - 256 bytes of chunk line: 16 digits, CRLF, and the extensions ever seen in use (signatures of ~ 90 bytes).
 * - 8 KiB of trailers: gRPC status and a few checksums are below 1 KiB.
 */
export const defaultHttp1Limits: Http1Limits = {
  maxHeadBytes: 65_536,
  maxFieldLines: 128,
  maxTargetBytes: 16_384,
  maxChunkLineBytes: 256,
  maxTrailerBytes: 8_192,
};

/** The longest registered method (`UPDATEREDIRECTREF`) has 17 bytes; a private one gets as much again. */
export const maxMethodBytes = 32;

/** 2^53 − 1 has 16 digits; a longer run is refused before it is read as a number. */
export const maxLengthDigits = 16;

/** Different options over all Connection lines; each is compared with every field. Real messages have up to five. */
export const maxConnectionOptions = 32;
