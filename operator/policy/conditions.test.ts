import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { conditionReasons } from '../../contract/conditions.ts';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import {
  BUCKETS,
  podObject,
  policyObject,
  serviceObject,
  type PodOptions,
} from '../../test/support/world-objects.ts';
import { conditionsOf } from './conditions.ts';
import { NOT_FETCHED, type KeySetState } from './key-set-state.ts';
import { observePolicy, type PolicyObservation } from './policy-observation.ts';
import { planStatus } from './policy-status.ts';
import type { PolicyObject } from './policy-record.ts';
import type { ReportLookup, SidecarReport } from './sidecar-report.ts';
import type { ServiceObject } from './service-record.ts';
import type { StoreState } from './store-settings.ts';
import { bounded, MESSAGE_MAX } from './wording.ts';
import { World } from './world.ts';

const cel = createCelCompiler();
const URI = 'https://id.example.com/jwks.json';
const JWT = { jwt: { issuer: 'i', jwks: { uri: URI } } };
const FETCHED: KeySetState = {
  good: { keys: [{ kty: 'EC' }], fetchedAt: '2026-01-01T00:00:00Z' },
  failure: undefined,
};

interface Scene {
  readonly spec?: object;
  readonly generation?: number;
  /** Seen before the policy's last generation. */
  readonly before?: PolicyObject;
  readonly pods?: readonly (readonly [string, PodOptions])[];
  readonly others?: readonly PolicyObject[];
  readonly service?: ServiceObject['spec'];
  readonly keySet?: KeySetState;
  readonly store?: StoreState;
  /** By pod name; absent = every sidecar runs the newest generation. */
  readonly reports?: Readonly<Record<string, Partial<SidecarReport> | undefined>>;
  readonly isSettling?: boolean;
}

const TAKEOVER = ['a', { mode: 'takeover' }] as const;

function worldOf(scene: Scene): World {
  const { spec, generation = 1, pods = [TAKEOVER], before, others = [], keySet, service } = scene;
  const world = new World(cel);
  for (const [name, options] of pods) {
    world.apply({ kind: 'Pod', key: `shop/${name}`, object: podObject(name, options) });
  }
  const policy = policyObject('one', spec, { generation });
  for (const object of [...(before ? [before] : []), policy, ...others]) {
    const key = `shop/${String(object.metadata.name)}`;
    world.apply({ kind: 'RateLimitPolicy', key, object });
  }
  if (keySet?.good) world.apply({ kind: 'KeySet', key: URI, object: keySet.good.keys });
  if (service) {
    world.apply({ kind: 'Service', key: 'shop/api', object: serviceObject('api', service) });
  }
  return world;
}

function reportsOf({ reports, generation = 1 }: Scene): ReportLookup {
  const running: SidecarReport = {
    generations: new Map([['uid-one', generation]]),
    refusals: [],
    tooOld: [],
    store: 'up',
    clientIpIsProxy: [],
  };
  return (uid) => {
    const given = reports === undefined ? {} : reports[uid.slice('uid-'.length)];
    return given === undefined ? undefined : { ...running, ...given };
  };
}

function observe(scene: Scene = {}): PolicyObservation {
  const { keySet = NOT_FETCHED, store = { kind: 'configured' }, isSettling = false } = scene;
  const surroundings = { reportOf: reportsOf(scene), keySetOf: () => keySet, store, isSettling };
  return observePolicy(worldOf(scene), 'shop/one', surroundings) ?? assert.fail('no policy');
}

type Told = readonly [string, string, string];

function told(scene: Scene, type: string): Told {
  const condition = conditionsOf(observe(scene)).find((one) => one.type === type);
  assert.ok(condition);
  return [condition.status, condition.reason, condition.message];
}

const celFault = {
  rules: [{ name: 'all', match: [{ cel: { expression: 'nothing' } }], buckets: BUCKETS }],
};
const shadowRule = { name: 'counted', mode: 'Shadow', buckets: BUCKETS };
const refusal = (message: string, path = 'spec.rules[0].match'): Partial<SidecarReport> => ({
  generations: new Map(),
  refusals: [{ uid: 'uid-one', generation: 1, path, code: 'Invalid', message }],
});
const tooOld = (...features: readonly string[]): Partial<SidecarReport> => ({
  generations: new Map(),
  tooOld: [{ uid: 'uid-one', generation: 1, features }],
});
const failure = (kind: 'refused' | 'unavailable' | 'invalid'): KeySetState => ({
  good: undefined,
  failure: { kind, message: 'answers 503' },
});

