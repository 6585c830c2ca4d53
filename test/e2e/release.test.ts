// The life of a release with pods that run: what an upgrade, a rollback, an uninstallation and a new installation do to
// them, and what they do to the webhook. test/cluster/chart.test.ts has the same without pods, in more variants.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AUTHORITY_SECRET } from '../../operator/certificates/authority-secret.ts';
import { createAuthority } from '../../operator/certificates/authority.ts';
import { WEBHOOK_CONFIGURATION, webhookEntries } from '../../operator/webhook/configuration.ts';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { eventually } from '../support/redis.ts';
import {
  CHART,
  conditionOf,
  E2e,
  RELEASE,
  restartsOf,
  SETTLE_MS,
  SYSTEM,
  type Room,
} from './support/e2e.ts';
import { deployment, podTemplate, policy, service } from './support/workloads.ts';

const DAY_MS = 86_400_000;
const ENTRIES = Object.values(webhookEntries);
const name = 'lasting';

describe('a release', () => {
  let e2e: E2e;
  let room: Room;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
    room = await e2e.namespace('release');
    await room.apply(
      service(name, [{ port: 80, targetPort: 'http' }]),
      policy(name),
      deployment(room, name),
    );
    await e2e.rolledOut(room.name, `deployment/${name}`);
    await enforced();
  });
  after(async () => {
    await room[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  const values = (): readonly string[] => e2e.config.values.flatMap((file) => ['--values', file]);
  const target = ['--namespace', SYSTEM, '--wait', '--timeout', '3m'];

  async function upgrade(flags: readonly string[], chart = CHART): Promise<void> {
    await e2e.helm(['upgrade', RELEASE, chart, ...target, '--reset-values', ...values(), ...flags]);
  }

  async function enforced(): Promise<void> {
    await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
  }

  async function ask(client: string): Promise<object> {
    const url = `http://${name}.${room.name}/`;
    const headers = { 'x-client': client };
    return (await room.send({ kind: 'burst', url, count: 6, atOnce: 1, headers })).statuses;
  }

  /** The entries are these, each with the same CA, and the API server gets an answer by the required one. */
  async function injects(names: readonly string[]): Promise<void> {
    await eventually(
      `a CA in ${names.join(', ')}`,
      async () => {
        const kind = 'mutatingwebhookconfiguration';
        const found = await e2e.get(SYSTEM, `${kind}/${WEBHOOK_CONFIGURATION}`);
        const entries = listAt(found, 'webhooks');
        const bundles = new Set(entries.map((one) => textAt(one, 'clientConfig', 'caBundle')));
        const seen = entries.map((one) => textAt(one, 'name'));
        return seen.join() === names.join() && bundles.size === 1 && !bundles.has('');
      },
      SETTLE_MS,
    );
    const template = podTemplate(room, 'asked') as { metadata: object; spec: object };
    const pod = { apiVersion: 'v1', kind: 'Pod', spec: template.spec };
    const metadata = { ...template.metadata, name: 'asked', namespace: room.name };
    const create = ['create', '--dry-run=server', '-o', 'json', '-f', '-'];
    const answer: unknown = JSON.parse(
      await e2e.kubectl(create, JSON.stringify({ ...pod, metadata })),
    );
    assert.equal(textAt(answer, 'spec', 'initContainers', 0, 'name'), 'weir');
  }

  /** Nobody restarted it, and the limit holds. */
  async function isUnharmed(client: string): Promise<void> {
    const [pod, ...others] = await e2e.pods(room.name, name);
    assert.deepEqual(others, []);
    const restarts = Object.values(restartsOf(pod));
    assert.deepEqual(restarts, [0, 0]);
    assert.deepEqual(await ask(client), { 200: 3, 429: 3 });
  }

  /** An edit of the policy reaches the sidecar. */
  async function takesChange(capacity: number): Promise<void> {
    await room.apply(policy(name, { capacity }));
    await room.untilPolicy(name, (found) => {
      const generation = valueAt(found, 'metadata', 'generation');
      const programmed = listAt(found, 'status', 'conditions').find(
        (one) => textAt(one, 'type') === 'Programmed',
      );
      const isCurrent = valueAt(programmed, 'observedGeneration') === generation;
      return isCurrent && textAt(programmed, 'status') === 'True';
    });
    assert.deepEqual(await ask(`change-${capacity}`), { 200: capacity, 429: 6 - capacity });
  }

  it('passes `helm test`', async () => {
    const said = await e2e.helm(['test', RELEASE, '--namespace', SYSTEM, '--timeout', '2m']);

    assert.match(said, /Phase:\s+Succeeded/);
  });

  it('refuses values that are wrong, and says which and why', async () => {
    const wrong = ['--set', 'operator.replicas=none'];
    const { code, stderr } = await e2e.tryHelm([
      ...['upgrade', RELEASE, CHART, ...target, '--reset-values', ...values(), ...wrong],
    ]);

    assert.notEqual(code, 0);
    assert.match(stderr, /operator.replicas.*got string, want integer/);
  });

  it('is upgraded: values change, entries of the webhook go, come and get other names', async () => {
    await upgrade(['--set', 'operator.logLevel=debug']);
    await injects(ENTRIES);
    await isUnharmed('upgraded');

    await upgrade(['--set', 'webhookConfiguration.entries.namespace=false']);
    await injects(ENTRIES.slice(0, 2));

    await upgrade([]);
    await injects(ENTRIES);

    await using renamed = await renamedChart();
    await upgrade([], renamed.folder);
    await injects([...ENTRIES.slice(0, 2), 'renamed.inject.weir.dev']);
    await enforced();
    await isUnharmed('renamed');
  });

  it('is rolled back to what it was, with the names it had', async () => {
    await e2e.helm(['rollback', RELEASE, '1', ...target]);

    await injects(ENTRIES);
    await enforced();
    await isUnharmed('rolled-back');
  });

  it('is uninstalled: policies stay, pods run on and keep their limits, new pods start', async () => {
    await e2e.helm(['uninstall', RELEASE, '--namespace', SYSTEM, '--wait']);

    // Its Redis has gone as well: the pod limits by its share, which is all of it.
    await eventually('the pod limits by itself', async () => {
      const statuses = await ask(`alone-${Date.now()}`);
      return JSON.stringify(statuses) === JSON.stringify({ 200: 3, 429: 3 });
    });
    assert.equal(textAt(await e2e.get(room.name, `rlpol/${name}`), 'metadata', 'name'), name);
    await room.apply(deployment(room, 'newcomer'));
    await e2e.rolledOut(room.name, 'deployment/newcomer');
    const [newcomer] = await e2e.pods(room.name, 'newcomer');
    assert.deepEqual(listAt(newcomer, 'spec', 'initContainers'), []);
  });

  it('is installed again: the sidecars that run find it, and take what changes', async () => {
    await e2e.helm(['install', RELEASE, CHART, ...target, ...values()]);

    await injects(ENTRIES);
    await enforced();
    await isUnharmed('again');
    await takesChange(1);
  });

  it('rotates its CA, and loses neither a sidecar nor the API server', async () => {
    // It is trusted for a day before it signs: this one has been, by its date.
    const next = await createAuthority(Date.now() - 2 * DAY_MS);
    const stringData = { 'ca-next.crt': next.cert, 'ca-next.key': next.key };
    await e2e.kubectl([
      ...['patch', '-n', SYSTEM, 'secret', AUTHORITY_SECRET, '--type=merge'],
      ...['-p', JSON.stringify({ stringData })],
    ]);

    await eventually(
      'it signs',
      async () => {
        const secret = await e2e.get(SYSTEM, `secret/${AUTHORITY_SECRET}`);
        const current = Buffer.from(textAt(secret, 'data', 'ca.crt'), 'base64').toString();
        return current === next.cert;
      },
      SETTLE_MS,
    );
    await injects(ENTRIES);
    // Sidecars come back to certificates of the new one.
    await e2e.kubectl(['rollout', 'restart', '-n', SYSTEM, 'deployment/weir-operator']);
    await e2e.rolledOut(SYSTEM, 'deployment/weir-operator');
    await enforced();
    await takesChange(2);
    await injects(ENTRIES);
  });
});

/** The chart with another name for an entry, as a later version might have it. */
async function renamedChart(): Promise<AsyncDisposable & { readonly folder: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-chart-'));
  await cp(CHART, folder, { recursive: true });
  const file = path.join(folder, 'templates', 'webhook-configuration.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace(webhookEntries.namespace, 'renamed.inject.weir.dev'));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
