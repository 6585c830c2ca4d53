// A head is read anew for every message of its connection, and remembers the field lines of the one before. What it
// remembers must never show: a used head reads every message as a fresh one does.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { maxRememberedBytes } from './field-section.ts';
import { defaultHttp1Limits } from './limits.ts';
import { RequestHead } from './request-head.ts';

const limits = { ...defaultHttp1Limits, maxHeadBytes: 6_000, maxFieldLines: 6 };

interface Read {
  readonly outcome: string;
  readonly refusal: string | undefined;
  readonly lines: readonly (readonly [string, string, number, number, number])[];
  readonly rest: string;
  readonly host: string;
  readonly wantsClose: boolean;
  readonly seen: number;
}

function read(head: RequestHead, pieces: readonly string[]): Read {
  head.reset();
  let outcome = 'more';
  for (const piece of pieces) {
    if (outcome === 'more') outcome = head.feed(piece);
  }
  if (outcome !== 'complete') {
    const refusal = outcome === 'refused' ? head.refusal : undefined;
    return { outcome, refusal, lines: [], rest: '', host: '', wantsClose: false, seen: 0 };
  }
  const lines = Array.from(
    { length: head.count },
    (_, line) =>
      [
        head.name(line),
        head.value(line),
        head.kind(line),
        head.lineStart(line),
        head.lineEnd(line),
      ] as const,
  );
  const { host, wantsClose, seen } = head;
  return {
    outcome,
    refusal: undefined,
    lines,
    rest: head.text.slice(head.end),
    host,
    wantsClose,
    seen,
  };
}

function assertAsFresh(messages: readonly (readonly string[])[]): void {
  const used = new RequestHead(limits);
  for (const pieces of messages) {
    assert.deepEqual(read(used, pieces), read(new RequestHead(limits), pieces));
  }
}

const FIELDS = 'Host: a.example\r\nX-Api-Key: k\r\nAccept: */*\r\n\r\n';

describe('a head that has read a message before', () => {
  const sequences: Readonly<Record<string, readonly (readonly string[])[]>> = {
    'reads the same message again': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'reads the same lines behind a longer request line': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET /longer HTTP/1.1\r\n${FIELDS}next`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'reads the same lines behind an empty line': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`\r\nGET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'notices one changed byte': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\n${FIELDS.replace('k', 'K')}`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'notices a line more': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\nX: 1\r\n${FIELDS}`],
    ],
    'notices that the lines break off': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\n${FIELDS.slice(0, -2)}`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'reads lines that come in pieces': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\nHost: a.ex`, `ample\r\nX-Api-Key: k\r\nAccept: */*\r\n\r\n`],
      [`GET / HTTP/1.1\r\n`, FIELDS],
    ],
    'judges the same lines anew for another version': [
      [`GET / HTTP/1.0\r\n${FIELDS}`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'judges the same host against another target': [
      [`GET http://a.example/ HTTP/1.1\r\n${FIELDS}`],
      [`GET http://b.example/ HTTP/1.1\r\n${FIELDS}`],
    ],
    'finds nominated lines again': [
      ['GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a\r\nX-A: 1\r\n\r\n'],
      ['GET / HTTP/1.1\r\nHost: a\r\nConnection: x-a\r\nX-A: 1\r\n\r\n'],
    ],
    'reads after a message that was refused': [
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      ['GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
      ['GET / HTTP/1.1\r\nHost: \r\n\r\n'],
      ['GET / HTTP/1.1\r\nHost: \r\n\r\n'],
    ],
    'keeps the bound of a whole head': [
      [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3_900)}\r\n\r\n`],
      [`GET /${'p'.repeat(2_500)} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(3_900)}\r\n\r\n`],
    ],
    'remembers nothing out of a large text': [
      [`GET / HTTP/1.1\r\n${FIELDS}${'b'.repeat(maxRememberedBytes)}`],
      [`GET / HTTP/1.1\r\n${FIELDS}`],
    ],
    'reads a message without fields': [['GET / HTTP/1.0\r\n\r\n'], ['GET / HTTP/1.0\r\n\r\n']],
  };
  for (const [claim, messages] of Object.entries(sequences)) {
    it(claim, () => {
      assertAsFresh(messages);
    });
  }

  it('reads any sequence of messages in any pieces as a fresh one does', () => {
    const line = fc.constantFrom(
      'Host: a\r\n',
      'Host: b\r\n',
      'X: 1\r\n',
      'X: 2\r\n',
      'Connection: close\r\n',
      'Connection: x\r\n',
      'Content-Length: 1\r\n',
      'Bad\r\n',
    );
    const start = fc.constantFrom(
      'GET / HTTP/1.1\r\n',
      'GET /a HTTP/1.1\r\n',
      'GET / HTTP/1.0\r\n',
    );
    const message = fc
      .tuple(start, fc.array(line, { maxLength: 7 }), fc.boolean())
      .map(([first, lines, ends]) => `${first}${lines.join('')}${ends ? '\r\n' : ''}`);
    const pieces = fc
      .tuple(message, fc.nat(80))
      .map(([text, cut]) => [text.slice(0, cut), text.slice(cut)].filter((part) => part !== ''));

    fc.assert(
      fc.property(fc.array(pieces, { minLength: 2, maxLength: 8 }), (messages) => {
        // Each twice in a row, as connections do.
        assertAsFresh(messages.flatMap((one) => [one, one]));
      }),
      { numRuns: 2_000 },
    );
  });
});
