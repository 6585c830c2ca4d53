import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { CompiledKeyPart, OnMissingKey } from '../../contract/bundle.ts';
import { keyTextOf, requestOf, ruleOf } from '../../test/support/rule-bundle.ts';
import { layoutOf, sized } from './key-text.ts';

const HEADER: CompiledKeyPart = { kind: 'header', name: 'x-api-key' };

describe('key text', () => {
  it('carries kind, name and value with their lengths', async () => {
    const request = requestOf({ headers: { 'X-Api-Key': 'abc' } });

    const text = await keyTextOf({ key: [HEADER, { kind: 'method' }] }, request);

    assert.equal(text, 'k2h9:x-api-key3:abcm0:3:GET');
  });

  it('is constant for a rule without key', async () => {
    assert.equal(await keyTextOf({}, requestOf()), 'r');
  });

  it('of an address in a header is not that of the missing header', async () => {
    const sent = requestOf({ headers: { 'X-Api-Key': '192.0.2.1' } });
    const rule = { key: [HEADER], onMissingKey: 'ClientIP' as const };

    const [present, missing] = [await keyTextOf(rule, sent), await keyTextOf(rule, requestOf())];

    assert.equal(present, 'k1h9:x-api-key9:192.0.2.1');
    assert.equal(missing, 'm12:h9:x-api-key9:192.0.2.1');
  });

  it('of an address in a header is not that of an address key', async () => {
    const sent = requestOf({ headers: { 'X-Api-Key': '192.0.2.1' } });

    assert.notEqual(
      await keyTextOf({ key: [HEADER] }, sent),
      await keyTextOf({ key: [{ kind: 'clientIP' }] }, sent),
    );
  });

  it('changes with the name of a part, so that a changed key starts new buckets', () => {
    const one = layoutOf([{ kind: 'header', name: 'a' }]);
    const other = layoutOf([{ kind: 'header', name: 'b' }]);

    assert.notEqual(one.partPrefixes[0], other.partPrefixes[0]);
    assert.notEqual(one.missingPrefix, other.missingPrefix);
    assert.notEqual(one.sharedText, other.sharedText);
  });

  it('is never the same for two different keys', () => {
    const value = fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom('1', ':', 'h') });
    const name = fc.string({ maxLength: 3, unit: fc.constantFrom('1', ':', 'h') });
    const part: fc.Arbitrary<CompiledKeyPart> = fc.oneof(
      name.map((n): CompiledKeyPart => ({ kind: 'header', name: n })),
      name.map((n): CompiledKeyPart => ({ kind: 'cookie', name: n })),
      name.map((n): CompiledKeyPart => ({ kind: 'query', name: n })),
      name.map((expression): CompiledKeyPart => ({ kind: 'cel', expression })),
      fc
        .array(name, { minLength: 1, maxLength: 3 })
        .map((path): CompiledKeyPart => ({ kind: 'claim', path })),
      fc
        .integer({ min: 1, max: 32 })
        .map((index): CompiledKeyPart => ({ kind: 'pathSegment', index })),
      fc.constantFrom<CompiledKeyPart>(
        { kind: 'clientIP' },
        { kind: 'path' },
        { kind: 'method' },
        { kind: 'host' },
      ),
    );
    const parts = fc.array(fc.tuple(part, value), { minLength: 1, maxLength: 3 });
    const presence = fc.constantFrom<'present' | OnMissingKey>('present', 'ClientIP', 'Shared');
    const key = fc.record({ parts, presence, address: value });
    type Key = typeof key extends fc.Arbitrary<infer T> ? T : never;

    fc.assert(
      fc.property(key, key, (a, b) => {
        const isSame = JSON.stringify(identity(a)) === JSON.stringify(identity(b));

        assert.equal(textOf(a) === textOf(b), isSame);
      }),
      { numRuns: 20_000 },
    );

    function textOf({ parts: list, presence: kind, address }: Key): string {
      const layout = layoutOf(list.map(([one]) => one));
      if (kind === 'Shared') return layout.sharedText;
      if (kind === 'ClientIP') return layout.missingPrefix + sized(address);
      return list.map(([, sent], i) => String(layout.partPrefixes[i]) + sized(sent)).join('');
    }

    function identity({ parts: list, presence: kind, address }: Key): unknown {
      if (kind === 'present') return list;
      const definition = list.map(([one]) => one);
      return kind === 'Shared' ? [kind, definition] : [kind, definition, address];
    }
  });
});

