// Sidecars while the operator is away: a container that restarts has the cache of its pod, a pod that is new has the
// seed it was created with, and both say where their rules come from and how old these are.
import assert from 'node:assert/strict';
import process from 'node:process';
import { after, before, describe, it } from 'node:test';
import { decodeSeed } from '../../contract/seed.ts';
import { eventually } from '../support/redis.ts';
import { deployment, EnforcedApp, policy } from './enforced-app.ts';
import { valueAt } from './json-value.ts';
import type { PodSidecar } from './pod-sidecars.ts';
import { askInTurn, tallyOf } from './sidecar-requests.ts';
import { whyNoFaults } from './test-cluster.ts';

const PODS = 2;
const CAPACITY = 12;

describe('sidecars of an operator that is away', { skip: whyNoFaults() }, () => {
  let app: EnforcedApp;
  /** Before the operator went. */
  let status: unknown;

  before(async () => {
    app = await EnforcedApp.open();
    // A seed holds the rules of the moment in which the pod was created.
    await app.apply([policy('kept', { capacity: CAPACITY })]);
    await app.untilConditions('kept', { Accepted: 'True/Accepted' });
    await app.apply([deployment('api', { replicas: PODS })]);
    await app.sidecars.follow(PODS);
    await app.untilInForce('kept');
    const settled = { Programmed: 'True/Programmed', Enforced: 'True/Enforced' };
    status = valueAt(await app.untilConditions('kept', settled), 'status');
  });
  after(async () => {
    if (process.env['WEIR_TEST_LOG']) console.error(app.operator.log.join('\n'));
    await app[Symbol.asyncDispose]();
  });

  async function originOf({ process: sidecar }: PodSidecar): Promise<string> {
    for (const origin of ['stream', 'cache', 'seed', 'none']) {
      if ((await sidecar.metric('weir_config_origin', `{origin="${origin}"}`)) === 1) return origin;
    }
    return 'unsaid';
  }

  it('go on enforcing what they have, and their rules grow old to be seen', async () => {
    await app.operators.first.stop('SIGKILL');

    const statuses = await askInTurn(app.sidecars.ports, 4);

    assert.deepEqual(tallyOf(statuses), { 200: 4 });
    for (const sidecar of app.sidecars.all) {
      assert.equal(await originOf(sidecar), 'stream');
      const age = await sidecar.process.metric('weir_config_age_seconds');
      await eventually('the age grows', async () => {
        return (await sidecar.process.metric('weir_config_age_seconds')) > age;
      });
    }
  });

  it('restart with the cache of their pod: the same limit, in the same store', async () => {
    const [first] = app.sidecars.all;
    assert(first !== undefined);
    await first.crash();

    await first.start();

    assert.equal(await originOf(first), 'cache');
    assert.ok((await first.process.metric('weir_config_age_seconds')) > 0);
    const statuses = await askInTurn(app.sidecars.ports, 10);
    assert.deepEqual(tallyOf(statuses), { 200: 8, 429: 2 }, 'four of twelve were spent before');
  });

  it('start with the seed where the pod is new, each with its share of the limit', async () => {
    const [, second] = app.sidecars.all;
    assert(second !== undefined);
    await second.loseCache();

    await second.start();

    assert.equal(await originOf(second), 'seed');
    assert.equal((await second.process.ask('/readyz')).status, 200);
    // The seed holds no way to the store: a share of the limit, among as many pods as there were at that moment.
    const share = CAPACITY / replicasOf(second.seed);
    const statuses = await askInTurn([second.process.port], CAPACITY + 2);
    assert.deepEqual(tallyOf(statuses), { 200: share, 429: CAPACITY + 2 - share });
  });

  it('take to the stream again when the operator is back, and status never said anything else', async () => {
    await app.operators.first.start();

    await app.untilInForce('kept');
    await eventually(
      'every sidecar has its rules from the stream',
      async () => (await Promise.all(app.sidecars.all.map(originOf))).every((o) => o === 'stream'),
      60_000,
    );

    const statuses = await askInTurn(app.sidecars.ports, 4);
    assert.deepEqual(tallyOf(statuses), { 429: 4 }, 'the shared bucket is empty, as it was');
    const elsewhere = { selector: { matchLabels: { app: 'nobody' } } };
    await app.apply([policy('later', { spec: elsewhere })]);
    await app.untilConditions('later', { Enforced: 'False/NoMatchingPods' });
    assert.deepEqual(valueAt(await app.policy('kept'), 'status'), status);
  });
});

/** Among how many pods the seed divides the limit. */
function replicasOf(seed: string): number {
  const decoded = decodeSeed(seed);
  assert(decoded.kind === 'seed');
  const [kept] = decoded.bundle.policies;
  assert(kept !== undefined);
  return kept.replicas;
}
