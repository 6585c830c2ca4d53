import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { numberOf } from './handlers.ts';

describe('the number that a handler asks', () => {
  const ports = [
    { name: 'http', containerPort: 53, protocol: 'UDP' },
    { name: 'http', containerPort: 8080 },
  ];

  it('is the one written, as a number or its digits, or that of the TCP port of the name', () => {
    assert.deepEqual(
      [8081, '8081', 'http'].map((port) => numberOf({ port }, ports)),
      [8081, 8081, 8080],
    );
  });

  it('is none for a name that nobody has, and for another host', () => {
    assert.equal(numberOf({ port: 'web' }, ports), undefined);
    assert.equal(numberOf({ port: 'http' }), undefined);
    assert.equal(numberOf({ port: 8080, host: 'example.com' }, ports), undefined);
    assert.equal(numberOf({ port: 8080, host: '' }, ports), 8080);
  });
});
