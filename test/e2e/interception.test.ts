// How requests reach a pod, and whether they pass the sidecar: every row of docs/bypass.md on real pods, in both modes.
// What the operator says of a row must be what a client sees.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { annotations } from '../../contract/names.ts';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { eventually } from '../support/redis.ts';
import { conditionOf, E2e, SETTLE_MS, type Room } from './support/e2e.ts';
import { deployment, policy, service, statefulSet, type AppOptions } from './support/workloads.ts';

/** Of the policies here: three requests, then none for a long time. */
const LIMITED = { 200: 3, 429: 3 };
const UNLIMITED = { 200: 6 };

interface Row {
  readonly name: string;
  readonly app: AppOptions;
  /** None: the pod itself is asked. */
  readonly service?: object;
  /** Of the Service, where it is not 80. */
  readonly port?: number;
  /** In takeover mode; undefined where nothing is passed by. */
  readonly bypass?: string;
  /** Why the operator cannot see the bypass: it is not in any object. */
  readonly isUnseen?: boolean;
  readonly isTakeoverOnly?: boolean;
  /** `weir.dev/ports` in redirect mode. */
  readonly redirectPorts?: string;
}

const HEADLESS = { clusterIP: 'None' };

const ROWS: readonly Row[] = [
  {
    name: 'named',
    app: {},
    service: service('named', [{ port: 80, targetPort: 'http' }]),
  },
  {
    name: 'number',
    app: {},
    service: service('number', [{ port: 80, targetPort: 8080 }]),
    bypass: 'targetPort',
  },
  {
    name: 'absent',
    app: {},
    service: service('absent', [{ port: 8080 }]),
    port: 8080,
    bypass: 'targetPort',
  },
  {
    name: 'renamed',
    app: {},
    service: service('renamed', [{ port: 80, targetPort: 'app-http' }]),
    bypass: 'targetPort: http',
    // The name is there in takeover mode only.
    isTakeoverOnly: true,
  },
  {
    name: 'headless',
    app: {},
    service: service('headless', [{ port: 8080, targetPort: 'http' }], HEADLESS),
    port: 8080,
    bypass: 'headless',
  },
  {
    name: 'two-ports',
    app: {},
    service: service('two-ports', [
      { name: 'named', port: 80, targetPort: 'http' },
      { name: 'number', port: 81, targetPort: 8080 },
    ]),
    port: 81,
    bypass: 'targetPort',
  },
  {
    name: 'host-port',
    app: { ports: [{ name: 'http', containerPort: 8080, hostPort: 18080 }] },
    bypass: 'hostPort',
  },
  {
    name: 'unnamed',
    app: {
      listen: '0.0.0.0:8080,0.0.0.0:9090',
      ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 9090 }],
    },
    // A port without a name can only be taken by its number.
    redirectPorts: '8080,9090',
    service: service('unnamed', [{ port: 90, targetPort: 9090 }]),
    port: 90,
    bypass: 'give container port 9090 a name',
  },
  { name: 'pod-address', app: {}, bypass: 'nobody', isUnseen: true },
];

