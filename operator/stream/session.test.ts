import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkOperatorFrame, FrameDecoder } from '../../contract/frame-codec.ts';
import type {
  ByeFrame,
  ConfigFrame,
  DeltaFrame,
  HelloFrame,
  OperatorFrame,
  PolicyRefusal,
  SidecarFrame,
} from '../../contract/stream.ts';
import { compiledPolicy } from '../../test/support/compiled-policy.ts';
import { StreamWorld } from '../../test/support/stream-world.ts';
import { PolicyTexts } from './policy-texts.ts';
import {
  ACK_WITHIN_MS,
  CATCH_UP_MS,
  DEBOUNCE_MOST_MS,
  DEBOUNCE_MS,
  FRAMES_PER_MINUTE_MAX,
  HELLO_WITHIN_MS,
  LIFETIME_MS,
  type SessionReport,
  StreamSession,
} from './session.ts';

const POD = 'pod-1';

/** A session with a moved clock; the test speaks for the sidecar. */
class Fixture {
  nowMs = 0;
  readonly world = new StreamWorld();
  readonly frames: OperatorFrame[] = [];
  readonly reports: SessionReport[] = [];
  bye: ByeFrame | undefined;
  readonly session: StreamSession;
  readonly #decoder = new FrameDecoder<OperatorFrame>(checkOperatorFrame);

  constructor({ mayRegress = false, refusals = [] as readonly PolicyRefusal[] } = {}) {
    this.world.addPod(POD);
    this.world.policies = [
      compiledPolicy({ uid: 'a', name: 'a' }),
      compiledPolicy({ uid: 'b', name: 'b' }),
    ];
    this.session = new StreamSession({
      podUid: POD,
      pod: { namespace: 'shop', name: POD },
      provider: this.world,
      texts: new PolicyTexts(),
      refusals: () => refusals,
      mayRegress: () => mayRegress,
      nowMs: 0,
      random: () => 0.5,
      timestamp: () => '2026-01-01T00:00:00.000Z',
      sink: {
        send: (lines) => {
          for (const one of this.#decoder.push(Buffer.from(lines.join('')))) {
            assert.equal(one.kind, 'frame');
            this.frames.push(one.frame);
          }
        },
        close: (bye) => {
          this.bye = bye;
        },
        report: (report) => this.reports.push(report),
      },
    });
  }

  /** Moves the clock, stopping at every date the session asks for. */
  pass(ms: number): void {
    const until = this.nowMs + ms;
    while (this.session.dueMs <= until) {
      this.nowMs = Math.max(this.nowMs, this.session.dueMs);
      const before = this.session.dueMs;
      this.session.onTime(this.nowMs);
      assert.notEqual(this.session.dueMs, before, 'the session asks for the same date again');
    }
    this.nowMs = until;
  }

  change(policies: StreamWorld['policies']): void {
    this.world.policies = policies;
    this.session.onChange(this.nowMs);
  }

  say(frame: SidecarFrame): void {
    this.session.receive({ kind: 'frame', frame }, this.nowMs);
  }

  hello(
    have: Partial<HelloFrame['have']> = {},
    sidecar: Partial<HelloFrame['sidecar']> = {},
  ): void {
    this.say({
      type: 'hello',
      protocol: 1,
      pod: { namespace: 'shop', name: POD, uid: POD },
      sidecar: { version: '1.0.0', formats: [1], ...sidecar },
      have: { version: '', sources: [], origin: 'none', ...have },
    });
  }

  get last(): ConfigFrame | DeltaFrame {
    const frame = this.frames.at(-1);
    assert(frame?.type === 'config' || frame?.type === 'delta');
    return frame;
  }

  get kind(): string {
    return this.last.type;
  }

  ack(): void {
    this.say({ type: 'ack', nonce: this.last.nonce, version: this.last.version });
  }

  refuse(uid: string, generation: number): void {
    const refusal = { uid, generation, path: 'spec', code: 'Invalid', message: 'no' } as const;
    this.say({
      type: 'nack',
      nonce: this.last.nonce,
      version: 'theirs',
      code: 'Policies',
      refusals: [refusal],
    });
  }
}