describe('keys of every kind', () => {
  const request = requestOf({
    method: 'PUT',
    target: '/v1/Users/42?tenant=a%20b&tenant=c',
    host: 'API.Shop.example.:8443',
    peerAddress: '::ffff:203.0.113.7',
    headers: [
      ['X-Api-Key', 'abc'],
      ['Cookie', 'session=s1; session=s2'],
    ],
  });
  const keys: Readonly<Record<string, readonly [part: CompiledKeyPart, value: string]>> = {
    'the client address, an IPv4-mapped one as IPv4': [{ kind: 'clientIP' }, '203.0.113.7'],
    'a header': [HEADER, 'abc'],
    'the first cookie of a name': [{ kind: 'cookie', name: 'session' }, 's1'],
    'the first query pair of a name, decoded': [{ kind: 'query', name: 'tenant' }, 'a b'],
    'the normalised path': [{ kind: 'path' }, '/v1/Users/42'],
    'a path segment': [{ kind: 'pathSegment', index: 3 }, '42'],
    'the method': [{ kind: 'method' }, 'PUT'],
    'the host, lower case, without port and final dot': [{ kind: 'host' }, 'api.shop.example'],
    'a constant': [{ kind: 'constant', value: 'all' }, 'all'],
    'a constant beyond ASCII, as bytes': [{ kind: 'constant', value: 'é' }, '\u00c3\u00a9'],
    'an expression': [{ kind: 'cel', expression: 'request.headers["x-api-key"] + "!"' }, 'abc!'],
    'an expression beyond ASCII, as bytes': [{ kind: 'cel', expression: '"é"' }, '\u00c3\u00a9'],
  };
  for (const [what, [part, value]] of Object.entries(keys)) {
    it(`read ${what}`, async () => {
      const text = await keyTextOf({ key: [part] }, request);

      assert.equal(text, String(layoutOf([part]).partPrefixes[0]) + sized(value));
    });
  }

  it('keep the port of no IPv6 host', async () => {
    const text = await keyTextOf({ key: [{ kind: 'host' }] }, requestOf({ host: '[::1]:80' }));
    const bare = await keyTextOf({ key: [{ kind: 'host' }] }, requestOf({ host: '[::1]' }));

    assert.equal(text, 'k1o0:5:[::1]');
    assert.equal(bare, text);
  });
});

describe('parts of one name', () => {
  it('are read from their own place', async () => {
    const key: CompiledKeyPart[] = [
      { kind: 'cookie', name: 'id' },
      { kind: 'query', name: 'id' },
      { kind: 'cookie', name: 'id' },
      { kind: 'query', name: 'id' },
    ];

    const request = requestOf({ target: '/?id=q', headers: { Cookie: 'id=c' } });

    assert.equal(await keyTextOf({ key }, request), 'k4c2:id1:cq2:id1:qc2:id1:cq2:id1:q');
  });
});

describe('a key counts as missing', () => {
  const cases: Readonly<Record<string, readonly [CompiledKeyPart, ReturnType<typeof requestOf>]>> =
    {
      'when its header is not sent': [HEADER, requestOf()],
      'when its header is empty': [HEADER, requestOf({ headers: { 'X-Api-Key': '' } })],
      'when its header is sent twice': [
        HEADER,
        requestOf({
          headers: [
            ['X-Api-Key', 'a'],
            ['x-api-key', 'a'],
          ],
        }),
      ],
      'when its cookie is not sent': [{ kind: 'cookie', name: 'a' }, requestOf()],
      'when its query pair is not sent': [{ kind: 'query', name: 'a' }, requestOf({ target: '/' })],
      'when the path has no such segment': [
        { kind: 'pathSegment', index: 2 },
        requestOf({ target: '/v1' }),
      ],
      'when there is no host': [{ kind: 'host' }, requestOf({ host: '' })],
      'when the address cannot be read': [{ kind: 'clientIP' }, requestOf({ peerAddress: '' })],
      'when its policy knows no issuer of claims': [{ kind: 'claim', path: ['sub'] }, requestOf()],
      'when its expression fails': [
        { kind: 'cel', expression: 'request.headers["x-none"]' },
        requestOf(),
      ],
      'when its expression gives an empty text': [{ kind: 'cel', expression: '""' }, requestOf()],
    };
  for (const [claim, [part, request]] of Object.entries(cases)) {
    it(claim, async () => {
      assert.equal(await keyTextOf({ key: [part], onMissingKey: 'Skip' }, request), undefined);
    });
  }

  it('when one of several parts is missing, wherever it stands', async () => {
    const missing: CompiledKeyPart = { kind: 'cookie', name: 'none' };
    const there: CompiledKeyPart = { kind: 'method' };
    for (const key of [
      [missing, there, there],
      [there, missing, there],
      [there, there, missing],
    ]) {
      assert.equal(await keyTextOf({ key, onMissingKey: 'Skip' }, requestOf()), undefined);
    }
  });

  it('not when its header holds a comma', async () => {
    const request = requestOf({ headers: { 'X-Api-Key': 'a, b' } });

    assert.equal(await keyTextOf({ key: [HEADER] }, request), 'k1h9:x-api-key4:a, b');
  });

  it('not when another header is sent twice', async () => {
    const request = requestOf({
      headers: [
        ['X', '1'],
        ['X', '2'],
        ['X-Api-Key', 'a'],
      ],
    });

    assert.equal(await keyTextOf(ruleOf({ key: [HEADER] }), request), 'k1h9:x-api-key1:a');
  });
});