describe('a request to a pod', { concurrency: 2 }, () => {
  let e2e: E2e;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
  });
  after(async () => {
    await e2e[Symbol.asyncDispose]();
  });

  for (const mode of ['takeover', 'redirect'] as const) {
    describe(`in ${mode} mode`, () => {
      const rows = ROWS.filter((row) => mode === 'takeover' || row.isTakeoverOnly !== true);
      let room: Room;
      before(async () => {
        room = await e2e.namespace(`rows-${mode}`);
        await room.apply(
          ...rows.flatMap(({ name, app, service: leading, redirectPorts }) => [
            ...(leading === undefined ? [] : [leading]),
            policy(name),
            deployment(room, name, {
              ...app,
              annotations: { [annotations.mode]: mode, ...portsOf(mode, redirectPorts) },
            }),
          ]),
        );
        for (const { name } of rows) await e2e.rolledOut(room.name, `deployment/${name}`);
      });
      after(async () => {
        await room[Symbol.asyncDispose]();
      });

      for (const row of rows) {
        const isBypass = mode === 'takeover' && row.bypass !== undefined;
        const outcome = isBypass
          ? `passes the sidecar by${row.isUnseen === true ? '' : ', and the policy says so'}`
          : 'is limited, and the policy says Enforced';
        it(`${row.name}: ${outcome}`, async () => {
          await isAsExpected(room, row, isBypass);
        });
      }

      it('passes the sidecar by through a port-forward to the pod, which is a matter of RBAC', async () => {
        const [pod] = await e2e.pods(room.name, 'named');
        await using forwarded = await room.forward(textAt(pod, 'metadata', 'name'), 8080);

        const statuses: number[] = [];
        for (let request = 0; request < 6; request += 1) {
          const headers = { 'x-client': 'forwarded' };
          statuses.push((await fetch(forwarded.url, { headers })).status);
        }

        assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200]);
      });

      it('named: keeps its limit over every port and address of the pod', async () => {
        const [pod] = await e2e.pods(room.name, 'named');
        const addresses = listAt(pod, 'status', 'podIPs').map((one) => textAt(one, 'ip'));

        const seen: Record<string, unknown> = {};
        for (const ip of addresses) {
          const host = ip.includes(':') ? `[${ip}]` : ip;
          const headers = { 'x-client': 'everywhere' };
          const url = `http://${host}:15100/`;
          const plan = { kind: 'burst', count: 6, atOnce: 1, headers, url } as const;
          seen[ip.includes(':') ? 'IPv6' : 'IPv4'] = (await room.send(plan)).statuses;
        }

        const expected = addresses.length === 1 ? {} : { IPv6: { 429: 6 } };
        assert.deepEqual(seen, { IPv4: LIMITED, ...expected });
      });
    });
  }

  async function isAsExpected(room: Room, row: Row, isBypass: boolean): Promise<void> {
    const said = await saidOf(room, row, isBypass && row.isUnseen !== true);

    const headers = { 'x-client': row.name };
    const url = await addressOf(room, row);
    const { statuses } = await room.send({ kind: 'burst', url, count: 6, atOnce: 1, headers });

    assert.deepEqual(statuses, isBypass ? UNLIMITED : LIMITED, said);
  }

  /** The message of `Enforced`, once it is the expected one. */
  async function saidOf(room: Room, row: Row, isBypassable: boolean): Promise<string> {
    const expected = isBypassable ? 'False/Bypassable' : 'True/Enforced';
    const found = await room.untilPolicy(
      row.name,
      (one) => conditionOf(one, 'Enforced') === expected,
    );
    const enforced = listAt(found, 'status', 'conditions').find(
      (one) => textAt(one, 'type') === 'Enforced',
    );
    const message = textAt(enforced, 'message');
    if (isBypassable) assert.match(message, new RegExp(row.bypass ?? '', 'i'));
    return message;
  }

  async function addressOf(room: Room, row: Row): Promise<string> {
    if (row.service !== undefined) return `http://${row.name}.${room.name}:${row.port ?? 80}/`;
    const [pod] = await e2e.pods(room.name, row.name);
    const isHostPort = row.bypass === 'hostPort';
    const address = textAt(pod, 'status', isHostPort ? 'hostIP' : 'podIP');
    return `http://${address}:${isHostPort ? 18080 : 8080}/`;
  }

  describe('in auto mode', { concurrency: true }, () => {
    let room: Room;
    before(async () => {
      room = await e2e.namespace('auto');
    });
    after(async () => {
      await room[Symbol.asyncDispose]();
    });

    it('takes redirect where a Service names the number', async () => {
      await room.apply(service('numbered', [{ port: 80, targetPort: 8080 }]), policy('numbered'));
      await room.apply(deployment(room, 'numbered'));
      await e2e.rolledOut(room.name, 'deployment/numbered');

      assert.equal(await modeOf(room, 'numbered'), 'redirect');
      await isAsExpected(room, { name: 'numbered', app: {}, service: {} }, false);
    });

    it('takes takeover before there is a Service, says Bypassable when one goes past, and redirects after a restart', async () => {
      await room.apply(policy('late'), deployment(room, 'late'));
      await e2e.rolledOut(room.name, 'deployment/late');
      assert.equal(await modeOf(room, 'late'), 'takeover');

      // It reads the template, which was never changed, and writes the number.
      await e2e.kubectl(['expose', '-n', room.name, 'deployment/late', '--port=8080']);
      const late: Row = { name: 'late', app: {}, service: {}, port: 8080, bypass: 'targetPort' };
      await isAsExpected(room, late, true);
      const events = async (): Promise<string> =>
        e2e.kubectl(['get', 'events', '-n', room.name, '-o', 'json']);
      await eventually('an Event on Service and Deployment', async () => {
        const told = listAt(JSON.parse(await events()), 'items')
          .filter((one) => textAt(one, 'reason') === 'Bypassable')
          .map((one) => textAt(one, 'involvedObject', 'kind'));
        return told.includes('Service') && told.includes('Deployment');
      });

      await e2e.kubectl(['rollout', 'restart', '-n', room.name, 'deployment/late']);
      await e2e.rolledOut(room.name, 'deployment/late');
      await eventually('one pod', async () => (await e2e.pods(room.name, 'late')).length === 1);
      assert.equal(await modeOf(room, 'late'), 'redirect');
      await room.untilPolicy('late', (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
    });

    it('redirects a StatefulSet with a headless Service, whose host names are limited', async () => {
      const governing = service('web', [{ port: 8080, targetPort: 'http' }], HEADLESS);
      await room.apply(governing, policy('web'), statefulSet(room, 'web'));
      await e2e.rolledOut(room.name, 'statefulset/web');
      await room.untilPolicy('web', (one) => conditionOf(one, 'Enforced') === 'True/Enforced');

      const url = `http://web-0.web.${room.name}:8080/`;
      const headers = { 'x-client': 'web' };
      const { statuses } = await room.send({ kind: 'burst', url, count: 6, atOnce: 1, headers });

      assert.deepEqual(statuses, LIMITED);
    });
  });

  describe('in a namespace that enforces restricted', { concurrency: true }, () => {
    let room: Room;
    before(async () => {
      room = await e2e.namespace('restricted', {
        'pod-security.kubernetes.io/enforce': 'restricted',
      });
    });
    after(async () => {
      await room[Symbol.asyncDispose]();
    });

    it('is limited in takeover mode', async () => {
      await room.apply(service('plain', [{ port: 80, targetPort: 'http' }]), policy('plain'));
      await room.apply(deployment(room, 'plain'));
      await e2e.rolledOut(room.name, 'deployment/plain');

      assert.equal(await modeOf(room, 'plain'), 'takeover');
      await isAsExpected(room, { name: 'plain', app: {}, service: {} }, false);
    });

    it('passes a StatefulSet by, which no redirect is allowed for, and the policy says so', async () => {
      const governing = service('set', [{ port: 8080, targetPort: 'http' }], HEADLESS);
      await room.apply(governing, policy('set'), statefulSet(room, 'set'));
      await e2e.rolledOut(room.name, 'statefulset/set');

      assert.equal(await modeOf(room, 'set'), 'takeover');
      const set: Row = { name: 'set', app: {}, service: {}, port: 8080, bypass: 'headless' };
      await isAsExpected(room, set, true);
    });

    it('is not started with redirect, and the Deployment says why', async () => {
      const forced = { annotations: { [annotations.mode]: 'redirect' } };
      await room.apply(deployment(room, 'forced', forced));

      await eventually(
        'a reason',
        async () => {
          const found = await e2e.get(room.name, 'deployment/forced');
          const failure = listAt(found, 'status', 'conditions').find(
            (one) => textAt(one, 'type') === 'ReplicaFailure',
          );
          return textAt(failure, 'message').includes(
            'NET_ADMIN, which namespace restricted forbids',
          );
        },
        SETTLE_MS,
      );
    });
  });

  describe('of a particular kind', { concurrency: 3 }, () => {
    let room: Room;
    before(async () => {
      room = await e2e.namespace('kinds');
    });
    after(async () => {
      await room[Symbol.asyncDispose]();
    });

    for (const mode of ['takeover', 'redirect']) {
      it(`reaches an app on 127.0.0.1 through the sidecar only, in ${mode} mode`, async () => {
        const name = `local-${mode}`;
        // Of these, the kubelet's own probes fail with and without a sidecar.
        const readinessProbe = { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 };
        await room.apply(
          service(name, [{ port: 80, targetPort: 'http' }]),
          policy(name),
          deployment(room, name, {
            listen: '127.0.0.1:8080',
            annotations: { [annotations.mode]: mode, [annotations.probes]: 'sidecar' },
            container: { readinessProbe },
          }),
        );
        await e2e.rolledOut(room.name, `deployment/${name}`);

        await isAsExpected(room, { name, app: {}, service: {} }, false);
        if (mode === 'redirect') return;
        const [pod] = await e2e.pods(room.name, name);
        const url = `http://${textAt(pod, 'status', 'podIP')}:8080/`;
        const { failures } = await room.send({ kind: 'burst', url, count: 1, atOnce: 1 });
        assert.deepEqual(failures, { 'burst: ECONNREFUSED': 1 });
      });

      it(`is limited on each of two app ports, in ${mode} mode`, async () => {
        const name = `two-${mode}`;
        await room.apply(
          service(name, [
            { name: 'http', port: 80, targetPort: 'http' },
            { name: 'admin', port: 81, targetPort: 'http-admin' },
          ]),
          policy(name),
          policy(`${name}-admin`, { capacity: 1, more: selecting(name, ['http-admin']) }),
          deployment(room, name, {
            listen: '0.0.0.0:8080,0.0.0.0:9090',
            ports: [
              { name: 'http', containerPort: 8080 },
              { name: 'http-admin', containerPort: 9090 },
            ],
            annotations: { [annotations.mode]: mode },
          }),
        );
        await e2e.rolledOut(room.name, `deployment/${name}`);
        for (const one of [name, `${name}-admin`]) {
          await room.untilPolicy(
            one,
            (found) => conditionOf(found, 'Enforced') === 'True/Enforced',
          );
        }

        const ask = async (port: number, client: string): Promise<object> => {
          const url = `http://${name}.${room.name}:${port}/`;
          const headers = { 'x-client': client };
          return (await room.send({ kind: 'burst', url, count: 6, atOnce: 1, headers })).statuses;
        };
        assert.deepEqual(await ask(80, 'one'), LIMITED);
        assert.deepEqual(await ask(81, 'two'), { 200: 1, 429: 5 });
        // The first policy is for both ports, so its bucket is one.
        assert.deepEqual(await ask(80, 'two'), { 200: 2, 429: 4 });
      });

      it(`is limited by either address of a dual-stack Service, in ${mode} mode`, async (t) => {
        const name = `dual-${mode}`;
        await room.apply(
          service(name, [{ port: 80, targetPort: 'http' }], { ipFamilyPolicy: 'PreferDualStack' }),
          policy(name),
          deployment(room, name, {
            listen: '[::]:8080',
            annotations: { [annotations.mode]: mode },
          }),
        );
        await e2e.rolledOut(room.name, `deployment/${name}`);
        await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
        const found = await e2e.get(room.name, `service/${name}`);
        const addresses = listAt(found, 'spec', 'clusterIPs').map(String);
        if (addresses.length < 2) {
          t.skip('this cluster has one address family');
          return;
        }

        for (const address of addresses) {
          const host = address.includes(':') ? `[${address}]` : address;
          const headers = { 'x-client': address };
          const plan = {
            kind: 'burst',
            url: `http://${host}/`,
            count: 6,
            atOnce: 1,
            headers,
          } as const;
          assert.deepEqual((await room.send(plan)).statuses, LIMITED, address);
        }
      });
    }
  });

  async function modeOf(room: Room, app: string): Promise<string> {
    const [pod] = await e2e.pods(room.name, app);
    const status: unknown = JSON.parse(textAt(pod, 'metadata', 'annotations', 'weir.dev/status'));
    return String(valueAt(status, 'mode'));
  }
});

function portsOf(mode: string, ports: string | undefined): Readonly<Record<string, string>> {
  return mode === 'redirect' && ports !== undefined ? { [annotations.ports]: ports } : {};
}

/** A policy of the app's pods under another name, for these ports. */
function selecting(app: string, ports: readonly string[]): Readonly<Record<string, unknown>> {
  return { selector: { matchLabels: { app } }, ports };
}
