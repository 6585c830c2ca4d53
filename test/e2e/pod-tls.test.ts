// A pod that asks for TLS: the sidecar serves its port with a certificate from a Secret, the app knows nothing of it.
// x509 wants a Reflect with metadata before it is loaded.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509';
import { annotations } from '../../contract/names.ts';
import { textAt } from '../cluster/json-value.ts';
import { makeAuthority, pem, sign, type Authority } from '../support/certificates.ts';
import { eventually } from '../support/redis.ts';
import { conditionOf, E2e, restartsOf, SETTLE_MS, type Room } from './support/e2e.ts';
import { deployment, policy, service } from './support/workloads.ts';

interface Asked {
  readonly host: string;
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  readonly count: number;
}

interface Answers {
  /** How many were answered with each status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** How many were not answered. */
  readonly failures: number;
  /** Of the certificate that was shown last. */
  readonly serial: string;
}

const ASK = `
const { get } = require('node:https');
const { count, ...options } = JSON.parse(process.argv[1]);
const statuses = {};
let failures = 0, serial = '';
const ask = () => new Promise((resolve) => {
  const asked = get({ ...options, agent: false, timeout: 10_000 }, (response) => {
    serial = response.socket.getPeerCertificate().serialNumber;
    statuses[response.statusCode] = (statuses[response.statusCode] ?? 0) + 1;
    response.resume().on('close', resolve);
  });
  asked.on('timeout', () => asked.destroy(new Error('timeout')));
  asked.on('error', () => { failures += 1; resolve(); });
});
(async () => {
  for (let i = 0; i < count; i += 1) await ask();
  console.log(JSON.stringify({ statuses, failures, serial }));
})();`;

describe('a pod that asks for TLS', { concurrency: true }, () => {
  let e2e: E2e;
  let room: Room;
  let authority: Authority;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
    room = await e2e.namespace('pod-tls');
    authority = await makeAuthority();
  });
  after(async () => {
    await room[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  const hostOf = (name: string): string => `${name}.${room.name}`;

  /** As cert-manager writes it: of type kubernetes.io/tls, with the CA beside the pair. */
  async function writeSecret(name: string): Promise<void> {
    const names = new SubjectAlternativeNameExtension([{ type: 'dns', value: hostOf(name) }]);
    const { cert, key } = await sign(authority, `CN=${name}`, [names]);
    await room.apply({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: `${name}-tls` } },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': cert, 'tls.key': key, 'ca.crt': pem(authority.certificate) },
    });
  }

  async function start(name: string, given: Readonly<Record<string, string>>): Promise<void> {
    await room.apply(
      service(name, [{ port: 443, targetPort: 'http' }]),
      policy(name),
      deployment(room, name, {
        annotations: { [annotations.tlsSecret]: `${name}-tls`, ...given },
      }),
    );
  }

  async function untilEnforced(name: string): Promise<void> {
    await e2e.rolledOut(room.name, `deployment/${name}`);
    await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
  }

  async function ask(name: string, asked: Partial<Asked> = {}): Promise<Answers> {
    const all = { host: hostOf(name), ca: pem(authority.certificate), count: 1, ...asked };
    const command = ['exec', '-n', room.name, 'client', '--', 'node', '-e', ASK];
    return JSON.parse(await e2e.kubectl([...command, JSON.stringify(all)])) as Answers;
  }

  for (const mode of ['takeover', 'redirect']) {
    it(`serves clients of its CA alone, limits them, and takes on a renewed certificate: ${mode}`, async () => {
      const name = `secure-${mode}`;
      await writeSecret(name);
      await start(name, { [annotations.mode]: mode, [annotations.tlsClientCa]: 'ca.crt' });
      await untilEnforced(name);
      const usage = new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]);
      const own = await sign(authority, 'CN=client', [usage]);

      const strangers = await ask(name);
      const known = await ask(name, { ...own, count: 6 });
      await writeSecret(name);
      const [pod] = await e2e.pods(room.name, name);
      const podName = textAt(pod, 'metadata', 'name');
      // A pod that changes is looked at at once; else the kubelet takes up to a minute and a half.
      await e2e.kubectl(['annotate', '-n', room.name, `pod/${podName}`, 'test/renewed=true']);
      await eventually(
        'the renewed certificate is shown',
        async () => {
          const { serial } = await ask(name, own);
          return serial !== '' && serial !== known.serial;
        },
        SETTLE_MS,
      );

      assert.deepEqual(strangers, { statuses: {}, failures: 1, serial: '' });
      assert.deepEqual(known.statuses, { 200: 3, 429: 3 });
      const [same] = await e2e.pods(room.name, name);
      assert.equal(textAt(same, 'metadata', 'name'), podName);
      assert.deepEqual(new Set(Object.values(restartsOf(same))), new Set([0]));
    });
  }

  it('asks clients for no certificate unless it names a CA, and waits for its Secret', async () => {
    const name = 'waiting';
    await start(name, {});
    await eventually(
      'the kubelet says what is missing',
      async () => {
        const events = await e2e.list(room.name, 'events');
        const messages = events.map((one) => textAt(one, 'message'));
        return messages.some((one) => one.includes('secret "waiting-tls" not found'));
      },
      SETTLE_MS,
    );
    await writeSecret(name);
    await untilEnforced(name);

    assert.deepEqual((await ask(name, { count: 6 })).statuses, { 200: 3, 429: 3 });
  });
});
