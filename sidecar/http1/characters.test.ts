import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { equalsFolded, hexValue, isTokenChar, isValueChar } from './characters.ts';

describe('the character classes', () => {
  it('agree with the grammar on every byte', () => {
    for (let code = 0; code < 256; code += 1) {
      const char = String.fromCharCode(code);
      const hex = /[0-9a-fA-F]/.test(char) ? Number.parseInt(char, 16) : -1;

      assert.equal(isTokenChar(code), /[!#$%&'*+\-.^_`|~0-9a-zA-Z]/.test(char), `tchar ${code}`);
      assert.equal(isValueChar(code), /[\t\x20-\x7e\x80-\xff]/.test(char), `value ${code}`);
      assert.equal(hexValue(code), hex, `hex ${code}`);
    }
  });

  it('compare names without ASCII case and nothing else', () => {
    assert.equal(equalsFolded('..Host', 2, 'host'), true);
    assert.equal(equalsFolded('..HosT_', 2, 'host_'), true);
    // 0x5b and 0x7b differ by the case bit but are no letters.
    assert.equal(equalsFolded('a[', 0, 'a{'), false);
    assert.equal(equalsFolded('hos', 0, 'host'), false);
  });
});
