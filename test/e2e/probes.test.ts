// A pod's own life with a sidecar: the kubelet's probes are never refused by a limit, and a Job ends.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { annotations } from '../../contract/names.ts';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { makeCertificates } from '../support/certificates.ts';
import { eventually } from '../support/redis.ts';
import { conditionOf, E2e, restartsOf, SETTLE_MS, type Room } from './support/e2e.ts';
import { deployment, podTemplate, policy, probe, service } from './support/workloads.ts';

/** Each probe is to have come this often; one a minute is what the limit would let through. */
const PROBED = 8;
const ONE_A_MINUTE = {
  rules: [{ name: 'all', buckets: [{ capacity: 1, refill: { tokens: 1, every: '1m' } }] }],
};

/** Named, numbered, over TLS, over gRPC, by command: whatever the kubelet has. */
const PROBES = {
  startupProbe: probe({ tcpSocket: { port: 'http' } }),
  readinessProbe: probe({ httpGet: { path: '/ready', port: 'http' } }),
  livenessProbe: probe({ grpc: { port: 9000 } }),
};
const LISTENS =
  "require('net').connect(8443).on('connect', () => process.exit(0)).on('error', () => process.exit(1))";
const SECOND_PROBES = {
  startupProbe: probe({ exec: { command: ['node', '-e', LISTENS] }, timeoutSeconds: 10 }),
  readinessProbe: probe({ httpGet: { path: '/secure', port: 'https', scheme: 'HTTPS' } }),
  livenessProbe: probe({ tcpSocket: { port: 8443 } }),
};

describe('the probes of a pod under a limit of 1 a minute', { concurrency: true }, () => {
  let e2e: E2e;
  let room: Room;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
    room = await e2e.namespace('probes');
    await using certificates = await makeCertificates();
    const read = (name: string): Promise<string> =>
      readFile(path.join(certificates.folder, name), 'utf8');
    const stringData = { 'tls.crt': await read('server.crt'), 'tls.key': await read('server.key') };
    await room.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tls' }, stringData });
  });
  after(async () => {
    await room[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  for (const [name, given] of [
    ['takeover', { [annotations.mode]: 'takeover' }],
    ['redirect', { [annotations.mode]: 'redirect' }],
    ['asked', { [annotations.mode]: 'redirect', [annotations.probes]: 'sidecar' }],
  ] as const) {
    it(`reach the app and leave it Ready: ${Object.values(given).join(', probes by the ')}`, async () => {
      await room.apply(
        service(name, [{ port: 80, targetPort: 'http' }]),
        policy(name, { more: ONE_A_MINUTE }),
        probedApp(name, given),
      );
      await e2e.rolledOut(room.name, `deployment/${name}`);
      await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
      const readySince = await readyTime(name);

      await eventually(
        `${PROBED} probes of each kind`,
        async () => {
          const counts = await countsOf(name);
          const kinds = ['probe /ready', 'grpc /grpc.health.v1.Health/Check', 'probe /secure'];
          return kinds.every((kind) => Number(valueAt(counts, kind) ?? 0) >= PROBED);
        },
        SETTLE_MS,
      );

      const url = `http://${name}.${room.name}/`;
      const { statuses } = await room.send({ kind: 'burst', url, count: 4, atOnce: 1 });
      const [pod] = await e2e.pods(room.name, name);
      const restarts = Object.values(restartsOf(pod));
      assert.deepEqual(
        statuses,
        { 200: 1, 429: 3 },
        'what the probes leave of the limit is all of it',
      );
      assert(
        restarts.every((count) => count === 0),
        `restarts: ${restarts.join(', ')}`,
      );
      assert.equal(await readyTime(name), readySince, 'it was Ready all the time');
    });
  }

  for (const mode of ['takeover', 'redirect']) {
    it(`end with a Job, whose sidecar is native: ${mode}`, async () => {
      const name = `job-${mode}`;
      const template = podTemplate(room, name, {
        annotations: { [annotations.mode]: mode },
        env: { JOB_SECONDS: '2' },
        container: {},
        spec: { restartPolicy: 'Never' },
      });
      const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name } };
      await room.apply({ ...job, spec: { backoffLimit: 0, template } });

      const wait = ['wait', '-n', room.name, `job/${name}`, '--for=condition=Complete'];
      await e2e.kubectl([...wait, `--timeout=${SETTLE_MS / 1_000}s`]);

      const [pod] = await e2e.list(room.name, 'pods', '-l', `app=${name}`);
      const sidecar = listAt(pod, 'status', 'initContainerStatuses').find(
        (one) => textAt(one, 'name') === 'weir',
      );
      assert.equal(valueAt(sidecar, 'state', 'terminated', 'exitCode'), 0);
    });
  }

  /** Two containers, so that a probe of one port name is looked for in the right one. */
  function probedApp(name: string, given: Readonly<Record<string, string>>): object {
    const ports = [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9000 },
    ];
    const base = deployment(room, name, {
      ports,
      annotations: { ...given, [annotations.ports]: 'http,grpc,https' },
      env: { LISTEN_GRPC: '0.0.0.0:9000' },
      container: PROBES,
    });
    const [app] = listAt(base, 'spec', 'template', 'spec', 'containers') as readonly object[];
    const volumes = listAt(base, 'spec', 'template', 'spec', 'volumes') as object[];
    const second = {
      ...app,
      name: 'second',
      ports: [{ name: 'https', containerPort: 8443 }],
      env: [
        { name: 'LISTEN', value: '127.0.0.1:8081' },
        { name: 'LISTEN_TLS', value: '0.0.0.0:8443' },
      ],
      volumeMounts: [
        { name: 'scripts', mountPath: '/scripts' },
        { name: 'tls', mountPath: '/tls' },
      ],
      ...SECOND_PROBES,
    };
    (listAt(base, 'spec', 'template', 'spec', 'containers') as object[]).push(second);
    volumes.push({ name: 'tls', secret: { secretName: 'tls' } });
    return base;
  }

  async function countsOf(app: string): Promise<object> {
    const [pod] = await e2e.pods(room.name, app);
    const ask = (container: string, port: number): Promise<string> =>
      e2e.kubectl([
        ...['exec', '-n', room.name, textAt(pod, 'metadata', 'name'), '-c', container, '--'],
        ...[
          'node',
          '-e',
          `fetch('http://127.0.0.1:${port}/counts').then(async (a) => console.log(await a.text()))`,
        ],
      ]);
    const [first, second] = await Promise.all([ask('app', 8080), ask('second', 8081)]);
    return { ...(JSON.parse(second) as object), ...(JSON.parse(first) as object) };
  }

  async function readyTime(app: string): Promise<string> {
    const [pod] = await e2e.pods(room.name, app);
    const ready = listAt(pod, 'status', 'conditions').find(
      (one) => textAt(one, 'type') === 'Ready',
    );
    assert.equal(textAt(ready, 'status'), 'True');
    return textAt(ready, 'lastTransitionTime');
  }
});
