import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeGrpcMessage, grpcStatusOf } from './grpc.ts';

describe('what gRPC makes of an answer', () => {
  const statuses: Readonly<Record<number, number>> = {
    429: 8,
    501: 12,
    502: 14,
    503: 14,
    504: 14,
    400: 13,
    404: 13,
    431: 13,
    500: 13,
  };
  for (const [http, grpc] of Object.entries(statuses)) {
    it(`says ${grpc} for ${http}`, () => {
      assert.equal(grpcStatusOf(Number(http)), grpc);
    });
  }
});

describe('a message of gRPC', () => {
  it('is printable ASCII as it stands', () => {
    const text = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at))
      .join('')
      .replace('%', '');
    assert.equal(encodeGrpcMessage(text), text);
    assert.equal(encodeGrpcMessage(''), '');
  });

  it('has the percent sign, controls and all other characters as bytes of UTF-8', () => {
    assert.equal(encodeGrpcMessage('100 %'), '100 %25');
    assert.equal(encodeGrpcMessage('a\r\n\t\x7f'), 'a%0D%0A%09%7F');
    assert.equal(encodeGrpcMessage('\0'), '%00');
    assert.equal(encodeGrpcMessage('é→'), '%C3%A9%E2%86%92');
  });

  it('comes back by decoding its percent signs', () => {
    const text = 'Grüße, 世界 % 100%25 🦦';
    assert.equal(decodeURIComponent(encodeGrpcMessage(text)), text);
  });
});
