import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { PolicyRefusal } from '../../contract/stream.ts';
import { UNSENT_WITHIN_MS } from '../../operator/stream/sidecar-stream.ts';
import { ConfigKeeper } from '../../sidecar/policy/config-keeper.ts';
import { StreamSource } from '../../sidecar/policy/stream-source.ts';
import { compiledPolicy } from '../support/compiled-policy.ts';
import { OperatorStream } from '../support/operator-stream.ts';
import { eventually } from '../support/redis.ts';
import { StreamClient } from '../support/stream-client.ts';

describe('a stream is refused', () => {
  it('at another path, with another method, without a good token, and to a pod nobody knows', async () => {
    await using operator = await OperatorStream.open();
    operator.world.addPod('pod-1');
    const token = operator.api.issue({ podUid: 'pod-1' });
    using elsewhere = new StreamClient(operator, { token, path: '/metrics' });
    using getting = new StreamClient(operator, { token, method: 'GET' });
    using nobody = new StreamClient(operator);
    using forger = new StreamClient(operator, { token: 'forged.token.here' });
    using stranger = new StreamClient(operator, { token: operator.api.issue({ podUid: 'pod-9' }) });

    const clients = [elsewhere, getting, nobody, forger, stranger];
    const seen = await Promise.all(clients.map((client) => client.answered()));

    assert.deepEqual(seen, [404, 405, 401, 401, 403]);
    assert.equal(stranger.retryAfter, '1');
  });

  it('while nobody can review its token, with when to come back', async () => {
    await using operator = await OperatorStream.open();
    operator.world.addPod('pod-1');
    operator.api.isAway = true;

    using client = new StreamClient(operator, { token: operator.api.issue({ podUid: 'pod-1' }) });

    assert.equal(await client.answered(), 503);
    assert.equal(client.retryAfter, '1');
    assert.equal(await operator.metric('weir_token_reviews_total', { result: 'failed' }), 1);
  });

  it('by a replica that is full, and the next one gets the place that becomes free', async () => {
    await using operator = await OperatorStream.open({ maxClients: 2 });
    using first = await StreamClient.greeted(operator, 'pod-1');
    using second = await StreamClient.greeted(operator, 'pod-2');
    operator.world.addPod('pod-3');
    const token = operator.api.issue({ podUid: 'pod-3' });
    using third = new StreamClient(operator, { token });
    const refused = await third.answered();

    first[Symbol.dispose]();
    await eventually('a free place', () => operator.server.clients === 1);
    using again = new StreamClient(operator, { token });

    assert.equal(refused, 503);
    assert.equal(third.retryAfter, '5');
    assert.equal(await again.answered(), 200);
    assert.equal(second.isClosed, false);
  });
});

describe('a stream ends', () => {
  it('when its pod opens another one: the newest is the sidecar that runs', async () => {
    await using operator = await OperatorStream.open();
    using old = await StreamClient.greeted(operator, 'pod-1');

    using young = await StreamClient.greeted(operator, 'pod-1');

    assert.equal(await old.bye(), 'Replaced');
    assert.equal(operator.server.clients, 1);
    await eventually('the old one is closed', () => old.isClosed);
    assert.equal(operator.registry.get('pod-1')?.connected, true);
    assert.equal(young.isClosed, false);
  });

  it('when its pod is deleted', async () => {
    await using operator = await OperatorStream.open();
    using client = await StreamClient.greeted(operator, 'pod-1');

    operator.world.removePod('pod-1');

    assert.equal(await client.bye(), 'Unauthorized');
    await eventually('the pod is forgotten', () => operator.registry.get('pod-1') === undefined);
  });

  it('when a line is no frame', async () => {
    await using operator = await OperatorStream.open();
    using client = await StreamClient.greeted(operator, 'pod-1');

    client.http.write('GET / HTTP/1.1\n');

    assert.equal(await client.bye(), 'Protocol');
  });

  it('when the sidecar leaves more than a MiB unread for ten seconds, and not before', async () => {
    let ahead = 0;
    await using operator = await OperatorStream.open({ nowMs: () => performance.now() + ahead });
    const body = { contentType: 'text/plain', content: 'x'.repeat(200_000) };
    const response = { ...compiledPolicy().response, body };
    using client = await StreamClient.greeted(operator, 'pod-1');
    client.http.pause();

    operator.world.set({
      policies: Array.from({ length: 12 }, (_, i) =>
        compiledPolicy({ uid: `uid-${i}`, name: `p-${i}`, response }),
      ),
    });
    client.send({ type: 'ack', nonce: 1, version: '' });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const before = client.isClosed;
    ahead = UNSENT_WITHIN_MS;
    await eventually('it is cut off', () => operator.server.clients === 0);

    assert.equal(before, false);
    assert.equal(await operator.metric('weir_stream_ends_total', { reason: 'TooSlow' }), 1);
  });

  it('one after the other when the replica stops, each with when to come back', async () => {
    await using operator = await OperatorStream.open();
    using first = await StreamClient.greeted(operator, 'pod-1');
    using second = await StreamClient.greeted(operator, 'pod-2');

    const stopping = operator.server.stop(400);
    const reason = await first.bye();
    const early = second.frames.at(-1)?.type;
    const last = await second.bye();
    await stopping;

    assert.deepEqual([reason, early, last], ['Shutdown', 'config', 'Shutdown']);
  });
});

describe('readiness', () => {
  it('names the permission that is missing', async () => {
    await using operator = await OperatorStream.open();
    operator.api.mayReview = false;

    const reason = await operator.server.whyNotReady(AbortSignal.timeout(5_000));

    assert.match(reason ?? '', /tokenreviews/);
  });
});

describe('fifty sidecars', () => {
  const none: readonly PolicyRefusal[] = [];

  it('come back after the operator was restarted, with one review each, twenty at once', async () => {
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy()];
    using sources = new DisposableStack();
    const keepers: ConfigKeeper[] = [];
    const log = pino({ enabled: false });
    const pods = Array.from({ length: 50 }, (_, i) => `pod-${i}`);
    for (const podUid of pods) {
      const [, url = '', , ca, , tokenFile = ''] = await operator.enlist(podUid);
      const target = {
        apply: () => Promise.resolve(none),
        report: () => ({ clientIpIsProxy: [] }),
      };
      const keeper = new ConfigKeeper(target, log);
      keepers.push(keeper);
      sources.use(
        new StreamSource({
          ...{ url, ca, tokenFile, keeper, log, version: '1', random: Math.random },
          pod: { namespace: 'shop', name: podUid, uid: podUid },
          report: () => target.report(),
          onInForce: () => undefined,
          onFailure: () => undefined,
        }),
      );
    }
    const generationsAre = (generation: number): boolean =>
      pods.every(
        (podUid) => operator.registry.get(podUid)?.generations.get('uid-api') === generation,
      );
    await eventually('all have their rules', () => generationsAre(1), 30_000);

    await operator.stop();
    operator.api.reviews = 0;
    operator.world.set({ policies: [compiledPolicy({ generation: 2 })] });
    await operator.start();
    await eventually('all are back with the new rules', () => generationsAre(2), 30_000);

    assert(keepers.every(({ inForce }) => inForce?.bundle.policies[0]?.generation === 2));
    assert.equal(operator.api.reviews, 50);
    assert(operator.api.mostRunning <= 20);
  });
});
