import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requestOf } from '../../test/support/rule-bundle.ts';
import { RequestSnapshot } from './request-snapshot.ts';

const REQUEST = requestOf({
  method: 'PUT',
  target: '/a?b',
  headers: [
    ['X-A', '1'],
    ['x-a', '2'],
    ['Host', 'shop.example'],
  ],
});

describe('a snapshot', () => {
  it('says what its view said', () => {
    const copy = RequestSnapshot.of(REQUEST);

    assert.deepEqual(
      [copy.method, copy.target, copy.host, copy.peerAddress],
      ['PUT', '/a?b', 'shop.example', '192.0.2.1'],
    );
    const lines: [string, string][] = [];
    copy.eachHeader((name, value) => lines.push([name, value]));
    assert.deepEqual(lines, [
      ['X-A', '1'],
      ['x-a', '2'],
      ['Host', 'shop.example'],
    ]);
  });

  it('joins the lines of a name and counts them', () => {
    assert.equal(REQUEST.header('x-a'), '1, 2');
    assert.equal(REQUEST.headerCount('x-a'), 2);
  });

  it('has no value for a header that was not sent', () => {
    assert.equal(REQUEST.header('x-b'), undefined);
    assert.equal(REQUEST.headerCount('x-b'), 0);
  });
});
