// Why a message was refused. A reason is a metric label and the key of the answer; the bytes that caused it
// are never shown, so nothing a client sent can reach a log or a response.

export type RefusalReason =
  | 'bare-lf'
  | 'chunk-end'
  | 'chunk-extension'
  | 'chunk-line-too-long'
  | 'chunk-size'
  | 'connect'
  | 'connection-options'
  | 'content-length'
  | 'content-length-repeated'
  | 'field-name'
  | 'field-value'
  | 'head-too-large'
  | 'host-invalid'
  | 'host-mismatch'
  | 'host-missing'
  | 'host-repeated'
  | 'http2-preface'
  | 'length-and-chunked'
  | 'method'
  | 'obs-fold'
  | 'request-line'
  | 'space-before-colon'
  | 'status-line'
  | 'target'
  | 'target-too-long'
  | 'too-many-fields'
  | 'trailer-field'
  | 'trailer-too-large'
  | 'transfer-encoding'
  | 'transfer-encoding-repeated'
  | 'version';

/** What feeding bytes led to: more are needed, the section is complete, or it is refused for good. */
export type ParseOutcome = 'more' | 'complete' | 'refused';

/** The status a refused request is answered with. */
export function refusalStatus(reason: RefusalReason): 400 | 414 | 431 | 501 | 505 {
  switch (reason) {
    case 'head-too-large':
    case 'too-many-fields':
    case 'trailer-too-large':
      return 431; // RFC 6585 §5
    case 'target-too-long':
      return 414; // RFC 9110 §15.5.15
    case 'connect':
      return 501; // RFC 9110 §9.3.6: an origin server's answer when it does not implement CONNECT
    case 'version':
    case 'http2-preface':
      return 505; // RFC 9110 §15.6.6
    default:
      return 400;
  }
}
