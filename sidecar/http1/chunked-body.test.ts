import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partitions } from '../../test/support/splits.ts';
import { ChunkedBody } from './chunked-body.ts';
import { defaultHttp1Limits } from './limits.ts';
import type { Http1Limits } from './limits.ts';

/** What the body made of the bytes: the outcome, and what would be passed on. */
function passed(body: ChunkedBody, parts: readonly string[]): { outcome: string; sent: string } {
  body.reset();
  let sent = '';
  for (const [index, part] of parts.entries()) {
    const bytes = Buffer.from(part, 'latin1');
    const outcome = body.advance(bytes, 0);
    if (outcome === 'refused') return { outcome: body.refusal, sent: '' };
    let from = 0;
    for (let i = 0; i < body.dropped.length; i += 2) {
      sent += part.slice(from, body.dropped[i]);
      from = body.dropped[i + 1] ?? 0;
    }
    sent += part.slice(from, body.end);
    if (outcome === 'complete') {
      const later = parts.slice(index + 1).join('').length;
      const more = part.length - body.end + later;
      return { outcome: `complete, ${String(more)} more`, sent: sent + body.trailers };
    }
  }
  return { outcome: 'more', sent };
}

function atEverySplit(
  text: string,
  limits: Partial<Http1Limits> = {},
): { outcome: string; sent: string } {
  const body = new ChunkedBody({ ...defaultHttp1Limits, ...limits });
  const first = passed(body, [text]);
  for (const parts of partitions(text)) assert.deepEqual(passed(body, parts), first);
  return first;
}

const whole: Readonly<Record<string, string>> = {
  'no chunk at all': '0\r\n\r\n',
  'two chunks': '3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n',
  'sizes in either case with leading zeros':
    '00a\r\n0123456789\r\n00B\r\n01234567890\r\n000\r\n\r\n',
  'data that looks like framing': '7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n',
  'a trailer section': '1\r\na\r\n0\r\nX-Sum: 1\r\nY: \r\n\r\n',
};

const stripped: Readonly<Record<string, readonly [text: string, sent: string]>> = {
  'a name': ['1;a\r\nx\r\n0;b\r\n\r\n', '1\r\nx\r\n0\r\n\r\n'],
  'a name and a token': ['1;a=b\r\nx\r\n0\r\n\r\n', '1\r\nx\r\n0\r\n\r\n'],
  'a quoted string with an escape': ['1;a="\\"\\\\;\t="\r\nx\r\n0\r\n\r\n', '1\r\nx\r\n0\r\n\r\n'],
  several: ['1;a;b=c;d="e";f\r\nx\r\n0;g=h\r\nT: u\r\n\r\n', '1\r\nx\r\n0\r\nT: u\r\n\r\n'],
};

