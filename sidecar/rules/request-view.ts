// What a rule may look at. The HTTP/1.1 engine offers one per connection, reused for every request;
// HTTP/2 will offer another. Nothing here allocates until it is asked for.

export interface RequestView {
  /** As received, case-sensitive. */
  readonly method: string;
  /** The request-target as received: origin-form (`/a?b`), absolute-form or `*`. Latin-1: one char per byte. */
  readonly target: string;
  /** Host header (or authority) as received, port included; empty when there is none. */
  readonly host: string;
  /** Textual address of the socket's peer, e.g. `203.0.113.7`, `::1`, `::ffff:203.0.113.7`. */
  readonly peerAddress: string;
  /** Field lines of that name (`name` must be lower-case) joined by `, `; undefined when there is none. Latin-1. */
  header(name: string): string | undefined;
  /** How many field lines of that (lower-case) name there are. */
  headerCount(name: string): number;
  /** Every field line in order; `name` as received. */
  eachHeader(visit: (name: string, value: string) => void): void;
}
