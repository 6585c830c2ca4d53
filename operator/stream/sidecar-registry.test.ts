import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HelloFrame, StateFrame } from '../../contract/stream.ts';
import { REGRESSION_MS, REMEMBERED_MS, SidecarRegistry } from './sidecar-registry.ts';

const POD = { namespace: 'shop', name: 'api-1' };
const refusal = { uid: 'a', generation: 2, path: '', code: 'Invalid', message: '' } as const;

function hello(version = '1.0.0'): HelloFrame {
  return {
    type: 'hello',
    protocol: 1,
    pod: { ...POD, uid: 'pod-1' },
    sidecar: { version, formats: [1] },
    have: { version: 'v1', sources: [{ uid: 'a', generation: 1 }], origin: 'cache' },
  };
}

class Fixture {
  nowMs = 0;
  readonly registry = new SidecarRegistry(() => this.nowMs);
  readonly told: string[] = [];

  constructor() {
    this.registry.onChange((podUid) => this.told.push(podUid));
    this.registry.report('pod-1', POD, { kind: 'hello', hello: hello() });
  }

  state(rest: Partial<StateFrame> = {}): void {
    const state = { type: 'state', version: 'v1', origin: 'cache', clientIpIsProxy: [] } as const;
    this.registry.report('pod-1', POD, { kind: 'state', state: { ...state, ...rest } });
  }

  sweep(exists = true): void {
    this.registry.sweep(() => exists);
  }
}

describe('what is known of a sidecar', () => {
  it('begins with what it says it has', () => {
    const state = new Fixture().registry.get('pod-1');

    assert.deepEqual([state?.connected, state?.version, state?.origin], [true, 'v1', 'cache']);
    assert.equal(state?.generations.get('a'), 1);
  });

  it('wakes nobody when a state says nothing new', () => {
    const fixture = new Fixture();
    fixture.state({ store: 'up' });
    const before = fixture.told.length;

    fixture.state({ store: 'up' });
    const same = fixture.told.length;
    fixture.state({ store: 'down' });

    assert.deepEqual([same, fixture.told.length], [before, before + 1]);
  });

  it('outlives its stream for a minute', () => {
    const fixture = new Fixture();
    fixture.registry.disconnect('pod-1');

    fixture.nowMs = REMEMBERED_MS - 1;
    fixture.sweep();
    const within = fixture.registry.get('pod-1')?.connected;
    fixture.nowMs = REMEMBERED_MS;
    fixture.sweep();

    assert.equal(within, false);
    assert.equal(fixture.registry.get('pod-1'), undefined);
    assert.equal(fixture.told.length, 3);
  });

  it('does not outlive its stream and its pod, but a stream without a known pod', () => {
    const fixture = new Fixture();

    fixture.sweep(false);
    const connected = fixture.registry.get('pod-1')?.connected;
    fixture.registry.disconnect('pod-1');
    fixture.sweep(false);

    assert.equal(connected, true);
    assert.equal(fixture.registry.get('pod-1'), undefined);
  });

  it('does not end with a reconnect', () => {
    const fixture = new Fixture();
    fixture.registry.disconnect('pod-1');
    fixture.registry.report('pod-1', POD, { kind: 'hello', hello: hello() });

    fixture.nowMs = REMEMBERED_MS * 2;
    fixture.sweep();

    assert.equal(fixture.registry.get('pod-1')?.connected, true);
  });
});

describe('refusals', () => {
  it('stand for the version of the sidecar that refused', () => {
    const fixture = new Fixture();
    const generations = new Map([['a', 1]]);
    const report = { kind: 'in-force', version: 'v1', generations, refusals: [refusal] } as const;
    fixture.registry.report('pod-1', POD, report);

    const [same, other] = ['1.0.0', '1.0.1'].map((one) =>
      fixture.registry.refusalsOf('pod-1', one),
    );
    fixture.registry.report('pod-1', POD, { kind: 'hello', hello: hello('1.0.1') });

    assert.deepEqual([same, other], [[refusal], []]);
    assert.deepEqual(fixture.registry.get('pod-1')?.refusals, []);
  });
});

describe('a cache that is behind a sidecar', () => {
  it('is what the cluster has after a minute of it', () => {
    const fixture = new Fixture();
    fixture.registry.report('pod-1', POD, { kind: 'behind' });

    fixture.nowMs = REGRESSION_MS - 1;
    fixture.registry.report('pod-1', POD, { kind: 'behind' });
    const within = fixture.registry.mayRegress('pod-1');
    fixture.nowMs = REGRESSION_MS;

    assert.deepEqual([within, fixture.registry.mayRegress('pod-1')], [false, true]);
    assert.equal(fixture.registry.mayRegress('pod-2'), false);
  });

  it('has caught up with the next acknowledged push', () => {
    const fixture = new Fixture();
    fixture.registry.report('pod-1', POD, { kind: 'behind' });
    const report = {
      kind: 'in-force',
      version: 'v',
      generations: new Map(),
      refusals: [],
    } as const;
    fixture.registry.report('pod-1', POD, report);

    fixture.nowMs = REGRESSION_MS;

    assert.equal(fixture.registry.mayRegress('pod-1'), false);
  });
});