describe('the start of a stream', () => {
  it('waits five seconds for hello', () => {
    const fixture = new Fixture();

    fixture.pass(HELLO_WITHIN_MS - 1);
    const before = fixture.bye;
    fixture.pass(1);

    assert.equal(before, undefined);
    assert.equal(fixture.bye?.reason, 'Protocol');
  });

  it('is answered with everything, and only the version when the sidecar has it', () => {
    const [fresh, warm] = [new Fixture(), new Fixture()];

    fresh.hello();
    warm.hello({ version: warm.world.bundle(POD).version, origin: 'cache' });

    assert.equal(fresh.last.type === 'config' && fresh.last.policies.length, 2);
    assert.equal(warm.last.type === 'config' && warm.last.unchanged, true);
  });

  it('ends when the sidecar says it is another pod, or speaks another protocol', () => {
    const [other, newer, mute] = [new Fixture(), new Fixture(), new Fixture()];
    const hello: HelloFrame = {
      type: 'hello',
      protocol: 1,
      pod: { namespace: 'shop', name: POD, uid: 'pod-2' },
      sidecar: { version: '1', formats: [1] },
      have: { version: '', sources: [], origin: 'none' },
    };

    other.say(hello);
    newer.say({ ...hello, pod: { ...hello.pod, uid: POD }, protocol: 2 });
    mute.say({ type: 'ack', nonce: 1, version: '' });

    assert.deepEqual(
      [other, newer, mute].map(({ bye }) => bye?.reason),
      ['Unauthorized', 'Protocol', 'Protocol'],
    );
    assert.equal(other.frames.length, 0);
  });
});

describe('a change', () => {
  it('goes out once it has been quiet, as the difference', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();
    const changed = compiledPolicy({ uid: 'a', name: 'a', generation: 2 });

    fixture.change([changed]);
    fixture.pass(DEBOUNCE_MS - 1);
    const before = fixture.frames.length;
    fixture.pass(1);

    assert.equal(before, 1);
    assert.equal(fixture.kind, 'config', 'all that is left has changed');
    fixture.ack();
    fixture.change([changed, compiledPolicy({ uid: 'c', name: 'c' })]);
    fixture.pass(DEBOUNCE_MS);
    assert(fixture.last.type === 'delta');
    assert.deepEqual(
      fixture.last.upsert.map(({ uid }) => uid),
      ['c'],
    );
  });

  it('among changes without a pause goes out within a second', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();

    for (let i = 0; i < 30; i += 1) {
      fixture.change([compiledPolicy({ uid: 'a', name: 'a', generation: 2 + i })]);
      fixture.pass(50);
    }

    assert.equal(fixture.frames.length, 2);
    assert.equal(fixture.frames.length * DEBOUNCE_MOST_MS > 1_500, true);
  });

  it('waits for the answer to the push before it, and several become one', () => {
    const fixture = new Fixture();
    fixture.hello();

    for (const generation of [2, 3, 4]) {
      fixture.change([compiledPolicy({ uid: 'a', name: 'a', generation })]);
      fixture.pass(5_000);
    }
    const before = fixture.frames.length;
    fixture.ack();

    assert.equal(before, 1);
    assert.equal(fixture.frames.length, 2);
    assert.equal(fixture.last.type === 'config' && fixture.last.policies[0]?.generation, 4);
  });

  it('that changes nothing for this pod is not sent', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();

    fixture.session.onChange(fixture.nowMs);
    fixture.pass(DEBOUNCE_MOST_MS);

    assert.equal(fixture.frames.length, 1);
  });

  it('of settings alone says nothing of policies', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();

    fixture.world.settings = { store: { url: 'redis://two' } };
    fixture.session.onChange(fixture.nowMs);
    fixture.pass(DEBOUNCE_MS);

    assert(fixture.last.type === 'config');
    assert.deepEqual([fixture.last.unchanged, fixture.last.policies.length], [true, 0]);
    assert.equal(fixture.last.settings.store?.url, 'redis://two');
  });

  it('goes out whole when the sidecar has something else than was thought', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();
    fixture.change([...fixture.world.policies, compiledPolicy({ uid: 'c', name: 'c' })]);
    fixture.pass(DEBOUNCE_MS);
    assert.equal(fixture.kind, 'delta');
    const { nonce } = fixture.last;

    fixture.say({ type: 'nack', nonce, version: 'x', code: 'UnknownBase', refusals: [] });

    assert.equal(fixture.last.type === 'config' && fixture.last.policies.length, 3);
  });
});

