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
  | 'http2-fault'
  | 'http2-flood'
  | 'http2-preface'
  | 'length-and-chunked'
  | 'malformed'
  | 'max-connections'
  | 'method'
  | 'obs-fold'
  | 'request-line'
  | 'space-before-colon'
  | 'status-line'
  | 'target'
  | 'target-too-long'
  | 'too-many-fields'
  | 'too-many-streams'
  | 'trailer-field'
  | 'trailer-too-large'
  | 'transfer-encoding'
  | 'transfer-encoding-repeated'
  | 'version';

type RefusalStatus = 400 | 414 | 431 | 501 | 505;

/** Every reason with the status it is answered with. */
const statuses: Readonly<Record<RefusalReason, RefusalStatus>> = {
  'bare-lf': 400,
  'chunk-end': 400,
  'chunk-extension': 400,
  'chunk-line-too-long': 400,
  'chunk-size': 400,
  connect: 501, // RFC 9110 §15.6.2: not supported for any resource here
  'connection-options': 400,
  'content-length': 400,
  'content-length-repeated': 400,
  'field-name': 400,
  'field-value': 400,
  'head-too-large': 431, // RFC 6585 §5
  'host-invalid': 400,
  'host-mismatch': 400,
  'host-missing': 400,
  'host-repeated': 400,
  'http2-fault': 400, // of a connection: what it says stands in its GOAWAY
  'http2-flood': 400,
  'http2-preface': 505,
  'length-and-chunked': 400,
  malformed: 400, // a message of HTTP/2 (RFC 9113 §8.1.1)
  'max-connections': 400, // of a stream of HTTP/2, which is reset (RFC 9113 §8.7)
  method: 400,
  'obs-fold': 400,
  'request-line': 400,
  'space-before-colon': 400,
  'status-line': 400,
  target: 400,
  'target-too-long': 414, // RFC 9110 §15.5.15
  'too-many-fields': 431,
  'too-many-streams': 400, // as max-connections
  'trailer-field': 400,
  'trailer-too-large': 431,
  'transfer-encoding': 400,
  'transfer-encoding-repeated': 400,
  version: 505, // RFC 9110 §15.6.6
};

/** What feeding bytes led to: more are needed, the section is complete, or it is refused for good. */
export type ParseOutcome = 'more' | 'complete' | 'refused';

/** The status a refused request is answered with. */
export function refusalStatus(reason: RefusalReason): RefusalStatus {
  return statuses[reason];
}
