import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicy } from './bundle.ts';
import { checkPolicy } from './compiled-policy-schema.ts';
import {
  checkOperatorFrame,
  checkSidecarFrame,
  encodePush,
  policiesOf,
  type PushHead,
} from './frame-codec.ts';
import { FRAME_BYTES_MAX, MESSAGE_MAX } from './stream.ts';

const NACK = { type: 'nack', nonce: 4, version: 'v', code: 'Policies', refusals: [] } as const;
const REFUSAL = { uid: 'u', generation: 1, path: '', code: 'Invalid', message: '' } as const;

function compiledPolicy(fields: Partial<CompiledPolicy> = {}): CompiledPolicy {
  return {
    ...{ namespace: 'shop', name: 'api', uid: 'uid-api', generation: 1 },
    ...{ mode: 'Enforce', enforcePercent: 100, failureMode: 'Local', scope: 'Policy', replicas: 1 },
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [],
    ...fields,
  };
}

describe('what is said of a frame that is not in order', () => {
  const rows: readonly (readonly [string, unknown, string, string])[] = [
    ['no type', { nonce: 1 }, 'type', 'type: must be string'],
    ['no object', [], '', 'the frame: must be object'],
    [
      'a choice that is none',
      { ...NACK, code: 'Moon' },
      'code',
      'code: must be one of Policies, UnknownFrame, BadFrame, UnknownBase',
    ],
    [
      'a text too long',
      { ...NACK, refusals: [{ ...REFUSAL, message: 'x'.repeat(MESSAGE_MAX + 1) }] },
      'refusals.0.message',
      `refusals.0.message: must be at most ${MESSAGE_MAX}`,
    ],
    [
      'a number too small',
      { ...NACK, refusals: [{ ...REFUSAL, generation: -1 }] },
      'refusals.0.generation',
      'refusals.0.generation: must be at least 0',
    ],
  ];
  for (const [name, value, path, message] of rows) {
    it(`names the field and what would be right for ${name}`, () => {
      const decoded = checkSidecarFrame(value);

      assert.equal(decoded.kind, 'invalid');
      assert.deepEqual([decoded.path, decoded.message], [path, message]);
    });
  }

  it('takes a text of exactly the bound', () => {
    const frame = { ...NACK, refusals: [{ ...REFUSAL, message: 'x'.repeat(MESSAGE_MAX) }] };

    assert.deepEqual(checkSidecarFrame(frame), { kind: 'frame', frame });
  });

  it('names the kind of a fault it has no words for', () => {
    const response = { ...compiledPolicy().response, headers: [{ name: 'a b', value: '' }] };

    const checked = checkPolicy(compiledPolicy({ response }));

    assert.equal(checked.kind, 'invalid');
    assert.equal(checked.message, 'response.headers.0.name: is not in order (invalid_format)');
  });

  it('names the push only where the frame has a nonce that is one', () => {
    const nonceOf = (nonce: unknown): unknown => {
      const decoded = checkSidecarFrame({ ...NACK, nonce, code: 'Moon' });
      return decoded.kind === 'invalid' ? decoded.nonce : assert.fail();
    };

    assert.deepEqual([4, 1.5, '4', undefined].map(nonceOf), [4, undefined, undefined, undefined]);
  });
});

describe('a delta', () => {
  const head: PushHead = {
    type: 'delta',
    nonce: 2,
    base: 'v1',
    version: 'v2',
    remove: ['gone'],
    issuedAt: '2026-01-01T00:00:00Z',
  };

  it('carries what is new under its own name, and the rest in parts', () => {
    const policies = ['a', 'b'].map((uid) => compiledPolicy({ uid }));
    const texts = policies.map((one) =>
      JSON.stringify({ ...one, pad: 'x'.repeat(FRAME_BYTES_MAX / 2) }),
    );

    const lines = encodePush(head, texts);

    const frames = lines.map((line) => {
      const decoded = checkOperatorFrame(JSON.parse(line));
      return decoded.kind === 'frame' && decoded.frame.type !== 'bye'
        ? decoded.frame
        : assert.fail(line.slice(0, 100));
    });
    assert.deepEqual(
      frames.map((frame) => [frame.type, policiesOf(frame).map(({ uid }) => uid)]),
      [
        ['delta', ['a']],
        ['part', ['b']],
      ],
    );
  });
});