describe('an answer', () => {
  it('to an older push is ignored, and ends nothing', () => {
    const fixture = new Fixture();
    fixture.hello();

    fixture.say({ type: 'ack', nonce: 0, version: 'x' });
    fixture.say({ type: 'ack', nonce: 99, version: 'x' });

    assert.equal(fixture.bye, undefined);
    assert.equal(
      fixture.reports.some(({ kind }) => kind === 'in-force'),
      false,
    );
  });

  it('that does not come in a minute ends the stream', () => {
    const fixture = new Fixture();
    fixture.hello();

    fixture.pass(ACK_WITHIN_MS - 1);
    const before = fixture.bye;
    fixture.pass(1);

    assert.equal(before, undefined);
    assert.equal(fixture.bye?.reason, 'TooSlow');
  });

  it('is told with the generations in force', () => {
    const fixture = new Fixture();
    fixture.hello();

    fixture.ack();

    const report = fixture.reports.find(({ kind }) => kind === 'in-force');
    assert(report?.kind === 'in-force');
    assert.deepEqual(
      [...report.generations],
      [
        ['a', 1],
        ['b', 1],
      ],
    );
  });
});

describe('a refused policy', () => {
  it('is not sent again, and the sidecar keeps what it has of it', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();
    const bad = compiledPolicy({ uid: 'a', name: 'a', generation: 2 });
    const [, other] = fixture.world.policies;
    assert(other);
    fixture.change([bad, other]);
    fixture.pass(DEBOUNCE_MS);
    fixture.refuse('a', 2);
    const after = fixture.frames.length;

    fixture.pass(DEBOUNCE_MOST_MS);
    fixture.change([bad, other, compiledPolicy({ uid: 'c', name: 'c' })]);
    fixture.pass(DEBOUNCE_MS);

    assert.equal(fixture.frames.length, after + 1);
    assert(fixture.last.type === 'delta');
    assert.deepEqual(
      [fixture.last.upsert.map(({ uid }) => uid), fixture.last.held, fixture.last.remove],
      [['c'], ['a'], []],
    );
    const report = fixture.reports.findLast(({ kind }) => kind === 'in-force');
    assert(report?.kind === 'in-force');
    assert.deepEqual([report.generations.get('a'), report.refusals.length], [1, 1]);
  });

  it('is sent again in its next generation', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.refuse('a', 1);

    fixture.change([
      compiledPolicy({ uid: 'a', name: 'a', generation: 2 }),
      compiledPolicy({ uid: 'b', name: 'b' }),
    ]);
    fixture.pass(DEBOUNCE_MS);

    assert.equal(fixture.kind, 'delta');
    assert.deepEqual(fixture.last.type === 'delta' && fixture.last.upsert.map(({ uid }) => uid), [
      'a',
    ]);
  });

  it('was refused only if it was sent', () => {
    const fixture = new Fixture();
    fixture.hello();

    fixture.refuse('a', 7);
    fixture.change([compiledPolicy({ uid: 'a', name: 'a', generation: 7 })]);
    fixture.pass(DEBOUNCE_MS);

    assert.equal(fixture.last.type === 'config' && fixture.last.policies.length, 1);
  });

  it('in an earlier stream is not sent in the next one', () => {
    const refusals = [{ uid: 'a', generation: 1, path: '', code: 'Invalid', message: '' }] as const;
    const fixture = new Fixture({ refusals });

    fixture.hello();

    assert(fixture.last.type === 'config');
    assert.deepEqual(
      [fixture.last.policies.map(({ uid }) => uid), fixture.last.held],
      [['b'], ['a']],
    );
  });

  it('by a push that was refused as a whole is not pushed again until something changes', () => {
    const fixture = new Fixture();
    fixture.hello();
    const { nonce } = fixture.last;

    fixture.say({ type: 'nack', nonce, version: '', code: 'BadFrame', refusals: [] });
    fixture.session.onChange(fixture.nowMs);
    fixture.pass(DEBOUNCE_MOST_MS);

    assert.equal(fixture.frames.length, 1);
  });
});

