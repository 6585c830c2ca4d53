// What is forwarded, read by llhttp: no field of one hop ever reaches the next, everything else does, in order.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { defaultHttp1Limits } from '../../sidecar/http1/limits.ts';
import { RequestHead } from '../../sidecar/http1/request-head.ts';
import { ResponseHead } from '../../sidecar/http1/response-head.ts';
import {
  forwardedRequestHead,
  forwardedResponseHead,
  hopFields,
} from '../../sidecar/proxy/forwarded-head.ts';
import { seenByLlhttp } from '../support/llhttp.ts';

const hopNames = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'te',
  'http2-settings',
]);
/** Set by the proxy itself, whatever came. */
const ownNames = new Set(['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded']);

const name = fc.constantFrom(
  ...hopNames,
  ...ownNames,
  'accept',
  'cookie',
  'date',
  'expect',
  'trailer',
  'x-a',
  'x-b',
  'x-ab',
);
const value = fc.oneof(
  fc.constantFrom(
    '',
    'trailers',
    'gzip, trailers',
    'websocket',
    'h2c',
    'a, b',
    'timeout=5',
    '192.0.2.7',
  ),
  fc.stringMatching(/^[!-~\x80-\xff]([ \t]?[!-~\x80-\xff]){0,8}$/),
);
const option = fc.oneof(
  name,
  fc.constantFrom('close', 'keep-alive', 'Upgrade', 'TE', 'x-forwarded-for'),
);

type Line = readonly [name: string, value: string];

const connectionLine: fc.Arbitrary<Line> = fc
  .array(fc.tuple(option, fc.boolean()), { maxLength: 4 })
  .map((options) => [
    'connection',
    options.map(([text, upper]) => (upper ? text.toUpperCase() : text)).join(', '),
  ]);
const plainLine: fc.Arbitrary<Line> = fc
  .tuple(name, value, fc.boolean())
  .filter(([lower]) => lower !== 'connection')
  .map(([lower, text, upper]) => [upper ? lower.toUpperCase() : lower, text]);
const lines = fc.array(
  fc.oneof({ weight: 4, arbitrary: plainLine }, { weight: 1, arbitrary: connectionLine }),
  {
    maxLength: 12,
  },
);

function textOf(start: string, fields: readonly Line[]): string {
  return `${start}\r\n${fields.map(([n, v]) => `${n}: ${v}\r\n`).join('')}\r\n`;
}

function nominatedBy(fields: readonly Line[]): ReadonlySet<string> {
  const values = fields.filter(([n]) => n.toLowerCase() === 'connection').map(([, v]) => v);
  return new Set(values.flatMap((v) => v.split(',')).map((v) => v.trim().toLowerCase()));
}

function pairs(flat: readonly string[]): Line[] {
  const result: Line[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) result.push([flat[i] ?? '', flat[i + 1] ?? '']);
  return result;
}

/** Fields that are nobody's but the two ends'. */
function endToEnd(fields: readonly Line[], nominated: ReadonlySet<string>): Line[] {
  return fields.filter(([n]) => {
    const lower = n.toLowerCase();
    return !hopNames.has(lower) && !ownNames.has(lower) && !nominated.has(lower);
  });
}

describe('a forwarded request', () => {
  it('carries every end-to-end field in order and none of this hop', () => {
    const property = fc.property(lines, (fields) => {
      const all: Line[] = [['Host', 'a.example'], ...fields];
      const head = new RequestHead(defaultHttp1Limits);
      assert.equal(head.feed(textOf('GET /x HTTP/1.1', all)), 'complete');

      const text = forwardedRequestHead(head, hopFields('2001:db8::7', 'http', ''));

      const seen = seenByLlhttp('request', text);
      assert.equal(seen.error, undefined, text);
      const sent = pairs(seen.messages[0]?.fields ?? []);
      assert.deepEqual(endToEnd(sent, new Set()), endToEnd(all, nominatedBy(all)), text);
      for (const [n, v] of sent) {
        const lower = n.toLowerCase();
        if (lower === 'connection') assert.equal(v, 'Upgrade');
        else if (lower === 'upgrade') assert.doesNotMatch(v, /\bh2c?\b/i);
        else if (lower === 'te') assert.equal(v, 'trailers');
        else assert(!hopNames.has(lower), text);
      }
      const forwardedFor = sent.filter(([n]) => n.toLowerCase() === 'x-forwarded-for');
      assert.match(forwardedFor.at(-1)?.[1] ?? '', /(^|, )2001:db8::7$/);
      assert.equal(
        forwardedFor
          .map(([, v]) => v)
          .join()
          .split('2001:db8::7').length,
        2,
        text,
      );
    });

    fc.assert(property, { numRuns: 3_000 });
  });
});

describe('a forwarded response', () => {
  it('carries every end-to-end field in order and none of the other hop', () => {
    const property = fc.property(lines, fc.boolean(), (fields, closes) => {
      const head = new ResponseHead(defaultHttp1Limits);
      const text = textOf('HTTP/1.1 200 OK', [...fields, ['Content-Length', '0']]);
      assert.equal(head.feed(text), 'complete');

      const passed = forwardedResponseHead(head, {
        fields: 'X-Own: 1\r\n',
        replacesQuota: false,
        dateLine: '',
        viaLine: '',
        closes,
      });

      const seen = seenByLlhttp('response', passed);
      assert.equal(seen.error, undefined, passed);
      const sent = pairs(seen.messages[0]?.fields ?? []);
      const nominated = nominatedBy(fields);
      const kept = fields.filter(
        ([n]) => !hopNames.has(n.toLowerCase()) && !nominated.has(n.toLowerCase()),
      );
      const own: Line[] = [
        ['Content-Length', '0'],
        ['X-Own', '1'],
      ];
      if (closes) own.push(['Connection', 'close']);
      assert.deepEqual(sent, [...kept, ...own], passed);
    });

    fc.assert(property, { numRuns: 3_000 });
  });
});
