import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compiledPolicy, type PolicyOptions } from '../support/compiled-policy.ts';
import {
  checkOperatorFrame,
  checkSidecarFrame,
  type Decoded,
  encodeFrame,
  encodePush,
  FrameDecoder,
  policiesOf,
} from '../../contract/frame-codec.ts';
import { FRAME_BYTES_MAX, type OperatorFrame, type SidecarFrame } from '../../contract/stream.ts';

const config = {
  type: 'config',
  nonce: 3,
  version: 'v',
  policies: [],
  settings: {},
  issuedAt: '2026-01-01T00:00:00Z',
} as const;

function decodeAll(text: string): Decoded<OperatorFrame>[] {
  return new FrameDecoder(checkOperatorFrame).push(Buffer.from(text));
}

function state(version: string): SidecarFrame {
  return { type: 'state', version, origin: 'none', clientIpIsProxy: [] };
}

describe('a stream of frames', () => {
  it('reads the same wherever it is split, also inside a character', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 40 }), { maxLength: 8 }),
        fc.array(fc.nat(2_000), { maxLength: 20 }),
        (versions, cuts) => {
          const bytes = Buffer.from(versions.map((one) => encodeFrame(state(one))).join(''));
          const decoder = new FrameDecoder(checkSidecarFrame);
          const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length];
          const sorted = places.toSorted((a, b) => a - b);

          const decoded = sorted.flatMap((to, i) =>
            decoder.push(bytes.subarray(sorted[i - 1] ?? 0, to)),
          );

          const expected = versions.map((one) => ({ kind: 'frame', frame: state(one) }));
          assert.deepEqual(decoded, expected);
        },
      ),
    );
  });

  it('never throws, whatever bytes come', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 20 }), (chunks) => {
        const decoder = new FrameDecoder(checkSidecarFrame);

        for (const chunk of chunks) decoder.push(Buffer.concat([chunk, Buffer.from('\n')]));
      }),
    );
  });

  it('takes a line of exactly the bound, and ends at one that is a byte longer', () => {
    const line = encodeFrame({ ...config, version: '' });
    const pad = ' '.repeat(FRAME_BYTES_MAX - line.length);

    const [atBound] = decodeAll(pad + line);
    const beyond = decodeAll(` ${pad}${line}${line}`);

    assert.equal(atBound?.kind, 'frame');
    assert.deepEqual(beyond, [{ kind: 'too-long' }]);
  });

  it('gives up a line that is too long before its end has come', () => {
    const decoder = new FrameDecoder(checkOperatorFrame);

    const decoded = [1, 2, 3].flatMap(() => decoder.push(Buffer.alloc(FRAME_BYTES_MAX / 2, 0x20)));

    assert.deepEqual(decoded, [{ kind: 'too-long' }]);
  });
});

describe('a frame', () => {
  it('of an unknown type is an outcome of its own', () => {
    assert.deepEqual(decodeAll('{"type":"toString","x":1}\n'), [
      { kind: 'unknown-type', type: 'toString' },
    ]);
  });

  it('keeps fields it does not know, and they mean nothing', () => {
    assert.deepEqual(decodeAll(`${JSON.stringify({ ...config, colour: 'red' })}\n`), [
      { kind: 'frame', frame: { ...config, colour: 'red' } },
    ]);
  });

  it('that is not in order names the field and its push', () => {
    const [decoded] = decodeAll(`${JSON.stringify({ ...config, settings: { deadlineMs: 0 } })}\n`);

    assert.deepEqual(decoded, {
      kind: 'invalid',
      path: 'settings.deadlineMs',
      message: 'settings.deadlineMs: must be at least 1',
      nonce: 3,
    });
  });

  it('that is no JSON, no object, or not UTF-8 is not in order', () => {
    const bytes = Buffer.from([0x22, 0xff, 0x22, 0x0a]);

    const decoded = [
      ...decodeAll('{\n[]\n1\n'),
      ...new FrameDecoder(checkOperatorFrame).push(bytes),
    ];

    assert.deepEqual(
      decoded.map(({ kind }) => kind),
      ['invalid', 'invalid', 'invalid', 'invalid'],
    );
  });
});

describe('a push', () => {
  const large = (uid: string, bytes: number): PolicyOptions => ({ uid, name: 'x'.repeat(bytes) });

  it('that fits goes in one frame', () => {
    const policy = compiledPolicy();

    const lines = encodePush({ ...config, nonce: 1 }, [JSON.stringify(policy)]);

    assert.deepEqual(decodeAll(lines.join('')), [
      { kind: 'frame', frame: { ...config, nonce: 1, policies: [policy] } },
    ]);
  });

  it('arrives whole in parts that each fit a frame', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(260_000), { maxLength: 12 }), (sizes) => {
        const policies = sizes.map((bytes, i) => compiledPolicy(large(`uid-${i}`, bytes % 253)));
        const texts = policies.map((one, i) =>
          JSON.stringify({ ...one, pad: 'é'.repeat((sizes[i] ?? 0) / 2) }),
        );

        const lines = encodePush({ ...config, nonce: 7 }, texts);

        assert(lines.every((line) => Buffer.byteLength(line) <= FRAME_BYTES_MAX));
        const frames = decodeAll(lines.join('')).map((one) =>
          one.kind === 'frame' && one.frame.type !== 'bye' ? one.frame : assert.fail(one.kind),
        );
        assert.deepEqual(
          frames.map(({ more }) => more === true),
          frames.map((_, i) => i < frames.length - 1),
        );
        assert.deepEqual(
          frames.flatMap((frame) => policiesOf(frame).map(({ uid }) => uid)),
          policies.map(({ uid }) => uid),
        );
      }),
      { numRuns: 30 },
    );
  });
});
