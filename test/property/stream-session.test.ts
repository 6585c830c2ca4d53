// The operator's session against the sidecar's keeper, with every interleaving of what may happen between them: worlds
// that change, pushes that are refused, streams that break at any moment, frames that are late.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import {
  checkOperatorFrame,
  checkSidecarFrame,
  encodeFrame,
  FrameDecoder,
} from '../../contract/frame-codec.ts';
import type { OperatorFrame, PolicyRefusal, SidecarFrame } from '../../contract/stream.ts';
import { PolicyTexts } from '../../operator/stream/policy-texts.ts';
import { SidecarRegistry } from '../../operator/stream/sidecar-registry.ts';
import { DEBOUNCE_MOST_MS, StreamSession } from '../../operator/stream/session.ts';
import { ConfigKeeper } from '../../sidecar/policy/config-keeper.ts';
import type { ConfigTarget, PushedConfig } from '../../sidecar/policy/pushed-config.ts';
import { PushAssembly } from '../../sidecar/policy/push-assembly.ts';
import { bundleWith, compiledPolicy } from '../support/compiled-policy.ts';
import { StreamWorld } from '../support/stream-world.ts';

const POD = 'pod-1';
const UIDS = ['a', 'b', 'c', 'd'];

/** Takes everything but the policies that say they are broken. */
class Target implements ConfigTarget {
  readonly applied: PushedConfig[] = [];

  apply(config: PushedConfig): Promise<readonly PolicyRefusal[]> {
    const refusals = config.bundle.policies.filter(isBroken).map(({ uid, generation }) => ({
      ...{ uid, generation, path: 'spec', message: 'broken' },
      code: 'Invalid' as const,
    }));
    if (refusals.length === 0) this.applied.push(config);
    return Promise.resolve(refusals);
  }

  report(): ReturnType<ConfigTarget['report']> {
    return { clientIpIsProxy: [] };
  }
}

function isBroken({ enforcePercent }: CompiledPolicy): boolean {
  return enforcePercent === 13;
}

/** One stream: what is on its way in each direction is delivered when the test says so. */
class Link {
  readonly toSidecar: OperatorFrame[] = [];
  readonly toOperator: SidecarFrame[] = [];
  readonly assembly = new PushAssembly();
  outstanding = 0;
  isOver = false;
}

class Simulation {
  nowMs = 0;
  readonly world = new StreamWorld();
  readonly registry = new SidecarRegistry(() => this.nowMs);
  readonly target = new Target();
  readonly keeper = new ConfigKeeper(this.target, pino({ enabled: false }));
  readonly #texts = new PolicyTexts();
  readonly #generations = new Map<string, number>();
  #session: StreamSession | undefined;
  #link: Link | undefined;

  constructor() {
    this.world.addPod(POD);
  }

  /** Each edit is a new generation, as the API server counts them. */
  edit(uid: string, isBrokenNow: boolean): void {
    const generation = (this.#generations.get(uid) ?? 0) + 1;
    this.#generations.set(uid, generation);
    const policy = compiledPolicy({
      uid,
      name: uid,
      generation,
      enforcePercent: isBrokenNow ? 13 : 100,
    });
    this.#set([...this.world.policies.filter((one) => one.uid !== uid), policy]);
  }

  delete(uid: string): void {
    this.#set(this.world.policies.filter((one) => one.uid !== uid));
  }

  rotate(n: number): void {
    this.world.settings = { store: { url: `redis://${n}` } };
    this.#session?.onChange(this.nowMs);
  }

  connect(): void {
    this.#link = new Link();
    const link = this.#link;
    const decoder = new FrameDecoder<OperatorFrame>(checkOperatorFrame);
    this.#session = new StreamSession({
      podUid: POD,
      pod: { namespace: 'shop', name: POD },
      provider: this.world,
      texts: this.#texts,
      refusals: (version) => this.registry.refusalsOf(POD, version),
      mayRegress: () => false,
      nowMs: this.nowMs,
      random: () => 0.5,
      timestamp: () => '',
      sink: {
        send: (lines) => {
          link.outstanding += 1;
          assert.equal(link.outstanding, 1, 'two pushes under way');
          for (const one of decoder.push(Buffer.from(lines.join('')))) {
            assert(one.kind === 'frame');
            link.toSidecar.push(one.frame);
          }
        },
        close: () => {
          link.isOver = true;
        },
        report: (report) => {
          this.registry.report(POD, { namespace: 'shop', name: POD }, report);
        },
      },
    });
    link.toOperator.push({
      type: 'hello',
      protocol: 1,
      pod: { namespace: 'shop', name: POD, uid: POD },
      sidecar: { version: '1', formats: [1] },
      have: this.keeper.have,
    });
  }

  /** Whatever was on its way is lost. */
  cut(): void {
    this.#session?.end('Shutdown');
    this.#session = undefined;
    this.#link = undefined;
    this.registry.disconnect(POD);
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.#session?.onTime(this.nowMs);
  }

  async deliverToSidecar(): Promise<void> {
    const link = this.#link;
    const frame = link?.toSidecar.shift();
    if (link === undefined || frame === undefined || frame.type === 'bye') return;
    const assembled = link.assembly.add(frame, 1);
    if (assembled.kind !== 'push') return;
    for (const policy of frame.type === 'config' ? frame.policies : [])
      this.#checkGeneration(policy);
    link.toOperator.push(await this.keeper.accept(assembled.push));
  }

  deliverToOperator(): void {
    const link = this.#link;
    const frame = link?.toOperator.shift();
    if (link === undefined || frame === undefined) return;
    if (frame.type === 'ack' || frame.type === 'nack') link.outstanding -= 1;
    const [decoded] = new FrameDecoder<SidecarFrame>(checkSidecarFrame).push(
      Buffer.from(encodeFrame(frame)),
    );
    assert(decoded);
    this.#session?.receive(decoded, this.nowMs);
  }

  /** Lets everything arrive. */
  async settle(): Promise<void> {
    if (this.#session === undefined) this.connect();
    for (let i = 0; i < 40; i += 1) {
      this.deliverToOperator();
      await this.deliverToSidecar();
      this.pass(DEBOUNCE_MOST_MS);
    }
  }

  #checkGeneration({ uid, generation }: CompiledPolicy): void {
    const known = this.keeper.inForce?.bundle.policies.find((one) => one.uid === uid);
    assert(generation >= (known?.generation ?? 0), `${uid} went back to ${generation}`);
  }

  #set(policies: readonly CompiledPolicy[]): void {
    this.world.policies = policies;
    this.#session?.onChange(this.nowMs);
  }
}

