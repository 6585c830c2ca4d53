// Whatever our engine accepts, llhttp (strict) reads the same way: method, target, fields, body, trailers, and where
// the message ends. That is what keeps two servers in a row from disagreeing about a request. The converse does not
// hold on purpose; the reasons we refuse what llhttp takes are listed below, and no other may appear.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { describe, it } from 'node:test';
import type { RefusalReason } from '../../sidecar/http1/refusal.ts';
import type { RequestHead } from '../../sidecar/http1/request-head.ts';
import type { ResponseHead } from '../../sidecar/http1/response-head.ts';
import { readRequest, readResponse } from '../support/engine-reading.ts';
import type { ReadMessage, Reading } from '../support/engine-reading.ts';
import { MessageGenerator } from '../support/http1-messages.ts';
import { isKnownMethod, seenByLlhttp } from '../support/llhttp.ts';
import type { Seen } from '../support/llhttp.ts';

/** Why we refuse a message that llhttp accepts. */
const stricterOnPurpose: Partial<Record<RefusalReason, string>> = {
  'chunk-extension': 'whitespace around extensions is a known way to make two parsers disagree',
  connect: 'a tunnel is not ours to give',
  'connection-options': 'nominating the framing or Host for removal would change the message',
  'field-value': 'llhttp takes some control characters in values; RFC 9110 §5.5 does not',
  'host-invalid': 'llhttp does not look at Host; virtual hosts and limits depend on it',
  'host-mismatch': 'llhttp does not compare the target with Host (RFC 9112 §3.2.2)',
  'host-missing': 'llhttp does not ask for Host; RFC 9112 §3.2 does',
  'host-repeated': 'llhttp does not count Host lines; RFC 9112 §3.2 does',
  'http2-preface': 'llhttp reads the preface of HTTP/2 as a request',
  'length-and-chunked':
    'llhttp lets Transfer-Encoding win in responses; RFC 9112 §6.3 calls it a likely attack',
  'obs-fold': 'llhttp takes folded lines; RFC 9112 §5.2 lets a server refuse them',
  target:
    'llhttp takes fragments, userinfo and other schemes; a request-target has none (RFC 9112 §3.2)',
  'trailer-field':
    'framing, routing and hop-by-hop fields do not belong into trailers (RFC 9110 §6.5.1)',
  'transfer-encoding': 'only the one coding whose end everybody finds the same way',
  version: 'HTTP/0.9 and 2.0 in the form of 1.1 are nobody’s request',
  'request-line': 'llhttp takes several spaces or none before the target',
  method: 'llhttp skips empty lines before the request line without end; we skip one',
  'transfer-encoding-repeated':
    'llhttp takes a list in several lines that ends in chunked; we take one line',
  'content-length': 'whitespace behind a length is one more thing to read in two ways',
  'bare-lf': 'llhttp skips LF, and LF alone, before the start line',
  'status-line': 'llhttp takes reasons with control characters and shorter lines',
};

const next = 'GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n';
const nextResponse = 'HTTP/1.1 299 Next\r\nContent-Length: 0\r\n\r\n';

describe('our engine against llhttp', () => {
  // 140 000 + 70 000 messages: about 10 s here. The seed is new in every run and printed when something differs.
  const seed = randomInt(2 ** 31);

  it(`reads 140 000 generated requests as llhttp does (seed ${String(seed)})`, () => {
    const tally = new Tally();
    const generator = new MessageGenerator(seed);

    for (let n = 0; n < 140_000; n += 1) compareRequest(generator.request(), tally);

    tally.check(20_000);
  });

  it(`reads 70 000 generated responses as llhttp does (seed ${String(seed)})`, () => {
    const tally = new Tally();
    const generator = new MessageGenerator(seed);

    for (let n = 0; n < 70_000; n += 1) compareResponse(generator.response(), tally);

    tally.check(10_000);
  });
});

