// Faults in everything around the sidecars of an app: its operator, the API server, etcd, the store's Secret, the CA.
import { setTimeout as delay } from 'node:timers/promises';
import { createAuthority } from '../../operator/certificates/authority.ts';
import {
  AUTHORITY_SECRET,
  decodeAuthorities,
  encodeAuthorities,
} from '../../operator/certificates/authority-secret.ts';
import { OVERLAP_MS } from '../../operator/certificates/rotation.ts';
import { WEBHOOK_CONFIGURATION } from '../../operator/webhook/configuration.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { eventually } from '../support/redis.ts';
import type { EnforcedApp } from './enforced-app.ts';
import { textAt, valueAt } from './json-value.ts';
import { OPERATOR_NAMESPACE } from './operator-process.ts';

const RESTORE_TIMEOUT_MS = 120_000;
/** Replicas look at their CA once a minute: by then each trusts the next one, and has told its sidecars. */
const PROMOTED_IN_MS = 75_000;
const CONFIGURATION = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`;
const AUTHORITY = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/secrets/${AUTHORITY_SECRET}`;
const JSON_PATCH = 'application/json-patch+json';

export interface FaultScene {
  readonly app: EnforcedApp;
  /** Another address of the same store. */
  readonly detour: FaultProxy;
  /** How many faults there were before. */
  readonly turn: number;
}

/** Strikes, and resolves when nothing stands in the way of recovery any more. */
export type Fault = (scene: FaultScene) => Promise<void>;

export const faults: Readonly<Record<string, Fault>> = {
  'a replica of the operator killed': async ({ app, turn }) => {
    const { replicas } = app.operators;
    const replica = replicas[turn % replicas.length];
    await replica?.stop('SIGKILL');
    await replica?.start();
  },
  'the leader killed, another one leads': async ({ app }) => {
    const leader = await app.operators.leader();
    await leader.stop('SIGKILL');
    await app.operators.leader(leader.name);
    await leader.start();
  },
  'both replicas killed at once': async ({ app }) => {
    const { replicas } = app.operators;
    await Promise.all(replicas.map((one) => one.stop('SIGKILL')));
    await Promise.all(replicas.map((one) => one.start()));
  },
  'the leader stopped in an orderly way': async ({ app }) => {
    const leader = await app.operators.leader();
    await leader.stop('SIGTERM');
    await leader.start();
  },
  'the API server killed and started again': async ({ app }) => {
    await app.cluster.stopApiServer('SIGKILL');
    await app.cluster.startApiServer();
  },
  'watches and all other connections to the API server cut': async ({ app }) => {
    app.operators.path.cut();
    await Promise.resolve();
  },
  'the API server unreachable for 5 s': async ({ app }) => {
    const { path } = app.operators;
    path.refuses = true;
    path.cut();
    await delay(5_000);
    path.refuses = false;
  },
  'etcd compacted and the API server restarted (410)': async ({ app }) => {
    await app.cluster.compactEtcd();
    await app.cluster.restartApiServer();
  },
  "the store's Secret rotated": async ({ app, detour, turn }) => {
    await app.nameStore(turn % 2 === 0 ? detour.url : app.redis.url);
  },
  "the webhook configuration's caBundle wiped": async ({ app }) => {
    const path = '/webhooks/0/clientConfig/caBundle';
    await app.cluster.api.request('PATCH', CONFIGURATION, {
      body: [{ op: 'remove', path }],
      contentType: JSON_PATCH,
    });
    await eventually(
      'the caBundle is back',
      async () => {
        const { body } = await app.cluster.api.request('GET', CONFIGURATION);
        const bundle = textAt(body, 'webhooks', 0, 'clientConfig', 'caBundle');
        // Not what it was: the next CA may have begun to sign meanwhile.
        const authority = decoded(await signingAuthority(app));
        return authority !== '' && decoded(bundle).includes(authority);
      },
      RESTORE_TIMEOUT_MS,
    );
  },
  'the next CA introduced, to sign soon': async ({ app }) => {
    await introduceAuthority(app);
  },
};

/** As the leader would, but with a day's overlap that is nearly over. */
async function introduceAuthority(app: EnforcedApp): Promise<void> {
  const { body } = await app.cluster.api.request('GET', AUTHORITY);
  const authorities = decodeAuthorities({
    metadata: { name: AUTHORITY_SECRET },
    data: Object.fromEntries(
      Object.entries(valueAt(body, 'data') ?? {}).map(([name, text]) => [name, String(text)]),
    ),
  });
  // One rotation at a time, and what was replaced stays trusted until every replica has signed anew.
  const sinceMs = Date.now() - (authorities.promotedAtMs ?? 0);
  if (authorities.next !== undefined || sinceMs < 2 * PROMOTED_IN_MS) return;
  const next = await createAuthority(Date.now() - OVERLAP_MS + PROMOTED_IN_MS);
  const data = encodeAuthorities({ current: authorities.current, next });
  await app.cluster.api.request('PATCH', AUTHORITY, {
    body: [{ op: 'replace', path: '/data', value: data }],
    contentType: JSON_PATCH,
  });
}

function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** The CA that signs now, in base64. */
export async function signingAuthority(app: EnforcedApp): Promise<string> {
  const { body } = await app.cluster.api.request('GET', AUTHORITY);
  return textAt(body, 'data', 'ca.crt');
}
