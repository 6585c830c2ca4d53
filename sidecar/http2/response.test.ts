import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fieldsOf } from '../../test/support/http2-side.ts';
import { areTrailers, bodyDue, readResponse, type ResponseFacts } from './response.ts';

function read(...lines: readonly string[]): ResponseFacts | undefined {
  return readResponse({ fields: fieldsOf(...lines), isTooLarge: false });
}

describe('a response', () => {
  it('has a status, and a length if it says so', () => {
    assert.deepEqual(read(':status: 200', 'a: 1'), { status: 200, contentLength: -1 });
    assert.deepEqual(read(':status: 103'), { status: 103, contentLength: -1 });
    assert.deepEqual(read(':status: 999', 'content-length: 5', 'content-length: 5'), {
      status: 999,
      contentLength: 5,
    });
  });

  it('has no body to come behind HEAD, 204 and 304, whatever length it says', () => {
    const due = (status: number, isHead: boolean): number =>
      bodyDue({ status, contentLength: 5 }, isHead);
    assert.deepEqual(
      [due(200, false), due(200, true), due(204, false), due(304, false)],
      [5, 0, 0, 0],
    );
  });

  it('is none without a status of three digits in front', () => {
    assert.equal(read(), undefined);
    assert.equal(read('a: 1', ':status: 200'), undefined);
    for (const status of ['', '20', '2000', '099', '2x0', '-20']) {
      assert.equal(read(`:status: ${status}`), undefined, status);
    }
  });

  it('is none with another pseudo-field, or a malformed line', () => {
    assert.equal(read(':status: 200', ':status: 200'), undefined);
    assert.equal(read(':status: 200', ':path: /'), undefined);
    assert.equal(read(':status: 200', 'connection: close'), undefined);
  });

  it('is none with a length that is none, or two', () => {
    assert.equal(read(':status: 200', 'content-length: x'), undefined);
    assert.equal(read(':status: 200', 'content-length: 5', 'content-length: 6'), undefined);
  });

  it('is none when its fields were too many to be kept', () => {
    const fields = fieldsOf(':status: 200');
    assert.equal(readResponse({ fields, isTooLarge: true }), undefined);
  });
});

describe('trailers', () => {
  it('are any lines that do not speak of the message', () => {
    const are = (...lines: readonly string[]): boolean =>
      areTrailers({ fields: fieldsOf(...lines), isTooLarge: false });
    assert(are());
    assert(are('grpc-status: 0', 'grpc-message: '));
    for (const line of [':status: 200', 'content-length: 0', 'host: a', 'connection: x', 'A: 1']) {
      assert(!are('a: 1', line), line);
    }
  });

  it('are none when they were too many to be kept', () => {
    assert(!areTrailers({ fields: [], isTooLarge: true }));
  });
});
