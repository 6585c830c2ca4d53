import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseContentLength } from './framing.ts';

describe('a Content-Length', () => {
  it('is a run of digits up to 2^53 − 1', () => {
    assert.equal(parseContentLength('0'), 0);
    assert.equal(parseContentLength('9007199254740991'), Number.MAX_SAFE_INTEGER);
    assert.equal(parseContentLength('9007199254740992'), -1);
    assert.equal(parseContentLength(''), -1);
    assert.equal(parseContentLength('1a'), -1);
  });
});
