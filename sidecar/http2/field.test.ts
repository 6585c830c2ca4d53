import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CONTENT_LENGTH, HOST, TE } from '../http1/field-kind.ts';
import { Field } from './field.ts';

function isMalformed(name: string, value = ''): boolean {
  return new Field(name, value, 'plain').isMalformed;
}

describe('a field line', () => {
  it('takes its bytes and 32 more in a table', () => {
    assert.equal(new Field('custom-key', 'custom-header', 'indexed').size, 55);
    assert.equal(new Field('', '', 'indexed').size, 32);
  });

  it('knows its kind, which no pseudo-field has', () => {
    assert.equal(new Field('host', '', 'plain').kind, HOST);
    assert.equal(new Field('content-length', '0', 'plain').kind, CONTENT_LENGTH);
    assert.equal(new Field('te', 'trailers', 'plain').kind, TE);
    assert.equal(new Field('x-other', '', 'plain').kind, 0);
    const pseudo = new Field(':status', '200', 'plain');
    assert.equal(pseudo.kind, 0);
    assert(pseudo.isPseudo);
    assert(!new Field('status', '200', 'plain').isPseudo);
  });

  it('may have a name of lower-case token characters, behind a colon or not', () => {
    for (const name of ['a', ':a', 'x-1', "!#$%&'*+-.^_`|~09az"]) assert(!isMalformed(name), name);
  });

  it('is malformed with any other name', () => {
    const others = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter(
      (char) => !/[a-z0-9!#$%&'*+\-.^_`|~]/.test(char),
    );
    for (const char of others) {
      assert(isMalformed(`a${char}`), JSON.stringify(char));
      assert(isMalformed(`:${char}`), JSON.stringify(char));
    }
    assert(isMalformed(''));
    assert(isMalformed(':'));
    assert(isMalformed('a:b'));
  });

  it('may have a value of tabs and all bytes that are no control characters', () => {
    for (let code = 0; code < 256; code += 1) {
      const isControl = (code < 0x20 && code !== 0x09) || code === 0x7f;
      assert.equal(isMalformed('a', `x${String.fromCharCode(code)}x`), isControl, String(code));
    }
    assert(!isMalformed('a', ''));
  });

  it('is malformed with a blank before or behind its value', () => {
    for (const blank of [' ', '\t']) {
      assert(isMalformed('a', blank));
      assert(isMalformed('a', `${blank}x`));
      assert(isMalformed('a', `x${blank}`));
      assert(!isMalformed('a', `x${blank}x`));
    }
  });

  it('is malformed when it speaks of one hop of HTTP/1.1', () => {
    for (const name of [
      'connection',
      'http2-settings',
      'keep-alive',
      'proxy-connection',
      'transfer-encoding',
      'upgrade',
    ]) {
      assert(isMalformed(name, 'x'), name);
    }
    assert(!isMalformed('te', 'trailers'));
    assert(isMalformed('te', 'gzip'));
    assert(isMalformed('te', 'trailers, gzip'));
    assert(isMalformed('te', ''));
  });
});
