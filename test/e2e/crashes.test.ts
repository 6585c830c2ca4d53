// What a crash costs, on real pods: nothing of the app, and of the sidecar as little as the kubelet allows.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { annotations } from '../../contract/names.ts';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { eventually } from '../support/redis.ts';
import { conditionOf, E2e, restartsOf, SETTLE_MS, SYSTEM, type Room } from './support/e2e.ts';
import { deployment, policy, service } from './support/workloads.ts';

/** A request that waits for a worker's successor is to be served within this. */
const QUEUE_MS = 1_000;

/** Kills the worker of the sidecar: the process whose parent is the container's first. */
const KILL_WORKER = `
const { readdirSync, readFileSync } = require('node:fs');
const parentOf = (pid) => readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ')[1];
const workers = readdirSync('/proc').filter((pid) => /^\\d+$/.test(pid) && pid !== String(process.pid))
  .filter((pid) => { try { return parentOf(pid) === '1'; } catch { return false; } });
for (const pid of workers) process.kill(Number(pid), 'SIGKILL');
console.log(workers.join(' '));
`;

/** Makes the container's first process take memory until the kernel kills it; by its inspector, as it is too sound. */
const EAT_MEMORY = `
process.kill(1, 'SIGUSR1');
const list = async () => {
  for (;;) {
    try { return await (await fetch('http://127.0.0.1:9229/json/list')).json(); }
    catch { await new Promise((resolve) => setTimeout(resolve, 50)); }
  }
};
list().then(([target]) => {
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  const expression = 'globalThis.held = []; setInterval(() => held.push(Buffer.alloc(8 << 20, 1)), 1); 1';
  const params = { expression };
  socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params }));
});
`;

describe('a crash', () => {
  let e2e: E2e;
  let room: Room;
  const name = 'fragile';
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
    room = await e2e.namespace('crashes');
    await room.apply(
      service(name, [{ port: 80, targetPort: 'http' }]),
      policy(name, { onMissingKey: 'Skip' }),
      deployment(room, name, { annotations: { [annotations.workers]: '1' } }),
    );
    await e2e.rolledOut(room.name, `deployment/${name}`);
    await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
  });
  after(async () => {
    await e2e.kubectl(['scale', '-n', SYSTEM, 'deployment/weir-operator', '--replicas=2']);
    await e2e.rolledOut(SYSTEM, 'deployment/weir-operator');
    await room[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  const url = (): string => `http://${name}.${room.name}/`;

  async function admitted(client: string): Promise<Readonly<Record<string, number>>> {
    const headers = { 'x-client': client };
    const plan = { kind: 'burst', url: url(), count: 6, atOnce: 1, headers } as const;
    return (await room.send(plan)).statuses;
  }

  async function inSidecar(script: string): Promise<string> {
    const [pod] = await e2e.pods(room.name, name);
    const target = ['exec', '-n', room.name, textAt(pod, 'metadata', 'name'), '-c', 'weir', '--'];
    return (await e2e.kubectl([...target, 'node', '-e', script])).trim();
  }

  async function restarts(): Promise<Readonly<Record<string, unknown>>> {
    const [pod] = await e2e.pods(room.name, name);
    return restartsOf(pod);
  }

  it('of one connection leaves the others alone', async () => {
    const running = await room.start({ kind: 'steady', url: url(), perSecond: 50, maxSeconds: 60 });
    const answers = await room.speak(`${name}.${room.name}`, 80, [
      'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      'NONSENSE\r\n\r\n',
      '\u0000\u0001\u0002\r\n\r\n',
      `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    ]);
    const { statuses, failures } = await running.end();

    for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 4\d\d /);
    assert.deepEqual(failures, {});
    assert.deepEqual(Object.keys(statuses), ['200']);
  });

  it('of the worker, twice in a minute, refuses no connection and keeps none waiting for a second', async () => {
    const running = await room.start({
      kind: 'steady',
      url: url(),
      perSecond: 100,
      maxSeconds: 60,
    });
    for (let time = 0; time < 2; time += 1) {
      const killed = await inSidecar(KILL_WORKER);
      assert.notEqual(killed, '', 'there is a worker');
      await eventually('its successor serves', async () => {
        const { statuses } = await room.send({ kind: 'burst', url: url(), count: 10, atOnce: 2 });
        return statuses['200'] === 10;
      });
    }
    const { statuses, failures, slowestMs, examples } = await running.end();

    assert.deepEqual(Object.keys(statuses), ['200'], examples.join('; '));
    // What the worker had accepted dies with it.
    const others = Object.keys(failures).filter((one) => !/ECONNRESET|socket hang up/.test(one));
    assert.deepEqual(others, [], examples.join('; '));
    assert(slowestMs < QUEUE_MS, `one waited for ${slowestMs} ms`);
    assert.deepEqual(await restarts(), { app: 0, weir: 0 });
  });

  it('of the whole sidecar, out of memory, restarts it alone, and it enforces from its cache', async () => {
    await e2e.kubectl(['scale', '-n', SYSTEM, 'deployment/weir-operator', '--replicas=0']);
    await eventually(
      'the operator is gone',
      async () =>
        (await e2e.list(SYSTEM, 'pods', '-l', 'app.kubernetes.io/component=operator')).length === 0,
      SETTLE_MS,
    );
    assert.deepEqual(await admitted('before'), { 200: 3, 429: 3 });

    // It dies with what it is run in.
    await inSidecar(EAT_MEMORY).catch(() => '');
    await eventually(
      'it was killed and is Ready again',
      async () => {
        const [pod] = await e2e.pods(room.name, name);
        const sidecar = listAt(pod, 'status', 'initContainerStatuses').find(
          (one) => textAt(one, 'name') === 'weir',
        );
        const reason = textAt(sidecar, 'lastState', 'terminated', 'reason');
        return reason === 'OOMKilled' && valueAt(sidecar, 'ready') === true;
      },
      SETTLE_MS,
    );

    assert.deepEqual(await restarts(), { app: 0, weir: 1 });
    await eventually('the Service leads to it again', async () => {
      const { statuses } = await room.send({ kind: 'burst', url: url(), count: 1, atOnce: 1 });
      return statuses['200'] === 1;
    });
    assert.deepEqual(await admitted('before'), { 429: 6 }, 'the bucket is where it was');
    assert.deepEqual(await admitted('after'), { 200: 3, 429: 3 }, 'the policy is in force');
  });
});