describe('a sidecar that is too old', () => {
  it('is not sent what it does not know, and that is told once', () => {
    const fixture = new Fixture();
    fixture.world.policies = [
      compiledPolicy({ uid: 'a', name: 'a', ports: [80] }),
      compiledPolicy({ uid: 'b', name: 'b' }),
    ];
    const features = [...new PolicyTexts().featuresOf(compiledPolicy())];

    fixture.hello({}, { features });
    fixture.ack();

    const reports = fixture.reports.filter(({ kind }) => kind === 'too-old');
    assert.deepEqual(reports, [
      { kind: 'too-old', policies: [{ uid: 'a', generation: 1, features: ['ports'] }] },
    ]);
    assert(fixture.last.type === 'config');
    assert.deepEqual(
      [fixture.last.policies.map(({ uid }) => uid), fixture.last.held],
      [['b'], ['a']],
    );
  });

  it('in its format is sent nothing', () => {
    const fixture = new Fixture();

    fixture.hello({}, { formats: [0] });

    assert.equal(fixture.last.type === 'config' && fixture.last.policies.length, 0);
  });
});

describe('generations', () => {
  const sources = [{ uid: 'a', generation: 5 }];

  it('never go back: the cache has ten seconds to catch up', () => {
    const fixture = new Fixture();
    fixture.hello({ version: 'x', sources });

    fixture.pass(CATCH_UP_MS - 1);
    const before = [fixture.frames.length, fixture.bye];
    fixture.pass(1);

    assert.deepEqual(before, [0, undefined]);
    assert.equal(fixture.frames.length, 0);
    assert.equal(fixture.bye?.reason, 'Moved');
  });

  it('that have caught up are sent', () => {
    const fixture = new Fixture();
    fixture.hello({ version: 'x', sources });
    fixture.pass(CATCH_UP_MS - DEBOUNCE_MS - 1);

    fixture.change([compiledPolicy({ uid: 'a', name: 'a', generation: 5 })]);
    fixture.pass(CATCH_UP_MS);

    assert.equal(fixture.bye?.reason, undefined);
    assert.equal(fixture.frames.length, 1);
  });

  it('go back when that is what the cluster has, and that is said', () => {
    const fixture = new Fixture({ mayRegress: true });

    fixture.hello({ version: 'x', sources });

    assert.equal(fixture.last.type === 'config' && fixture.last.regressed, true);
  });
});

describe('the end of a stream', () => {
  it('comes after an hour, give or take', () => {
    const fixture = new Fixture();
    fixture.hello();
    fixture.ack();

    fixture.pass(LIFETIME_MS - 1);
    const before = fixture.bye;
    fixture.pass(1);

    assert.equal(before, undefined);
    assert.equal(fixture.bye?.reason, 'Rebalance');
  });

  it('comes when a sidecar says too much, and not before', () => {
    const fixture = new Fixture();
    fixture.hello();
    const state = { type: 'state', version: '', origin: 'none', clientIpIsProxy: [] } as const;

    for (let i = 1; i < FRAMES_PER_MINUTE_MAX; i += 1) fixture.say(state);
    const before = fixture.bye;
    fixture.say(state);

    assert.equal(before, undefined);
    assert.equal(fixture.bye?.reason, 'Protocol');
  });

  it('is the last word', () => {
    const fixture = new Fixture();
    fixture.session.end('Shutdown');

    fixture.hello();
    fixture.pass(LIFETIME_MS * 2);

    assert.equal(fixture.frames.length, 0);
    assert.equal(fixture.bye?.reason, 'Shutdown');
  });
});
