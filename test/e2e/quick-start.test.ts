// What the README promises on Kubernetes, typed as it stands there, and what must hold then.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { textAt, valueAt } from '../cluster/json-value.ts';
import { eventually } from '../support/redis.ts';
import { conditionOf, E2e, SETTLE_MS, type Room } from './support/e2e.ts';
import { commandsOf } from './support/readme.ts';
import { Shell } from './support/shell.ts';
import type { TrafficResult } from './pods/traffic.ts';

/** Of the premium tier in examples/free-and-premium.yaml. */
const CAPACITY = 1_000;
const MS_PER_TOKEN = 3_600;

describe('the quick start', () => {
  let e2e: E2e;
  let shell: Shell;
  let blocks: readonly string[];
  before(async () => {
    e2e = await E2e.open();
    shell = await Shell.open(e2e.config);
    blocks = await commandsOf('README.md', 'On Kubernetes');
  });
  after(async () => {
    await e2e.kubectl(['delete', 'namespace', 'shop', '--wait=false', '--ignore-not-found']);
    await shell[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  async function type(block: string | undefined): Promise<string> {
    assert(block !== undefined);
    const { code, stdout, stderr } = await shell.run(block);
    assert.equal(code, 0, `${block}\n${stderr}${stdout}`);
    return stdout;
  }

  it('installs, and answers with the next commands', async () => {
    const said = await type(blocks[0]);

    assert.match(said, /STATUS: deployed/);
    assert.match(said, /kubectl get rlpol/);
  });

  it('rolls the sidecar out', async () => {
    const said = await type(blocks[1]);

    assert.match(said, /deployment "api" successfully rolled out/);
    for (const pod of await e2e.pods('shop', 'api')) {
      assert.equal(textAt(pod, 'metadata', 'labels', 'weir.dev/injected'), 'true');
    }
  });

  it('shows that the policy is enforced on 3 of 3 pods', async () => {
    await eventually('3/3', async () => /\bTrue\s+3\/3\b/.test(await type(blocks[2])), SETTLE_MS);
  });

  it('refuses what is over the limit, whichever pod gets it', async () => {
    // The port-forward of the block takes a moment.
    const block = (blocks[3] ?? '').replace(
      '&\n',
      '&\nuntil curl -s localhost:8080 >/dev/null; do sleep 0.2; done\n',
    );
    const lines = (await type(block)).match(/HTTP\/1\.1 \d+/g) ?? [];

    const admitted = lines.filter((line) => line.endsWith('200')).length;
    assert.equal(lines.length, 12);
    // Ten at once; two a second come back while the twelve are sent.
    assert(admitted >= 10 && admitted < 12, `${admitted} of 12 were admitted`);
  });

  describe('then', () => {
    let room: Room;
    const degraded = new Map<string, number>();
    const premium = { 'x-api-key': 'carol', 'x-plan': 'premium' };
    before(async () => {
      room = await e2e.namespace('shop');
    });

    async function send(count: number): Promise<TrafficResult> {
      const url = 'http://api.shop/';
      return room.send({ kind: 'burst', url, count, atOnce: 20, headers: premium });
    }

    async function scale(replicas: number): Promise<void> {
      await e2e.kubectl(['scale', '-n', 'shop', 'deployment/api', `--replicas=${replicas}`]);
      await e2e.rolledOut('shop', 'deployment/api');
      await eventually(
        `${replicas} sidecars enforce`,
        async () => {
          const policy = await e2e.get('shop', 'rlpol/free-and-premium');
          const isEnforced = conditionOf(policy, 'Enforced') === 'True/Enforced';
          const summary = valueAt(policy, 'status', 'pods', 'summary');
          return isEnforced && summary === `${replicas}/${replicas}`;
        },
        SETTLE_MS,
      );
    }

    /** Notes, by pod, how many requests its failure mode decided: on a starved node the store does not answer in time. */
    async function noteDegraded(): Promise<void> {
      for (const pod of await e2e.pods('shop', 'api')) {
        const name = textAt(pod, 'metadata', 'name');
        const path = `/api/v1/namespaces/shop/pods/${name}:15090/proxy/metrics`;
        const count = /^weir_degraded_total (\d+)$/m.exec(
          await e2e.kubectl(['get', '--raw', path]),
        );
        assert(count !== null, `${name} counts what its failure mode decides`);
        degraded.set(name, Number(count[1]));
      }
    }

    it('holds the limit exactly over 3 pods, over 5 and over 3 again', async () => {
      const started = Date.now();
      const first = await send(500);
      const firstEnd = Date.now();
      await scale(5);
      const second = await send(450);
      await noteDegraded();
      await scale(3);
      const thirdStart = Date.now();
      const third = await send(400);
      const ended = Date.now();
      await noteDegraded();

      const all = [first, second, third];
      for (const { failures } of all) assert.deepEqual(failures, {});
      assert.deepEqual(first.statuses, { 200: 500 });
      assert.deepEqual(second.statuses, { 200: 450 });
      assert.equal(Object.keys(first.bodies).length, 3, 'every pod served');
      assert.equal(Object.keys(second.bodies).length, 5, 'every pod served');
      const admitted = all.reduce((sum, { statuses }) => sum + (statuses['200'] ?? 0), 0);
      // The bucket was full at its first request, which came between `started` and `firstEnd`.
      const least = CAPACITY + Math.floor((thirdStart - firstEnd) / MS_PER_TOKEN);
      const most = CAPACITY + Math.floor((ended - started) / MS_PER_TOKEN);
      const others = [...degraded.values()].reduce((sum, count) => sum + count, 0);
      assert(
        least - others <= admitted && admitted <= most + others,
        `${least} <= ${admitted} <= ${most}, and ${others} were the failure mode's`,
      );
      assert.equal(third.statuses['429'], 1_350 - admitted);
    });
  });
});
