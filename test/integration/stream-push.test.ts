import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { kill } from 'node:process';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import type { PolicyOptions } from '../support/compiled-policy.ts';
import { brokenPolicy, compiledPolicy } from '../support/compiled-policy.ts';
import { makeCertificates } from '../support/certificates.ts';
import { OperatorStream } from '../support/operator-stream.ts';
import { eventually, openRedisServer } from '../support/redis.ts';
import type { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Levels of the pod's own: no store is needed. */
function podPolicy(options: PolicyOptions = {}): ReturnType<typeof compiledPolicy> {
  return compiledPolicy({ scope: 'Pod', ...options });
}

async function statuses(port: number, key: string, count: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-api-key': key } });
    await response.arrayBuffer();
    seen.push(response.status);
  }
  return seen;
}

async function untilGeneration(
  sidecar: SidecarProcess,
  uid: string,
  generation: number,
): Promise<void> {
  await eventually(`generation ${generation} of ${uid}`, async () => {
    const described = (await (await sidecar.ask('/config')).json()) as {
      bundle?: { policies: { uid: string; generation: number }[] };
    };
    const found = described.bundle?.policies.find((one) => one.uid === uid);
    return found?.generation === generation;
  });
}

describe('a policy', () => {
  it('that is edited is in force on every sidecar, and the operator knows', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [podPolicy({ capacity: 3 })];
    const options = { upstreamPort: upstream.port };
    await using one = await operator.sidecar('pod-1', options);
    await using two = await operator.sidecar('pod-2', options);
    const before = [await statuses(one.port, 'a', 4), await statuses(two.port, 'a', 4)];

    operator.world.set({ policies: [podPolicy({ capacity: 5, generation: 2 })] });
    for (const sidecar of [one, two]) await untilGeneration(sidecar, 'uid-api', 2);

    assert.deepEqual(before, [
      [200, 200, 200, 429],
      [200, 200, 200, 429],
    ]);
    assert.deepEqual(await statuses(one.port, 'b', 6), [200, 200, 200, 200, 200, 429]);
    await eventually('both are told in force', () => {
      const states = ['pod-1', 'pod-2'].map((podUid) => operator.registry.get(podUid));
      return states.every((state) => state?.generations.get('uid-api') === 2);
    });
    assert.equal(await operator.metric('weir_config_push_total', { result: 'acked' }), 4);
    assert.equal(await operator.metric('weir_stream_clients'), 2);
    assert.equal(await one.metric('weir_config_origin', '{origin="stream"}'), 1);
  });

  it('that does not compile in the sidecar is refused, its last good version stays, others are taken', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    const other = podPolicy({ uid: 'uid-other', name: 'other', capacity: 100 });
    operator.world.policies = [podPolicy({ capacity: 2 }), other];
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    operator.world.set({
      policies: [
        brokenPolicy({ scope: 'Pod', capacity: 50, generation: 2 }),
        { ...other, generation: 2 },
      ],
    });
    await untilGeneration(sidecar, 'uid-other', 2);

    assert.deepEqual(await statuses(sidecar.port, 'a', 3), [200, 200, 429]);
    await eventually('the refusal is known', () => {
      const state = operator.registry.get('pod-1');
      return state?.refusals[0]?.uid === 'uid-api' && state.generations.get('uid-api') === 1;
    });
    assert.match(operator.registry.get('pod-1')?.refusals[0]?.message ?? '', /\(a\)/);
    assert.equal(await operator.metric('weir_config_push_total', { result: 'rejected' }), 1);

    operator.world.set({
      policies: [podPolicy({ capacity: 4, generation: 3 }), { ...other, generation: 2 }],
    });
    await untilGeneration(sidecar, 'uid-api', 3);
    await eventually(
      'nothing is refused any more',
      () => operator.registry.get('pod-1')?.refusals.length === 0,
    );
  });

  it('whose shape is wrong is refused with its path', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    const rules = [{ ...podPolicy().rules[0], cost: { tokens: 0 } }] as never;
    operator.world.policies = [podPolicy({ uid: 'uid-bad', name: 'bad', rules }), podPolicy()];

    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    assert.deepEqual(
      (await sidecar.bundle()).policies.map(({ name }) => name),
      ['api'],
    );
    await eventually('the refusal is known', () => {
      return operator.registry.get('pod-1')?.refusals[0]?.path === 'rules.0.cost.tokens';
    });
  });

  it('that the operator holds stays what it was', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    const other = podPolicy({ uid: 'uid-other', name: 'other', capacity: 100 });
    operator.world.policies = [podPolicy({ capacity: 1 }), other];
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    operator.world.set({ policies: [{ ...other, generation: 2 }], held: ['uid-api'] });
    await untilGeneration(sidecar, 'uid-other', 2);

    assert.deepEqual(await statuses(sidecar.port, 'a', 2), [200, 429]);
    operator.world.set({ held: [] });
    await eventually('it is deleted', async () => (await sidecar.bundle()).policies.length === 1);
    assert.deepEqual(await statuses(sidecar.port, 'a', 2), [200, 200]);
  });

  it('for some ports is enforced on those', async () => {
    await using first = await AnsweringUpstream.open(OK);
    await using second = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [podPolicy({ capacity: 1, ports: [second.port] })];

    await using sidecar = await operator.sidecar('pod-1', {
      upstreamPort: first.port,
      flags: ['--listen', '127.0.0.1:0', '--upstream', `127.0.0.1:${second.port}`],
    });

    const [one = 0, two = 0] = sidecar.ports;
    assert.deepEqual(await statuses(one, 'a', 3), [200, 200, 200]);
    assert.deepEqual(await statuses(two, 'a', 2), [200, 429]);
    assert.deepEqual([first.heads.length, second.heads.length], [3, 1]);
    assert.equal(await sidecar.metric('weir_requests_total', '{verdict="allowed"}'), 1);
    assert.equal(await sidecar.metric('weir_requests_total', '{verdict="exempt"}'), 3);
  });
});