/** Counts what happened, so that a generator gone dull cannot pass for agreement. */
class Tally {
  agreed = 0;
  readonly refusedOnly = new Map<RefusalReason, string>();

  check(leastAgreed: number): void {
    assert(this.agreed >= leastAgreed, `only ${String(this.agreed)} messages were accepted`);
    const unexplained = [...this.refusedOnly].filter(([r]) => stricterOnPurpose[r] === undefined);
    assert.deepEqual(unexplained, [], 'refused here, accepted by llhttp, and no reason listed');
  }
}

function compareRequest(text: string, tally: Tally): void {
  const reading = readRequest(text);
  if (reading.kind !== 'read') {
    noteRefusal(reading, seenByLlhttp('request', text), { text, tally });
    return;
  }
  tally.agreed += 1;
  const head = reading.head;
  assert('method' in head);
  for (const original of [text.slice(0, reading.end), reading.passed]) {
    assertRequestSeen(original, head, reading);
  }
}

function assertRequestSeen(original: string, head: RequestHead, reading: ReadMessage): void {
  // After `Connection: close`, and after an upgrade, llhttp reads no next message.
  const follows = !head.wantsClose && !/upgrade/i.test(original);
  const text = comparable(original, head) + (follows ? next : '');
  const seen = seenByLlhttp('request', text);
  const context = `${JSON.stringify(original)} → ${JSON.stringify(seen)}`;
  const [first, second] = seen.messages;
  assert.equal(seen.error, undefined, context);
  assert(first !== undefined, context);
  const method = isKnownMethod(head.method) ? head.method : 'POST';
  assert.deepEqual([first.method, first.target], [method, encoded(head.target)], context);
  assertContent(first, reading, context);
  if (follows) assert.equal(second?.target, '/next', context);
}

// Methods outside llhttp's list are compared as POST, bytes above ASCII in a target percent-encoded.
function comparable(text: string, head: RequestHead): string {
  const method = isKnownMethod(head.method) ? head.method : 'POST';
  const at = text.indexOf(head.method) + head.method.length + 1;
  return `${method} ${encoded(head.target)}${text.slice(at + head.target.length)}`;
}

function encoded(target: string): string {
  return target.replace(/[\x80-\xff]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
}

function compareResponse(text: string, tally: Tally): void {
  const reading = readResponse(text);
  if (reading.kind !== 'read') {
    noteRefusal(reading, seenByLlhttp('response', text), { text, tally });
    return;
  }
  tally.agreed += 1;
  const head = reading.head;
  assert('status' in head);
  for (const original of [text.slice(0, reading.end), reading.passed]) {
    assertResponseSeen(original, head, reading);
  }
}

function assertResponseSeen(original: string, head: ResponseHead, reading: ReadMessage): void {
  const follows = !head.wantsClose && !/upgrade/i.test(original);
  const seen = seenByLlhttp('response', original + (follows ? nextResponse : ''));
  const context = `${JSON.stringify(original)} → ${JSON.stringify(seen)}`;
  const [first, second] = seen.messages;
  assert.equal(seen.error, undefined, context);
  assert(first !== undefined, context);
  assert.equal(first.status, head.status, context);
  assertContent(first, reading, context);
  if (follows) assert.equal(second?.status, 299, context);
}

function assertContent(
  seen: Seen['messages'][number],
  reading: ReadMessage,
  context: string,
): void {
  assert.deepEqual(seen.fields, reading.fields, context);
  if (seen.upgrade) return;
  assert.equal(seen.body, reading.body, context);
  assert.deepEqual(seen.trailers, reading.trailers, context);
  assert.equal(seen.complete, true, context);
}

function noteRefusal(
  reading: Exclude<Reading, { kind: 'read' }>,
  seen: Seen,
  found: { readonly text: string; readonly tally: Tally },
): void {
  if (reading.kind !== 'refused' || seen.error !== undefined) return;
  if (seen.messages.some((message) => message.complete)) {
    found.tally.refusedOnly.set(reading.reason, found.text);
  }
}
