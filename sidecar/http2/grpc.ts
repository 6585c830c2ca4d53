// How gRPC says what HTTP says by a status (the gRPC protocol over HTTP/2: "Responses", "Trailers-Only").

/** Codes of `grpc-status`. */
const GRPC_INTERNAL = 13;
export const GRPC_RESOURCE_EXHAUSTED = 8;
const GRPC_UNAVAILABLE = 14;
const GRPC_UNIMPLEMENTED = 12;

/** What a client would make of an answer that is not gRPC: an answer of the proxy's own says it in the first place. */
export function grpcStatusOf(httpStatus: number): number {
  switch (httpStatus) {
    case 429:
      return GRPC_RESOURCE_EXHAUSTED;
    case 501:
      return GRPC_UNIMPLEMENTED;
    case 502:
    case 503:
    case 504:
      return GRPC_UNAVAILABLE;
    default:
      return GRPC_INTERNAL;
  }
}

/** `grpc-message`: UTF-8, all but printable ASCII percent-encoded, and the percent sign itself. */
export function encodeGrpcMessage(message: string): string {
  let text = '';
  for (const byte of Buffer.from(message, 'utf8')) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    text += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}
