import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  firstSegment,
  formDecoded,
  normalPath,
  rawPath,
  rawQuery,
  segmentAt,
} from './request-target.ts';

describe('normalPath', () => {
  const paths: Readonly<Record<string, readonly [target: string, path: string | undefined]>> = {
    'leaves a plain path alone': ['/v1/users', '/v1/users'],
    'leaves the root alone': ['/', '/'],
    'cuts the query off': ['/v1?a=/../b', '/v1'],
    'decodes an escape once': ['/%76%31', '/v1'],
    'decodes lower-case and upper-case digits': ['/%2a%2A', '/**'],
    'does not decode what an escape gave': ['/%252e%252e/x', '/%2e%2e/x'],
    'decodes an escaped slash into a segment end': ['/v1%2Fadmin', '/v1/admin'],
    'removes a dot segment': ['/a/./b', '/a/b'],
    'removes two dots with the segment before them': ['/a/../b', '/b'],
    'removes escaped dot segments': ['/v1/%2e%2e/admin', '/admin'],
    'removes dot segments that an escaped slash delimits': ['/a%2f..%2fb', '/b'],
    'does not climb above the root': ['/../../a', '/a'],
    'removes doubled slashes': ['//a///b', '/a/b'],
    'keeps a final slash': ['/a/b/', '/a/b/'],
    'reads a final dot as a folder': ['/a/.', '/a/'],
    'reads final two dots as a folder': ['/a/b/..', '/a/'],
    'gives the root for two dots at the root': ['/a/..', '/'],
    'keeps dots within a segment': ['/.well-known/a..b', '/.well-known/a..b'],
    'keeps the asterisk of OPTIONS': ['*', '*'],
    'takes the path of an absolute target': ['http://shop.example/a/%62?c', '/a/b'],
    'gives the root for an absolute target without path': ['http://shop.example?c', '/'],
    'passes bytes above ASCII': ['/caf\u00c3\u00a9', '/caf\u00c3\u00a9'],
    'decodes to bytes, not to characters': ['/caf%C3%A9', '/caf\u00c3\u00a9'],
    'refuses an escape that is cut short': ['/a%2', undefined],
    'refuses a lone percent sign': ['/a%', undefined],
    'refuses an escape that is not hexadecimal': ['/%zz', undefined],
    'refuses an escape whose second digit is not hexadecimal': ['/%2g', undefined],
    'refuses a digit just below the letters': ['/%2`', undefined],
    'refuses a sign between digits and letters': ['/%:0', undefined],
    'refuses a target without a path': ['shop.example:443', undefined],
    'refuses a target that begins with the scheme delimiter': ['://a/b', undefined],
    'refuses an empty target': ['', undefined],
  };
  for (const [claim, [target, path]] of Object.entries(paths)) {
    it(claim, () => {
      assert.equal(normalPath(target), path);
    });
  }

  it('gives the same path for a normal path that is escaped again', () => {
    const target = fc
      .array(fc.constantFrom('a', '.', '..', '/', '%2e', '%2F', '%25', 'v1', '%41', '\u00e9'))
      .map((pieces) => `/${pieces.join('')}`);
    fc.assert(
      fc.property(target, (text) => {
        const once = normalPath(text);
        assert(once !== undefined);

        assert.equal(normalPath(escaped(once)), once);
      }),
    );
  });

  it('never leaves a dot segment or a doubled slash', () => {
    const target = fc
      .array(fc.constantFrom('a', '.', '/', '%2e', '%2F', '%5c'))
      .map((pieces) => `/${pieces.join('')}`);
    fc.assert(
      fc.property(target, (text) => {
        assert.doesNotMatch(normalPath(text) ?? '', /\/\/|\/\.{1,2}(\/|$)/);
      }),
    );
  });

  it('never throws, whatever the target', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        const path = normalPath(text);

        assert(path === undefined || path === '*' || path.startsWith('/'));
      }),
    );
  });

  function escaped(path: string): string {
    return path.replace(/[^/]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  }
});

describe('rawPath and rawQuery', () => {
  it('keep what was sent', () => {
    assert.equal(rawPath('/a%2f/../b?c=%20'), '/a%2f/../b');
    assert.equal(rawQuery('/a?b?c=%20'), 'b?c=%20');
  });

  it('give an empty query where there is none', () => {
    assert.equal(rawQuery('/a'), '');
  });
});

describe('segments', () => {
  it('are counted from one', () => {
    const path = '/v1/users/42/';

    assert.deepEqual(
      [1, 2, 3, 4, 5].map((index) => segmentAt(path, index)),
      ['v1', 'users', '42', '', ''],
    );
  });

  it('begin with the first one', () => {
    assert.deepEqual(['/', '/v1', '/v1/x', '*'].map(firstSegment), ['', 'v1', 'v1', '']);
  });
});

describe('formDecoded', () => {
  const texts: Readonly<Record<string, readonly [sent: string, text: string]>> = {
    'leaves plain text alone': ['abc', 'abc'],
    'reads a plus as a space': ['a+b+', 'a b '],
    'decodes escapes': ['%61%20b', 'a b'],
    'leaves an invalid escape as it is': ['100%', '100%'],
    'leaves an invalid escape and decodes the next': ['%zz%41', '%zzA'],
    'does not decode twice': ['%2541', '%41'],
    'gives nothing for nothing': ['', ''],
  };
  for (const [claim, [sent, text]] of Object.entries(texts)) {
    it(claim, () => {
      assert.equal(formDecoded(sent), text);
    });
  }
});