describe('workers', () => {
  it('all run a policy before it is acknowledged, and keep their last good one', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [podPolicy({ capacity: 2 })];
    await using sidecar = await operator.sidecar('pod-1', {
      upstreamPort: upstream.port,
      flags: ['--workers', '2'],
    });
    await eventually(
      'acknowledged',
      () => operator.registry.get('pod-1')?.generations.get('uid-api') === 1,
    );
    assert.deepEqual(await statuses(sidecar.port, 'a', 3), [200, 200, 429]);

    operator.world.set({ policies: [podPolicy({ capacity: 4, generation: 2 })] });
    await eventually(
      'acknowledged',
      () => operator.registry.get('pod-1')?.generations.get('uid-api') === 2,
    );

    const inWorkers = sidecar
      .events('policies')
      .filter((line) => line['version'] === operator.world.bundle('pod-1').version);
    assert.equal(inWorkers.length, 2);
    assert.equal((await sidecar.ask('/readyz')).status, 200);
    operator.world.set({ policies: [brokenPolicy({ scope: 'Pod', generation: 3 })] });
    await eventually('refused', () => operator.registry.get('pod-1')?.refusals.length === 1);
    assert.deepEqual(await statuses(sidecar.port, 'b', 5), [200, 200, 200, 200, 429]);
  });
});

describe('a worker that crashed', () => {
  it('comes back with the rules in force, with the operator away too, and takes the next ones', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [podPolicy({ capacity: 2 })];
    await using sidecar = await operator.sidecar('pod-1', {
      upstreamPort: upstream.port,
      flags: ['--supervise', 'true'],
    });
    await operator.stop();

    const crashed = await childOf(sidecar.pid);
    kill(crashed, 'SIGKILL');
    await eventually('another worker is ready', async () => {
      const child = await childOf(sidecar.pid);
      return child !== 0 && child !== crashed && (await sidecar.ask('/readyz')).status === 200;
    });

    assert.deepEqual(await statuses(sidecar.port, 'a', 3), [200, 200, 429]);
    operator.world.set({ policies: [podPolicy({ capacity: 4, generation: 2 })] });
    await operator.start();
    await sidecar.untilCapacity(4);
    await eventually('acknowledged', () => {
      return operator.registry.get('pod-1')?.generations.get('uid-api') === 2;
    });
  });
});

/** Of a process with one child; 0 when there is none. */
async function childOf(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return Number(children.trim().split(' ')[0] ?? 0);
}

