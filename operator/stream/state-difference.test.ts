import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SidecarState } from './sidecar-registry.ts';
import { policiesBetween } from './state-difference.ts';

const STATE: SidecarState = {
  ...{ podUid: 'pod', namespace: 'shop', name: 'api', connected: true },
  ...{ sidecarVersion: '1.0.0', version: 'v1', origin: 'stream' },
  generations: new Map([
    ['a', 1],
    ['b', 1],
  ]),
  refusals: [],
  tooOld: [],
  store: 'up',
  storeProblem: undefined,
  clientIpIsProxy: [],
};
const REFUSAL = { uid: 'a', generation: 2, path: '', code: 'Invalid', message: '' } as const;

function between(
  after: Partial<SidecarState>,
  before: Partial<SidecarState> = {},
): readonly string[] | 'all' {
  const changed = policiesBetween({ ...STATE, ...before }, { ...STATE, ...after });
  return changed === 'all' ? 'all' : [...changed];
}

describe('between two states of a sidecar, those policies read differently', () => {
  const newer = new Map([
    ['a', 2],
    ['b', 1],
    ['c', 1],
  ]);
  const fewer = new Map([['a', 1]]);
  const cases: Readonly<Record<string, readonly [Partial<SidecarState>, readonly string[]]>> = {
    'whose generation is another one, or that are new': [{ generations: newer }, ['a', 'c']],
    'that are gone': [{ generations: fewer }, ['b']],
    'that were refused': [{ refusals: [REFUSAL] }, ['a']],
    'that are too new for it': [
      { tooOld: [{ uid: 'b', generation: 2, features: ['cel'] }] },
      ['b'],
    ],
    'none, when only the name of the bundle and its way are others': [
      { version: 'v2', origin: 'cache' },
      [],
    ],
  };
  for (const [claim, [after, uids]] of Object.entries(cases)) {
    it(claim, () => {
      assert.deepEqual(between(after), uids);
    });
  }

  it('that are not refused any more, or for another reason', () => {
    const refusals = [{ ...REFUSAL, message: 'other' }];

    assert.deepEqual(between({}, { refusals: [REFUSAL] }), ['a']);
    assert.deepEqual(between({ refusals }, { refusals: [REFUSAL] }), ['a']);
    assert.deepEqual(between({ refusals }, { refusals }), []);
  });
});

describe('between two states of a sidecar, every policy reads differently', () => {
  const cases: Readonly<Record<string, Partial<SidecarState>>> = {
    'when it has gone': { connected: false },
    'when it is another version': { sidecarVersion: '1.1.0' },
    'when its store is down': { store: 'down' },
    'when it cannot use the settings of the store': { storeProblem: 'no such host' },
    'when it counts proxies as clients': { clientIpIsProxy: ['shop/a/all'] },
  };
  for (const [claim, after] of Object.entries(cases)) {
    it(claim, () => {
      assert.equal(between(after), 'all');
    });
  }

  it('when it is forgotten', () => {
    assert.equal(policiesBetween(STATE, undefined), 'all');
  });
});