const refused: Readonly<Record<string, readonly [reason: string, text: string]>> = {
  'an empty size': ['chunk-size', '\r\n'],
  'a size that is no hexadecimal number': ['chunk-size', 'g\r\n'],
  'a size with a prefix': ['chunk-size', '0x1\r\na\r\n'],
  'a negative size': ['chunk-size', '-1\r\n'],
  'a signed size': ['chunk-size', '+1\r\na\r\n'],
  'a space before the size': ['chunk-size', ' 1\r\na\r\n'],
  'a space after the size': ['chunk-size', '1 \r\na\r\n'],
  'a bare LF after the size': ['chunk-size', '1\na\r\n'],
  'a bare CR after the size': ['chunk-size', '1\ra\r\n'],
  'a size past 2^53 − 1': ['chunk-size', '20000000000000\r\n'],
  'a size that would wrap in 64 bits': ['chunk-size', '10000000000000001\r\na\r\n'],
  'data longer than its size': ['chunk-end', '1\r\nab\r\n0\r\n\r\n'],
  'a bare LF after data': ['chunk-end', '1\r\na\n0\r\n\r\n'],
  'a bare CR after data': ['chunk-end', '1\r\na\r0\r\n\r\n'],
  'a bare CR after the last chunk': ['chunk-end', '0\r\n\rX'],
  'a bare LF after the last chunk': ['bare-lf', '0\r\n\n'],
  'an extension without a name': ['chunk-extension', '1;\r\na\r\n'],
  'an extension with only a value': ['chunk-extension', '1;=a\r\na\r\n'],
  'an extension with an empty value': ['chunk-extension', '1;a=\r\na\r\n'],
  'whitespace around an extension': ['chunk-extension', '1; a\r\na\r\n'],
  'whitespace inside an extension': ['chunk-extension', '1;a =b\r\na\r\n'],
  'a bare LF in an extension': ['chunk-extension', '1;a\nb\r\na\r\n'],
  'a bare LF in a quoted string': ['chunk-extension', '1;a="\n"\r\na\r\n'],
  'a control character behind an escape': ['chunk-extension', '1;a="\\\0"\r\na\r\n'],
  'bytes behind a quoted string': ['chunk-extension', '1;a="b"c\r\na\r\n'],
  'a bare CR in an extension': ['chunk-size', '1;a\rb\r\na\r\n'],
  'a folded trailer': ['obs-fold', '0\r\nA: b\r\n c\r\n\r\n'],
  'a trailer with a space before its colon': ['space-before-colon', '0\r\nA : b\r\n\r\n'],
  'Content-Length as a trailer': ['trailer-field', '0\r\nContent-Length: 3\r\n\r\n'],
  'Transfer-Encoding as a trailer': ['trailer-field', '0\r\nTransfer-Encoding: chunked\r\n\r\n'],
  'Host as a trailer': ['trailer-field', '0\r\nHost: b\r\n\r\n'],
  'Connection as a trailer': ['trailer-field', '0\r\nA: b\r\nConnection: close\r\n\r\n'],
};

describe('a chunked body', () => {
  for (const [claim, text] of Object.entries(whole)) {
    it(`passes as it came at every split: ${claim}`, () => {
      assert.deepEqual(atEverySplit(text), { outcome: 'complete, 0 more', sent: text });
    });
  }

  for (const [claim, [text, sent]] of Object.entries(stripped)) {
    it(`loses its extensions at every split: ${claim}`, () => {
      assert.deepEqual(atEverySplit(text), { outcome: 'complete, 0 more', sent });
    });
  }

  for (const [claim, [reason, text]] of Object.entries(refused)) {
    it(`is refused at every split: ${claim}`, () => {
      assert.equal(atEverySplit(text).outcome, reason);
    });
  }

  it('leaves what follows it alone', () => {
    assert.equal(atEverySplit('0\r\n\r\nGET').outcome, 'complete, 3 more');
    assert.equal(atEverySplit('0\r\nA: b\r\n\r\nGET').outcome, 'complete, 3 more');
  });

  it('starts at the offset it is told', () => {
    const body = new ChunkedBody(defaultHttp1Limits);

    assert.equal(body.advance(Buffer.from('head0\r\n\r\nrest'), 4), 'complete');

    assert.equal(body.end, 9);
  });

  it('takes a size of 2^53 − 1', () => {
    assert.equal(atEverySplit('1fffffffffffff\r\na').outcome, 'more');
  });
});

describe('the bounds of a chunked body', () => {
  it('admit a size line of exactly the bytes allowed and refuse one more', () => {
    const text = '1;abc\r\nx\r\n0\r\n\r\n';

    assert.equal(atEverySplit(text, { maxChunkLineBytes: 7 }).outcome, 'complete, 0 more');
    assert.equal(atEverySplit(text, { maxChunkLineBytes: 6 }).outcome, 'chunk-line-too-long');
  });

  it('count each size line anew', () => {
    const text = '1\r\nx\r\n'.repeat(20) + '0\r\n\r\n';

    assert.equal(atEverySplit(text, { maxChunkLineBytes: 3 }).outcome, 'complete, 0 more');
  });

  it('admit a trailer section of exactly the bytes allowed and refuse one more', () => {
    const text = '0\r\nA: b\r\n\r\nnext';

    assert.equal(atEverySplit(text, { maxTrailerBytes: 8 }).outcome, 'complete, 4 more');
    assert.equal(atEverySplit(text, { maxTrailerBytes: 7 }).outcome, 'trailer-too-large');
  });
});
