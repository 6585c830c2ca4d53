import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultHttp1Limits } from './limits.ts';
import { MessageBody } from './message-body.ts';

function body(): MessageBody {
  return new MessageBody(defaultHttp1Limits);
}

describe('a message body', () => {
  it('is done before it starts when there is none', () => {
    const none = body();

    none.begin('none', 0);

    assert.equal(none.done, true);
    assert.equal(none.take(Buffer.from('next')), 'complete');
    assert.equal(none.end, 0);
  });

  it('takes exactly its length and leaves the rest', () => {
    const length = body();
    length.begin('length', 5);

    assert.equal(length.take(Buffer.from('abc')), 'more');
    assert.equal(length.take(Buffer.from('')), 'more');
    assert.equal(length.done, false);
    assert.equal(length.take(Buffer.from('deNEXT')), 'complete');

    assert.deepEqual([length.done, length.end, length.passesWhole], [true, 2, true]);
  });

  it('takes everything when it ends with the connection', () => {
    const close = body();
    close.begin('close', 0);

    assert.equal(close.take(Buffer.from('abc')), 'more');

    assert.deepEqual([close.done, close.end, close.passesWhole], [false, 3, true]);
  });

  it('passes plain chunks whole and shows what is dropped from others', () => {
    const chunked = body();
    chunked.begin('chunked', 0);
    assert.equal(chunked.take(Buffer.from('1\r\na\r\n')), 'more');
    assert.equal(chunked.passesWhole, true);
    assert.equal(chunked.take(Buffer.from('1;x\r\na\r\n')), 'more');
    assert.equal(chunked.passesWhole, false);
    assert.deepEqual(chunked.dropped, [1, 3]);

    assert.equal(chunked.take(Buffer.from('0\r\nA: b\r\n\r\n')), 'complete');

    assert.equal(chunked.trailers, 'A: b\r\n\r\n');
    assert.deepEqual(chunked.dropped, [3, 11]);
    assert.equal(chunked.passesWhole, false);
  });

  it('starts anew after a body that was refused', () => {
    const chunked = body();
    chunked.begin('chunked', 0);
    assert.equal(chunked.take(Buffer.from('zz')), 'refused');
    assert.equal(chunked.refusal, 'chunk-size');
    assert.equal(chunked.done, false);

    chunked.begin('chunked', 0);

    assert.equal(chunked.take(Buffer.from('0\r\n\r\n')), 'complete');
    assert.deepEqual([chunked.trailers, chunked.passesWhole], ['', true]);
  });
});