describe('the store', () => {
  it('comes with the rules, and levels are shared through it', async () => {
    await using redis = await openRedisServer();
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy({ capacity: 4 })];
    operator.world.settings = { store: { url: redis.url } };
    await using one = await operator.sidecar('pod-1', { upstreamPort: upstream.port });
    await using two = await operator.sidecar('pod-2', { upstreamPort: upstream.port });

    const seen = [...(await statuses(one.port, 'a', 3)), ...(await statuses(two.port, 'a', 2))];

    assert.deepEqual(seen, [200, 200, 200, 200, 429]);
    await eventually('it is reported', () => operator.registry.get('pod-1')?.store === 'up');
  });

  it('that is absent is never replaced by levels of each pod in silence', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy({ failureMode: 'Closed' })];

    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    assert.deepEqual(await statuses(sidecar.port, 'a', 2), [503, 503]);
    await eventually('it is reported', () => operator.registry.get('pod-1')?.store === 'none');
  });

  it('is swapped under traffic without an error when its Secret is rotated', async () => {
    await using redis = await openRedisServer({ args: ['--requirepass', 'old'] });
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy({ capacity: 100_000, failureMode: 'Closed' })];
    const urlOf = (password: string, port = redis.port): string =>
      `redis://:${password}@127.0.0.1:${port}`;
    // A machine under load may be slow; what is looked at here is whether anything is lost.
    const deadlineMs = 5_000;
    operator.world.settings = { store: { url: urlOf('old') }, deadlineMs };
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });
    const seen: number[] = [];
    const stopped = new AbortController();
    const traffic = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (!stopped.signal.aborted) seen.push(...(await statuses(sidecar.port, 'a', 1)));
      }),
    );

    operator.world.set({ settings: { store: { url: urlOf('wrong') }, deadlineMs } });
    await eventually(
      'the problem is reported',
      () => operator.registry.get('pod-1')?.storeProblem !== undefined,
    );
    await using other = await openRedisServer({ args: ['--requirepass', 'new'] });
    operator.world.set({ settings: { store: { url: urlOf('new', other.port) }, deadlineMs } });
    await using clients = new AsyncDisposableStack();
    const open = (url: string): Redis => {
      const client = new Redis(url);
      clients.defer(() => {
        client.disconnect();
      });
      return client;
    };
    const [after, before] = [open(urlOf('new', other.port)), open(urlOf('old'))];
    await eventually('the new store is asked', async () => (await after.dbsize()) > 0);
    await eventually('the old one is left', async () => {
      return !String(await before.client('LIST')).includes('cmd=evalsha');
    });
    stopped.abort();
    await traffic;

    assert(seen.length > 50, `${seen.length} requests`);
    assert.deepEqual([...new Set(seen)], [200]);
    await eventually('all is well', () => {
      const state = operator.registry.get('pod-1');
      return state?.store === 'up' && state.storeProblem === undefined;
    });
  });
});

describe('trust', () => {
  it('follows the operator from one CA to the next in two steps', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    await using next = await makeCertificates();
    operator.world.policies = [podPolicy()];
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    operator.world.set({ ca: `${operator.certificates.ca}${next.ca}` });
    await eventually(
      'both CAs are known',
      async () => (await operator.metric('weir_config_push_total', { result: 'acked' })) === 2,
    );
    await operator.stop();
    await operator.start();
    await operator.serve(next);
    await eventually(
      'it is back, with the new certificate',
      () => operator.registry.get('pod-1')?.connected === true,
    );
    operator.world.set({ ca: next.ca });
    operator.world.set({ policies: [podPolicy({ generation: 2 })] });
    await untilGeneration(sidecar, 'uid-api', 2);

    assert.deepEqual(sidecar.events('operator-ca'), []);
  });

  it('is refused to an operator with another CA: nothing of it is taken, no token is shown', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    await using other = await makeCertificates();
    operator.world.policies = [podPolicy()];

    await using sidecar = await operator.sidecar('pod-1', {
      upstreamPort: upstream.port,
      ca: other.ca,
    });

    assert.equal((await sidecar.ask('/readyz')).status, 503);
    assert.equal(operator.api.reviews, 0);
    assert.match(
      String(sidecar.events('operator-away')[0]?.['reason']),
      /certificate|self.signed|issuer/i,
    );
  });

  it('is refused to a token of another audience, and given once the right one is in the file', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [podPolicy()];
    const token = operator.api.issue({ podUid: 'pod-1', audiences: ['somebody else'] });
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port, token });
    const before = (await sidecar.ask('/readyz')).status;

    const file = path.join(operator.folder, 'pod-1.token');
    await writeFile(`${file}.new`, operator.api.issue({ podUid: 'pod-1' }));
    await rename(`${file}.new`, file);

    assert.equal(before, 503);
    assert.match(String(sidecar.events('operator-away')[0]?.['reason']), /401/);
    await eventually('it is let in', async () => (await sidecar.ask('/readyz')).status === 200);
    const log = JSON.stringify(sidecar.log);
    assert.equal(log.includes(token), false);
  });

  it('in a token does not depend on what the client says it is', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.settings = { store: { url: 'redis://secret@127.0.0.1:1' } };
    operator.world.addPod('pod-2');
    const token = operator.api.issue({ podUid: 'pod-2' });

    // pod-2's token, and a hello of pod-1.
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port, token });

    await eventually('it is sent away', () => sidecar.events('operator-bye').length > 0);
    assert.equal(sidecar.events('operator-bye')[0]?.['reason'], 'Unauthorized');
    assert.equal((await sidecar.ask('/readyz')).status, 503);
  });
});
