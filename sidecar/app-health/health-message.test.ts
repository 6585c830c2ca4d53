import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeHealthResponse, encodeHealthRequest } from './health-message.ts';

/** A response frame of these bytes. */
function frame(...message: readonly number[]): Uint8Array {
  return Uint8Array.from([0, 0, 0, 0, message.length, ...message]);
}

describe('the question of a gRPC health check', () => {
  it('is empty for the whole server, and else names the service', () => {
    assert.deepEqual([...encodeHealthRequest('')], [0, 0, 0, 0, 0]);
    assert.deepEqual(
      [...encodeHealthRequest('shop')],
      [...[0, 0, 0, 0, 6], ...[0x0a, 4, ...Buffer.from('shop')]],
    );
  });

  it('gives lengths beyond one byte and in UTF-8', () => {
    const long = [...encodeHealthRequest('x'.repeat(200))];
    const unicode = [...encodeHealthRequest('ü')];

    assert.deepEqual(long.slice(0, 8), [0, 0, 0, 0, 203, 0x0a, 0xc8, 0x01]);
    assert.equal(long.length, 208);
    assert.deepEqual(unicode, [0, 0, 0, 0, 4, 0x0a, 2, 0xc3, 0xbc]);
  });
});

describe('the answer of a gRPC health check', () => {
  it('names a status; none is the default', () => {
    assert.equal(decodeHealthResponse(frame(0x08, 1)), 'SERVING');
    assert.equal(decodeHealthResponse(frame(0x08, 2)), 'NOT_SERVING');
    assert.equal(decodeHealthResponse(frame(0x08, 3)), 'SERVICE_UNKNOWN');
    assert.equal(decodeHealthResponse(frame()), 'UNKNOWN');
  });

  it('may hold fields of a later version', () => {
    assert.equal(decodeHealthResponse(frame(0x12, 3, 8, 2, 8, 0x08, 1)), 'SERVING');
    assert.equal(decodeHealthResponse(frame(0x18, 0x96, 0x01, 0x08, 1)), 'SERVING');
  });

  it('is none when it is cut off, compressed, or has another form', () => {
    const wrong = [
      Uint8Array.of(),
      Uint8Array.of(0, 0, 0, 0),
      Uint8Array.of(0, 0, 0, 0, 2, 0x08),
      Uint8Array.of(1, 0, 0, 0, 2, 0x08, 1),
      frame(0x08),
      frame(0x08, 0x80),
      frame(0x08, 4),
      frame(0x12, 3, 8),
      frame(0x0d, 0, 0, 0, 0),
      frame(0x08, 0x80, 0x80, 0x80, 0x80, 0x01),
    ];
    for (const bytes of wrong) assert.equal(decodeHealthResponse(bytes), undefined, bytes.join());
  });
});
