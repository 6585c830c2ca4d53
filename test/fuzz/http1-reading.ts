// What the bytes of a client of HTTP/1.1 are for our engine and for llhttp, which have to agree.
import { readRequest } from '../support/engine-reading.ts';
import type { ReadMessage } from '../support/engine-reading.ts';
import { isKnownMethod, seenByLlhttp } from '../support/llhttp.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import type { StrictReading, StrictRequest, Testimony } from './dialect.ts';

/** The requests at the start of the bytes, up to what Weir refuses or waits for. */
export function readHttp1Strictly(bytes: string): StrictReading {
  const requests: StrictRequest[] = [];
  const disagreements: string[] = [];
  let rest = bytes;
  for (;;) {
    const reading = readRequest(rest);
    if (reading.kind !== 'read') {
      const goesOver = reading.kind === 'refused' && reading.reason === 'http2-preface';
      const ends = reading.kind === 'refused' && !goesOver;
      return new Http1Reading(requests, { disagreements, ends, goesOver });
    }
    const slice = rest.slice(0, reading.end);
    const disagreement = disagreementAbout(slice, reading);
    if (disagreement !== undefined) disagreements.push(disagreement);
    requests.push(asRequest(reading));
    rest = rest.slice(reading.end);
    if (reading.head.wantsClose) {
      return new Http1Reading(requests, { disagreements, ends: true, goesOver: false });
    }
  }
}

interface Outcome {
  readonly disagreements: readonly string[];
  /** Whether the sidecar has to end the connection by itself after these bytes. */
  readonly ends: boolean;
  /** Whether the bytes go over to another protocol: what is said then is nothing of this dialect. */
  readonly goesOver: boolean;
}

class Http1Reading implements StrictReading {
  readonly requests: readonly StrictRequest[];
  readonly disagreements: readonly string[];
  readonly #outcome: Outcome;

  constructor(requests: readonly StrictRequest[], outcome: Outcome) {
    this.requests = requests;
    this.disagreements = outcome.disagreements;
    this.#outcome = outcome;
  }

  // Whether anything is answered before the client goes is up to the answers: it waits for a first one, or for the end.
  // Unless the sidecar has to end it, the client does: what it sent does not end, or waits for more.
  async listen(client: RawSocket): Promise<void> {
    if (this.#outcome.ends) return;
    const begun = (): boolean => client.bytesReceived > 0 || client.ended || client.closed;
    if (this.requests.length > 0) await client.waitFor(begun, 'anything').catch(() => undefined);
    client.end();
  }

  /** Nothing that is not of this protocol, and, unless the application did worse, nothing that is not quite. */
  faultsIn({ received }: RawSocket, { isMisled }: Testimony): string[] {
    if (this.#outcome.goesOver) return [];
    const faults: string[] = [];
    if (received !== '' && !received.startsWith('HTTP/1.1 ')) faults.push('got no HTTP');
    if (isMisled || this.requests.some(({ startLine }) => startLine.startsWith('HEAD '))) {
      return faults;
    }
    const { error } = seenByLlhttp('response', received);
    if (error !== undefined) faults.push(`got what llhttp calls ${error}`);
    return faults;
  }
}

function asRequest({ head, passed }: ReadMessage): StrictRequest {
  const headEnd = passed.indexOf('\r\n\r\n') + 4;
  return {
    startLine: passed.slice(0, passed.indexOf('\r\n')),
    body: passed.slice(headEnd),
    isIdempotent: 'isIdempotent' in head && head.isIdempotent,
  };
}

function disagreementAbout(slice: string, { head, body }: ReadMessage): string | undefined {
  if (!('method' in head)) return undefined;
  const text = plainForLlhttp(slice, head.start);
  const { messages, error } = seenByLlhttp('request', text);
  const [first] = messages;
  const agrees =
    error === undefined && messages.length === 1 && first?.complete === true && first.body === body;
  return agrees ? undefined : `llhttp (${error ?? 'other body'}) on ${JSON.stringify(slice)}`;
}

/**
 * What llhttp cannot know is made what it knows: methods of its own list, bytes above ASCII in a target as escapes, and
 * nothing that would end HTTP for it.
 */
export function plainForLlhttp(message: string, start = 0): string {
  const lineEnd = message.indexOf('\r\n', start);
  const [method = '', target = '', version = ''] = message.slice(start, lineEnd).split(' ');
  const known = isKnownMethod(method) ? method : 'POST';
  const plain = target.replace(/[\x80-\xff]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  const headEnd = message.indexOf('\r\n\r\n', start) + 4;
  const lines = message.slice(lineEnd, headEnd);
  const fields = lines
    .replace(/\r\nupgrade:/gi, '\r\nXpgrade:')
    .replace(/\r\nconnection:/gi, '\r\nXonnection:');
  return `${known} ${plain} ${version}${fields}${message.slice(headEnd)}`;
}
