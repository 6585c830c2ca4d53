// What our engine makes of a whole message, in the words of the comparison with llhttp.
import { defaultHttp1Limits } from '../../sidecar/http1/limits.ts';
import { MessageBody } from '../../sidecar/http1/message-body.ts';
import type { RefusalReason } from '../../sidecar/http1/refusal.ts';
import { RequestHead } from '../../sidecar/http1/request-head.ts';
import { ResponseHead } from '../../sidecar/http1/response-head.ts';

export interface ReadMessage {
  readonly head: RequestHead | ResponseHead;
  /** Names and values in turn. */
  readonly fields: readonly string[];
  readonly trailers: readonly string[];
  /** Content, chunk framing removed. */
  readonly body: string;
  /** Bytes the message took. */
  readonly end: number;
  /** What would go to the other side: start line and fields as they came, then the body as it is passed. */
  readonly passed: string;
}

export type Reading =
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'incomplete' }
  | ({ readonly kind: 'read' } & ReadMessage);

export function readRequest(text: string): Reading {
  const head = new RequestHead(defaultHttp1Limits);
  return readMessage(head, text, () => head.framing);
}

/** As the answer to a GET. */
export function readResponse(text: string): Reading {
  const head = new ResponseHead(defaultHttp1Limits);
  return readMessage(head, text, () => head.framingFor('GET'));
}

function readMessage(
  head: RequestHead | ResponseHead,
  text: string,
  framing: () => RequestHead['framing'],
): Reading {
  const outcome = head.feed(text);
  if (outcome === 'refused') return { kind: 'refused', reason: head.refusal };
  if (outcome === 'more') return { kind: 'incomplete' };
  const body = new MessageBody(defaultHttp1Limits);
  body.begin(framing(), head.contentLength);
  const rest = text.slice(head.end);
  const taken = body.take(Buffer.from(rest, 'latin1'));
  if (taken === 'refused') return { kind: 'refused', reason: body.refusal };
  if (taken === 'more') return { kind: 'incomplete' };
  const passedBody = passedOf(body, rest);
  const isChunked = body.framing === 'chunked';
  const fields: string[] = [];
  head.eachHeader((name, value) => fields.push(name, value));
  return {
    kind: 'read',
    head,
    fields,
    trailers: isChunked ? trailerFields(body.trailers) : [],
    body: isChunked ? withoutFraming(passedBody) : passedBody,
    end: head.end + body.end,
    passed: text.slice(head.start, head.end) + passedBody,
  };
}

function passedOf(body: MessageBody, rest: string): string {
  if (body.passesWhole) return rest.slice(0, body.end);
  let passed = '';
  let from = 0;
  for (let i = 0; i < body.dropped.length; i += 2) {
    passed += rest.slice(from, body.dropped[i]);
    from = body.dropped[i + 1] ?? 0;
  }
  return passed + rest.slice(from, body.end) + body.trailers;
}

/** Content of chunks without extensions, which are known to be valid. */
function withoutFraming(chunks: string): string {
  let content = '';
  let at = 0;
  for (;;) {
    const lineEnd = chunks.indexOf('\r\n', at);
    const size = Number.parseInt(chunks.slice(at, lineEnd), 16);
    if (!(size > 0)) return content;
    content += chunks.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
}

function trailerFields(section: string): string[] {
  const lines = section.split('\r\n').filter((line) => line !== '');
  return lines.flatMap((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')];
  });
}