type Step = (simulation: Simulation) => void | Promise<void>;

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(fc.constantFrom(...UIDS), fc.boolean()).map(([uid, bad]): Step => (s) => {
    s.edit(uid, bad);
  }),
  fc.constantFrom(...UIDS).map((uid): Step => (s) => {
    s.delete(uid);
  }),
  fc.nat(3).map((n): Step => (s) => {
    s.rotate(n);
  }),
  fc.constant<Step>((s) => {
    s.cut();
  }),
  fc.constant<Step>((s) => {
    s.cut();
    s.connect();
  }),
  fc.nat(300).map((ms): Step => (s) => {
    s.pass(ms);
  }),
  fc.constant<Step>((s) => s.deliverToSidecar()),
  fc.constant<Step>((s) => s.deliverToSidecar()),
  fc.constant<Step>((s) => {
    s.deliverToOperator();
  }),
  fc.constant<Step>((s) => {
    s.deliverToOperator();
  }),
);

describe('operator and sidecar', () => {
  it('agree in the end, whatever came in between', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const simulation = new Simulation();
        for (const one of steps) await one(simulation);

        await simulation.settle();

        const { world, keeper, registry } = simulation;
        const inForce = keeper.inForce;
        assert(inForce !== undefined);
        const good = world.policies.filter((one) => !isBroken(one));
        const byUid = new Map(inForce.bundle.policies.map((one) => [one.uid, one]));
        for (const policy of good) assert.deepEqual(byUid.get(policy.uid), policy);
        // What else is there is the last good version of a policy that is broken now.
        for (const policy of inForce.bundle.policies) {
          assert(!isBroken(policy));
          assert(
            world.policies.some((one) => one.uid === policy.uid),
            `${policy.uid} was deleted`,
          );
        }
        assert.deepEqual(inForce.settings, world.settings);
        if (good.length === world.policies.length) {
          assert.equal(inForce.bundle.version, bundleWith(...world.policies).version);
        }
        const told = registry.get(POD);
        assert.equal(told?.version, inForce.bundle.version);
        for (const { uid, generation } of inForce.bundle.policies) {
          assert.equal(told.generations.get(uid), generation);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('send a refused generation once to a sidecar, over all its streams', async () => {
    const simulation = new Simulation();
    simulation.edit('a', false);
    simulation.connect();
    await simulation.settle();
    simulation.edit('a', true);
    await simulation.settle();
    const pushes = simulation.target.applied.length;

    for (let i = 0; i < 3; i += 1) {
      simulation.cut();
      simulation.connect();
      await simulation.settle();
    }

    assert.equal(simulation.keeper.inForce?.bundle.policies[0]?.generation, 1);
    assert.deepEqual(
      simulation.registry.get(POD)?.refusals.map(({ generation }) => generation),
      [2],
    );
    assert(simulation.target.applied.length - pushes <= 3, 'only what stays is confirmed');
  });
});
