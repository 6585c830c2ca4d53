import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalStatus } from './refusal.ts';

describe('a refusal', () => {
  it('is 400 unless the protocol has a status that says more', () => {
    assert.equal(refusalStatus('bare-lf'), 400);
    assert.equal(refusalStatus('target-too-long'), 414);
    assert.equal(refusalStatus('head-too-large'), 431);
    assert.equal(refusalStatus('too-many-fields'), 431);
    assert.equal(refusalStatus('connect'), 501);
    assert.equal(refusalStatus('version'), 505);
    assert.equal(refusalStatus('http2-preface'), 505);
  });
});
