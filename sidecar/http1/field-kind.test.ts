import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as kinds from './field-kind.ts';

const named: Readonly<Record<string, number>> = {
  connection: kinds.CONNECTION,
  'content-length': kinds.CONTENT_LENGTH,
  date: kinds.DATE,
  forwarded: kinds.FORWARDED,
  host: kinds.HOST,
  'http2-settings': kinds.HTTP2_SETTINGS,
  'keep-alive': kinds.KEEP_ALIVE,
  'proxy-connection': kinds.PROXY_CONNECTION,
  ratelimit: kinds.RATE_LIMIT,
  'ratelimit-policy': kinds.RATE_LIMIT_POLICY,
  te: kinds.TE,
  'transfer-encoding': kinds.TRANSFER_ENCODING,
  upgrade: kinds.UPGRADE,
  'x-forwarded-for': kinds.X_FORWARDED_FOR,
  'x-forwarded-host': kinds.X_FORWARDED_HOST,
  'x-forwarded-proto': kinds.X_FORWARDED_PROTO,
  'x-ratelimit-limit': kinds.X_RATE_LIMIT,
  'x-ratelimit-remaining': kinds.X_RATE_LIMIT_REMAINING,
  'x-ratelimit-reset': kinds.X_RATE_LIMIT,
};

function kindOf(name: string): number {
  return kinds.fieldKindOf(`<${name}:`, 1, name.length + 1);
}

describe('the kind of a field', () => {
  for (const [name, kind] of Object.entries(named)) {
    it(`is known for ${name} in any case, and for no name that differs in one character`, () => {
      assert.equal(kindOf(name), kind);
      assert.equal(kindOf(name.toUpperCase()), kind);
      for (let at = 0; at < name.length; at += 1) {
        assert.equal(kindOf(`${name.slice(0, at)}~${name.slice(at + 1)}`), kinds.OTHER);
      }
    });
  }

  it('is other for names of any other length', () => {
    for (let length = 1; length < 40; length += 1) assert.equal(kindOf('x'.repeat(length)), 0);
  });

  it('has a bit of its own', () => {
    const bits = new Set([...new Set(Object.values(named)), kinds.NOMINATED].map(kinds.bitOf));

    assert.equal(bits.size, new Set(Object.values(named)).size + 1);
  });
});
