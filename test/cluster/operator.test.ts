// The whole way on a real API server: kubectl apply, injected pods, their sidecars with tokens of these pods, requests.
import assert from 'node:assert/strict';
import process from 'node:process';
import { after, before, describe, it } from 'node:test';
import { driveLoad } from '../support/load.ts';
import { eventually, openRedisServer, type RedisServer } from '../support/redis.ts';
import { conditionsOf, deployment, EnforcedApp, policy, service } from './enforced-app.ts';
import { valueAt } from './json-value.ts';
import { askInTurn, tallyOf } from './sidecar-requests.ts';
import { whyNoFaults } from './test-cluster.ts';

const PODS = 3;
const ALL_WELL = {
  Accepted: 'True/Accepted',
  ResolvedRefs: 'True/ResolvedRefs',
  Programmed: 'True/Programmed',
  Enforced: 'True/Enforced',
};

describe('the operator beside a real API server', { skip: whyNoFaults() }, () => {
  let app: EnforcedApp;

  before(async () => {
    app = await EnforcedApp.open({ hasStore: false });
  });
  after(async () => {
    if (process.env['WEIR_TEST_LOG']) console.error(app.operator.log.join('\n'));
    await app[Symbol.asyncDispose]();
  });

  async function withPolicy(
    name: string,
    options: Parameters<typeof policy>[1],
    test: () => Promise<void>,
  ): Promise<void> {
    await app.apply([policy(name, options)]);
    await app.untilInForce(name);
    try {
      await test();
    } finally {
      await app.kubectl('delete', 'rlpol', name);
      await app.untilLifted(name);
    }
  }

  it('says of a policy without pods that it is accepted and what it waits for', async () => {
    await app.apply([policy('lonely', { spec: { selector: { matchLabels: { app: 'nobody' } } } })]);

    const found = await app.untilConditions('lonely', {
      Accepted: 'True/Accepted',
      ResolvedRefs: 'True/ResolvedRefs',
      Programmed: 'False/NoSidecars',
      Enforced: 'False/NoMatchingPods',
    });
    assert.equal(valueAt(found, 'status', 'pods', 'summary'), '0/0');
  });

  it('injects the pods of a Deployment, and their sidecars come for their rules', async () => {
    await app.apply([
      deployment('api', { replicas: PODS }),
      service('api', 'api', { ports: [{ name: 'http', port: 80, targetPort: 'http' }] }),
    ]);

    const sidecars = await app.sidecars.follow(PODS);

    assert.equal(sidecars.length, PODS);
    for (const { process: sidecar } of sidecars) {
      assert.equal(await sidecar.metric('weir_config_origin', '{origin="stream"}'), 1);
    }
  });

  it('says that a policy has no store as long as the Secret is not there, and what that means', async () => {
    await withPolicy('early', {}, async () => {
      const found = await app.untilConditions('early', { Enforced: 'False/StoreUnavailable' });
      assert.equal(
        conditionsOf(found).get('Enforced')?.message,
        'Secret weir-system/weir-store does not exist; each sidecar limits to its share (failureMode Local).',
      );

      await app.nameStore(app.redis.url);

      await app.untilConditions('early', ALL_WELL);
    });
  });

  it('enforces one limit over all pods, exactly, and says so', async () => {
    await withPolicy('shared', { capacity: 20 }, async () => {
      const statuses = await askInTurn(app.sidecars.ports, 30);

      assert.deepEqual(tallyOf(statuses), { 200: 20, 429: 10 });
      await app.untilPods('shared', '3/3');
      const found = await app.untilConditions('shared', ALL_WELL);
      assert.deepEqual(valueAt(found, 'status', 'pods'), {
        ...{ summary: '3/3', matched: 3, injected: 3, programmed: 3, rejected: 0, bypassable: 0 },
      });
      assert.match(
        await app.kubectl('get', 'rlpol', 'shared'),
        /^NAME +MODE +ENFORCED +PODS +AGE\nshared +Enforce +True +3\/3 +\S+\n$/,
      );
      assert.match(await app.kubectl('get', 'rlpol', 'shared', '-o', 'wide'), /Enforced/);
    });
    const statuses = await askInTurn(app.sidecars.ports, PODS);
    assert.deepEqual(tallyOf(statuses), { 200: PODS }, 'deleting it lifts the limit');
  });

  it('keeps the limit one while the Deployment grows and shrinks', async () => {
    await withPolicy('scaled', { capacity: 15 }, async () => {
      const before = await askInTurn(app.sidecars.ports, 5);
      await app.kubectl('scale', 'deployment', 'api', '--replicas=5');
      await app.sidecars.follow(5);
      await app.untilInForce('scaled');
      const during = await askInTurn(app.sidecars.ports, 5);
      // A pod that starts is matched already and takes nothing from what is enforced, so the count comes later.
      await app.untilPods('scaled', '5/5');
      await app.untilConditions('scaled', ALL_WELL);
      await app.kubectl('scale', 'deployment', 'api', '--replicas=3');
      await app.sidecars.follow(PODS);
      const after = await askInTurn(app.sidecars.ports, 9);
      await app.untilPods('scaled', '3/3');

      assert.deepEqual(tallyOf([...before, ...during]), { 200: 10 });
      assert.deepEqual(tallyOf(after), { 200: 5, 429: 4 });
    });
  });

  it('puts an edit into force on every pod, and keeps what was spent', async () => {
    await withPolicy('edited', { capacity: 4 }, async () => {
      const before = await askInTurn(app.sidecars.ports, 6);

      await app.apply([policy('edited', { capacity: 10 })]);
      await app.untilInForce('edited');

      const after = await askInTurn(app.sidecars.ports, 9);
      assert.deepEqual(tallyOf(before), { 200: 4, 429: 2 });
      // The same bucket grew: four of ten were spent.
      assert.deepEqual(tallyOf(after), { 200: 6, 429: 3 });
      await app.untilConditions('edited', ALL_WELL);
    });
  });

  it('refuses nobody in shadow mode or when disabled, and says why', async () => {
    await withPolicy('soft', { capacity: 1, spec: { mode: 'Shadow' } }, async () => {
      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 5)), { 200: 5 });
      await app.untilConditions('soft', {
        Programmed: 'True/Programmed',
        Enforced: 'False/Shadow',
      });

      await app.apply([policy('soft', { capacity: 1, spec: { mode: 'Disabled' } })]);
      await app.untilInForce('soft');

      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 5)), { 200: 5 });
      await app.untilConditions('soft', { Enforced: 'False/Disabled' });
    });
  });

  it('gives each workload its own bucket when the scope says so, and each pod', async () => {
    await withPolicy('scoped', { capacity: 4, spec: { scope: 'Workload' } }, async () => {
      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 6)), { 200: 4, 429: 2 });

      await app.apply([policy('scoped', { capacity: 2, spec: { scope: 'Pod' } })]);
      await app.untilInForce('scoped');

      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 9)), { 200: 6, 429: 3 });
    });
  });

  it('follows the Secret to another server under requests, and answers none of them differently', async () => {
    await using second = await openRedisServer();
    const options = { capacity: 8_000, spec: { failureMode: 'Closed' } };
    await withPolicy('moved', options, async () => {
      const end = new AbortController();
      const { ports } = app.sidecars;
      const load = driveLoad({
        ...{ ports, connectionsEach: 2, rate: 60, key: 'moved', signal: end.signal },
      });
      await untilClients(app.redis, PODS);

      await app.nameStore(second.url);
      await untilClients(second, PODS);
      await untilClients(app.redis, 0);
      await app.redis.stop();
      const before = await second.client().dbsize();
      await app.untilConditions('moved', ALL_WELL);

      end.abort();
      const statuses = (await load).map(({ status }) => status);
      assert.deepEqual(Object.keys(tallyOf(statuses)), ['200']);
      assert.ok(statuses.length > 0 && before > 0);
    });
  });
});

/** Waits until so many sidecars are connected to the server, beside the connection that asks. */
async function untilClients(server: RedisServer, count: number): Promise<void> {
  const redis = server.client();
  await eventually(`${count} sidecars are connected`, async () => {
    const list = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    const others = list.split('\n').filter((line) => line.includes('name=weir'));
    return others.length >= count && (count > 0 || others.length === 0);
  });
}