const TABLE: readonly [string, string, string, Scene, RegExp][] = [
  ['Accepted', 'True', 'Accepted', {}, /compiles/],
  [
    'Accepted',
    'False',
    'InvalidCEL',
    { spec: celFault },
    /^spec\.rules\[0\]\.match\[0\]\.cel\.expression .*\n.*\n *\^/s,
  ],
  [
    'Accepted',
    'False',
    'UnsupportedField',
    { spec: { ...celFault, rulez: 1 } },
    /^spec\.rulez is not a field: did you mean rules\?/,
  ],
  ['Accepted', 'False', 'Invalid', { spec: { rules: [] } }, /^spec\.rules [^(]*$/],
  [
    'Accepted',
    'False',
    'Invalid',
    { spec: { rules: [], scope: 'Moon', failureMode: 'Moon' } },
    /^spec\.\w+ .* \(and 2 more\)$/,
  ],
  [
    'Accepted',
    'False',
    'TooLarge',
    {
      spec: {
        rules: Array.from({ length: 64 }, (_, index) => ({
          name: `r${String(index)}`,
          match: Array.from({ length: 16 }, () => ({
            path: { type: 'Exact', value: `/${'x'.repeat(1_000)}` },
          })),
          buckets: BUCKETS,
        })),
      },
    },
    /split it/,
  ],
  ['ResolvedRefs', 'True', 'ResolvedRefs', {}, /is there/],
  ['ResolvedRefs', 'True', 'ResolvedRefs', { spec: JWT, keySet: FETCHED }, /key set/],
  ['ResolvedRefs', 'Unknown', 'KeySetPending', { spec: JWT }, /being fetched/],
  [
    'ResolvedRefs',
    'False',
    'KeySetRefused',
    { spec: JWT, keySet: failure('refused') },
    /id\.example\.com/,
  ],
  [
    'ResolvedRefs',
    'False',
    'KeySetUnavailable',
    { spec: JWT, keySet: failure('unavailable') },
    /answers 503; sidecars keep/,
  ],
  [
    'ResolvedRefs',
    'False',
    'KeySetUnavailable',
    { spec: JWT, keySet: { ...failure('unavailable'), good: FETCHED.good } },
    /the keys of 2026-01-01T00:00:00Z stay in use/,
  ],
  ['ResolvedRefs', 'False', 'KeySetInvalid', { spec: JWT, keySet: failure('invalid') }, /key set/],
  [
    'ResolvedRefs',
    'False',
    'KeySetInvalid',
    { spec: { jwt: { issuer: 'i', jwks: { inline: '{}' } } } },
    /^spec\.jwt\.jwks\.inline /,
  ],
  [
    'ResolvedRefs',
    'False',
    'PortNotFound',
    { spec: { ports: ['grpc', 'http'] } },
    /port grpc of pod a: correct spec\.ports/,
  ],
  ['Programmed', 'True', 'Programmed', {}, /^1 of 1 sidecars run generation 1\.$/],
  [
    'Programmed',
    'False',
    'NotAccepted',
    { spec: celFault, generation: 2, before: policyObject('one') },
    /generation 1 stays in force/,
  ],
  ['Programmed', 'False', 'NoSidecars', { pods: [] }, /no running sidecar/],
  [
    'Programmed',
    'False',
    'NoSidecars',
    { pods: [['a', { mode: 'takeover', phase: 'Pending' }]], reports: {} },
    /no running sidecar/,
  ],
  [
    'Programmed',
    'False',
    'Rejected',
    { reports: { a: refusal('bad') } },
    /pod a .*spec\.rules\[0\]\.match: bad/,
  ],
  [
    'Programmed',
    'False',
    'Rejected',
    { reports: { a: refusal('bad', '') } },
    /pod a refused this generation and keeps what it had: bad/,
  ],
  [
    'Programmed',
    'False',
    'SidecarTooOld',
    { reports: { a: tooOld('ports') } },
    /pod a is too old for this policy \(ports\)/,
  ],
  [
    'Programmed',
    'False',
    'SidecarTooOld',
    { reports: { a: tooOld() } },
    /pod a is too old for this policy: restart/,
  ],
  [
    'Programmed',
    'False',
    'Pending',
    { pods: [TAKEOVER, ['b', { mode: 'takeover' }]], reports: { a: {} } },
    /1 of 2 .* not yet: pod b/,
  ],
  ['Programmed', 'False', 'Pending', { spec: JWT }, /key set/],
  ['Enforced', 'True', 'Enforced', {}, /^Requests above the limit are refused\.$/],
  [
    'Enforced',
    'True',
    'Enforced',
    { spec: { rules: [shadowRule, { name: 'all', buckets: BUCKETS }] } },
    /rule counted only counts/,
  ],
  [
    'Enforced',
    'True',
    'Enforced',
    { spec: { enforcePercent: 10 } },
    /^Requests above the limit are refused; for 10 % of clients\.$/,
  ],
  [
    'Enforced',
    'True',
    'Enforced',
    { pods: [TAKEOVER, ['bare', {}]] },
    /1 pod of spec\.selector never asked/,
  ],
  [
    'Enforced',
    'True',
    'ClientIPIsProxy',
    { reports: { a: { clientIpIsProxy: ['shop/one/all', 'shop/other/x'] } } },
    /Rule shop\/one\/all takes/,
  ],
  ['Enforced', 'False', 'NotAccepted', { spec: celFault }, /sidecars keep what they have/],
  ['Enforced', 'False', 'Disabled', { spec: { mode: 'Disabled' }, pods: [] }, /spec\.mode/],
  [
    'Enforced',
    'False',
    'Disabled',
    { spec: { rules: [{ ...shadowRule, mode: 'Disabled' }] } },
    /Every rule/,
  ],
  ['Enforced', 'False', 'NoMatchingPods', { pods: [] }, /labels of spec\.selector/],
  [
    'Enforced',
    'False',
    'NoMatchingPods',
    { spec: { selector: {} }, pods: [['bare', {}]] },
    /asked for a sidecar/,
  ],
  ['Enforced', 'False', 'NotInjected', { pods: [['bare', {}]] }, /\(bare\): set the annotation/],
  [
    'Enforced',
    'False',
    'NotInjected',
    { pods: [TAKEOVER, ['b', { annotations: { 'weir.dev/inject': 'enabled' } }]] },
    /1 of 2 pods have no sidecar \(b\)/,
  ],
  [
    'Enforced',
    'False',
    'NotInjected',
    { pods: [['b', { annotations: { 'weir.dev/inject': 'yes' } }]] },
    /"yes", write enabled/,
  ],
  ['Enforced', 'False', 'NotProgrammed', { reports: {} }, /^No sidecar says that it runs/],
  [
    'Enforced',
    'False',
    'NotProgrammed',
    { reports: { a: { generations: new Map() } } },
    /^No sidecar says that it runs/,
  ],
  [
    'Enforced',
    'False',
    'NotProgrammed',
    { generation: 3, reports: { a: { generations: new Map([['uid-one', 2]]) } } },
    /No sidecar runs this generation yet; generation 2 stays in force/,
  ],
  ['Enforced', 'False', 'Shadow', { spec: { mode: 'Shadow' } }, /spec\.mode is Shadow/],
  ['Enforced', 'False', 'Shadow', { spec: { rules: [shadowRule] } }, /every rule is Shadow/],
  ['Enforced', 'False', 'Shadow', { spec: { enforcePercent: 0 } }, /enforcePercent is 0/],
  [
    'Enforced',
    'False',
    'Bypassable',
    { service: { ports: [{ port: 80, targetPort: 8080 }] } },
    /Service api, port 80,[^(]*$/,
  ],
  [
    'Enforced',
    'False',
    'Bypassable',
    {
      service: {
        ports: [
          { name: 'a', port: 80, targetPort: 8080 },
          { name: 'b', port: 81, targetPort: 8080 },
        ],
      },
    },
    /Service api, port a,.* \(and 1 more\)\.$/,
  ],
  [
    'Enforced',
    'False',
    'StoreUnavailable',
    { store: { kind: 'none' } },
    /No store .* share \(failureMode Local\)/,
  ],
  [
    'Enforced',
    'False',
    'StoreUnavailable',
    {
      store: { kind: 'faulty', message: 'Secret a/b does not exist', isKept: false },
      spec: { failureMode: 'Closed' },
    },
    /Secret a\/b .* 503/,
  ],
  [
    'Enforced',
    'False',
    'StoreUnavailable',
    { reports: { a: { store: 'down' } }, spec: { failureMode: 'Open' } },
    /1 of 1 sidecar cannot reach the store \(a\); there requests are not limited/,
  ],
  ['Enforced', 'True', 'Enforced', { store: { kind: 'none' }, spec: { scope: 'Pod' } }, /refused/],
  [
    'Enforced',
    'True',
    'Enforced',
    { store: { kind: 'faulty', message: 'm', isKept: true } },
    /refused/,
  ],
];

describe('a condition', () => {
  for (const [type, status, reason, scene, message] of TABLE) {
    it(`${type} is ${status}/${reason}: ${message.source}`, () => {
      const [gotStatus, gotReason, gotMessage] = told(scene, type);

      assert.deepEqual([gotStatus, gotReason], [status, reason]);
      assert.match(gotMessage, message);
    });
  }

  it('of every reason is tried', () => {
    const tried = new Set(TABLE.map(([type, , reason]) => `${type}/${reason}`));
    const known = Object.entries(conditionReasons).flatMap(([type, reasons]) =>
      reasons.map((reason) => `${type}/${reason}`),
    );

    assert.deepEqual(
      known.filter((one) => !tried.has(one)),
      [],
    );
  });

  it('names three of a kind and counts the others', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const pods = names.map((name) => [name, { mode: 'takeover' }] as const);

    assert.match(
      told({ pods, reports: {} }, 'Programmed')[2],
      /not yet: pod a, b, c and 2 more\.$/,
    );
    assert.match(
      told({ pods: pods.slice(0, 3), reports: {} }, 'Programmed')[2],
      /not yet: pod a, b, c\.$/,
    );
  });

  it('Accepted names the rules of other policies that conflict', () => {
    const others = [
      policyObject('two'),
      policyObject('three', {
        rules: [{ name: 'all', buckets: [{ ...BUCKETS[0], capacity: 5 }] }],
      }),
    ];

    const [, , message] = told({ others }, 'Accepted');

    assert.match(message, /shop\/one\/all and shop\/two\/all are equal/);
    assert.match(
      message,
      /shop\/one\/all and shop\/three\/all|shop\/three\/all and shop\/one\/all/,
    );
  });
});

describe('what is observed of a policy', () => {
  const nothing = {
    reportOf: () => undefined,
    keySetOf: () => NOT_FETCHED,
    store: { kind: 'none' } as const,
    isSettling: false,
  };

  it('is nothing when it is gone', () => {
    assert.equal(observePolicy(new World(cel), 'shop/one', nothing), undefined);
  });

  it('is no way around, and no conflict, on a pod that it does not apply to', () => {
    const scene: Scene = {
      spec: { ports: ['grpc'] },
      service: { ports: [{ port: 80, targetPort: 8080 }] },
    };

    const { bypasses, bypassable, pods } = observe(scene);

    assert.deepEqual([bypasses, bypassable], [[], 0]);
    assert.deepEqual(pods[0]?.match, { ports: [], missing: ['grpc'] });
  });

  it('finds no port on a pod without a sidecar', () => {
    const { pods } = observe({ spec: { ports: ['http'] }, pods: [['bare', {}]] });

    assert.deepEqual(pods[0]?.match, { ports: [], missing: ['http'] });
  });

  it('is the same in whatever order its pods were seen', () => {
    const pods = ['b', 'c', 'a'].map((name) => [name, { mode: 'takeover' }] as const);

    assert.deepEqual(
      observe({ pods }).pods.map(({ name }) => name),
      ['a', 'b', 'c'],
    );
  });
});

describe('of several obstacles', () => {
  const everything: Scene = {
    spec: { mode: 'Shadow' },
    pods: [TAKEOVER, ['b', { annotations: { 'weir.dev/inject': 'enabled' } }]],
    service: { ports: [{ port: 80, targetPort: 8080 }] },
    store: { kind: 'none' },
    reports: { a: { generations: new Map(), clientIpIsProxy: ['shop/one/all'] } },
  };
  const running = { a: { clientIpIsProxy: ['shop/one/all'] } };
  const steps: readonly [string, Scene][] = [
    ['NotAccepted', { ...everything, spec: { ...celFault, mode: 'Disabled' } }],
    ['Disabled', { ...everything, spec: { mode: 'Disabled' }, pods: [] }],
    ['NoMatchingPods', { ...everything, pods: [] }],
    ['NotInjected', everything],
    ['NotProgrammed', { ...everything, pods: [TAKEOVER] }],
    ['Shadow', { ...everything, pods: [TAKEOVER], reports: running }],
    ['Bypassable', { ...everything, pods: [TAKEOVER], reports: running, spec: {} }],
    ['StoreUnavailable', { pods: [TAKEOVER], reports: running, store: { kind: 'none' } }],
    ['ClientIPIsProxy', { pods: [TAKEOVER], reports: running }],
  ];

  for (const [reason, scene] of steps) {
    it(`${reason} is told before what comes after it`, () => {
      assert.equal(told(scene, 'Enforced')[1], reason);
    });
  }
});

describe('the plan of a status', () => {
  it('counts pods and rules', () => {
    const scene: Scene = {
      pods: [
        TAKEOVER,
        ['b', { mode: 'takeover' }],
        ['c', { annotations: { 'weir.dev/inject': 'enabled' } }],
        ['d', {}],
        ['gone', { mode: 'takeover', phase: 'Failed' }],
      ],
      service: { ports: [{ port: 80, targetPort: 8080 }] },
      reports: { a: {}, b: refusal('bad') },
    };

    const { status } = planStatus(observe(scene), 0);

    assert.deepEqual(status.pods, {
      summary: '1/3',
      matched: 3,
      injected: 2,
      programmed: 1,
      rejected: 1,
      bypassable: 2,
    });
    assert.equal(status.rules, 1);
  });

  it('keeps the time of a condition whose status stays, and moves it when that changes', () => {
    const first = planStatus(observe({ reports: {} }), 0).status;
    const observation = observe();
    const policy = { ...observation.policy, status: first };

    const { status, change, transitions } = planStatus({ ...observation, policy }, 60_000);

    assert.deepEqual(
      status.conditions.map((one) => [one.type, one.lastTransitionTime]),
      [
        ['Accepted', '1970-01-01T00:00:00Z'],
        ['ResolvedRefs', '1970-01-01T00:00:00Z'],
        ['Programmed', '1970-01-01T00:01:00Z'],
        ['Enforced', '1970-01-01T00:01:00Z'],
      ],
    );
    assert.deepEqual(
      [change, transitions.map(({ condition }) => condition.reason)],
      ['update', ['Programmed', 'Enforced']],
    );
  });

  it('takes nothing back while sidecars are still coming back', () => {
    const good = planStatus(observe(), 0).status;
    const observation = observe({ reports: {}, isSettling: true });
    const policy = { ...observation.policy, status: good };

    assert.equal(planStatus({ ...observation, policy }, 1).change, 'none');
    assert.equal(planStatus({ ...observation, policy, isSettling: false }, 1).change, 'update');
  });

  it('tells of the first pods also then: nothing is taken back by that', () => {
    const empty = planStatus(observe({ pods: [], reports: {} }), 0).status;
    const observation = observe({ reports: {}, isSettling: true });
    const policy = { ...observation.policy, status: empty };

    const { change, status } = planStatus({ ...observation, policy }, 1);

    assert.deepEqual([change, status.pods.summary], ['update', '0/1']);
  });

  it('speaks of a new generation at once, also then', () => {
    const good = planStatus(observe(), 0).status;
    const observation = observe({ reports: {}, isSettling: true, generation: 2 });
    const policy = { ...observation.policy, status: good };

    assert.equal(planStatus({ ...observation, policy }, 1).change, 'first');
  });

  it('counts no rule as in force where no version was ever good', () => {
    assert.equal(planStatus(observe({ spec: celFault }), 0).status.rules, 0);
  });

  it('does not trip over a status that somebody else wrote', () => {
    const observation = observe();
    const policy = { ...observation.policy, status: { conditions: 'none', rules: -1 } };

    assert.equal(planStatus({ ...observation, policy }, 0).change, 'first');
  });
});

describe('a message', () => {
  it('is cut at its bound, between characters', () => {
    assert.equal(bounded('x'.repeat(MESSAGE_MAX)), 'x'.repeat(MESSAGE_MAX));
    assert.equal(bounded('x'.repeat(MESSAGE_MAX + 1)), `${'x'.repeat(MESSAGE_MAX - 1)}…`);
    assert.equal(bounded('ab😀cd', 4), 'ab…');
  });
});
