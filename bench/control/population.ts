// Who lives in the cluster of bench:control: Deployments of 50 pods each, their Services, and policies about them. Pods
// come from the real controllers through the real webhook; only their kubelet is made up.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { annotations, injected, STREAM_AUDIENCE } from '../../contract/names.ts';
import { markPodRunning } from '../../test/cluster/fake-kubelet.ts';
import type { ApiClient } from '../../test/cluster/api-client.ts';
import { listAt, textAt, valueAt } from '../../test/cluster/json-value.ts';
import { eventually } from '../../test/support/redis.ts';
import { forEachBounded } from './bounded.ts';
import type { SimulatedPod } from './fleet-message.ts';

/** Sidecars of one Deployment, which the goal for one policy speaks of. */
export const APP_SIZE = 50;
/** One policy in five is about nobody: policies come before their pods, and stay after them. */
const IDLE_SHARE = 5;
const IDLE_NAMESPACES = 4;
/** Requests at once: a busy `kubectl`, not a storm of its own. */
const AT_ONCE = 16;
/** A hundred pods a second are created with both cores busy; the webhook answers each. */
const POD_MS = 200;
const POLL_MS = 500;
const TOKEN_SECONDS = 3_600;

export const NAMESPACE = 'bench';
/** The policy that is about every pod. */
export const EVERYONE = 'everyone';

export interface PolicyPlace {
  readonly name: string;
  /** Empty = every app. */
  readonly app: string;
  readonly uid: string;
  /** Pods that it selects. */
  readonly pods: number;
}

export interface App {
  readonly name: string;
  readonly replicas: number;
}

export function appsFor(sidecars: number): readonly App[] {
  return Array.from({ length: Math.ceil(sidecars / APP_SIZE) }, (_, index) => ({
    name: `app-${String(index)}`,
    replicas: Math.min(APP_SIZE, sidecars - index * APP_SIZE),
  }));
}

/** Resolves with those that are about pods. */
export async function createPolicies(
  api: ApiClient,
  count: number,
  apps: readonly App[],
): Promise<readonly PolicyPlace[]> {
  const idle = Math.floor(count / IDLE_SHARE);
  const namespaces = Array.from({ length: IDLE_NAMESPACES }, (_, i) => `bench-idle-${String(i)}`);
  for (const name of [NAMESPACE, ...namespaces]) {
    await create(api, '/api/v1/namespaces', { metadata: { name } });
  }
  const idlers = Array.from({ length: idle }, (_, i) => i);
  await forEachBounded(idlers, AT_ONCE, (i) => {
    const namespace = namespaces[i % IDLE_NAMESPACES] ?? '';
    return create(api, policiesPath(namespace), policyOf(`idle-${String(i)}`, 'nobody', i));
  });
  const all = apps.reduce((sum, { replicas }) => sum + replicas, 0);
  const places = Array.from({ length: count - idle }, (_, i) => {
    const app = apps[(i - 1) % apps.length];
    return i === 0 || app === undefined
      ? { name: EVERYONE, app: '', pods: all }
      : { name: `${app.name}-${String(i)}`, app: app.name, pods: app.replicas };
  });
  return forEachBounded(places, AT_ONCE, async (place, i) => {
    const made = await create(api, policiesPath(NAMESPACE), policyOf(place.name, place.app, i));
    return { ...place, uid: textAt(made, 'metadata', 'uid') };
  });
}

export function policiesPath(namespace: string): string {
  return `/apis/weir.dev/v1alpha1/namespaces/${namespace}/ratelimitpolicies`;
}

/** As people write them: two rules, one of them by client; the capacity is what edits change. */
export function rulesOf(index: number, capacity: number): object {
  return {
    rules: [
      {
        name: 'per-client',
        match: [{ path: { type: 'Prefix', value: `/v${String(index)}/` } }],
        key: [{ header: { name: 'X-Api-Key' } }],
        onMissingKey: 'ClientIP',
        tiers: [
          {
            name: 'premium',
            match: [{ headers: [{ name: 'X-Plan', value: 'premium' }] }],
            buckets: [{ capacity, refill: { tokens: 1_000, every: '1h' } }],
          },
          {
            name: 'free',
            buckets: [
              { name: 'hourly', capacity: 100, refill: { tokens: 100, every: '1h' } },
              { name: 'burst', capacity: 10, refill: { tokens: 2, every: '1s' } },
            ],
          },
        ],
      },
      {
        name: 'writes',
        match: [
          { methods: ['POST', 'PUT'], path: { type: 'Prefix', value: `/v${String(index)}/items` } },
        ],
        buckets: [{ capacity: 500, refill: { tokens: 500, every: '1m' } }],
      },
    ],
  };
}

function policyOf(name: string, app: string, index: number): object {
  const selector = app === '' ? {} : { matchLabels: { app } };
  const failureMode = ['Open', 'Local', 'Closed'][index % 3];
  return {
    ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy', metadata: { name } },
    spec: { selector, failureMode, ...rulesOf(index, 1_000) },
  };
}

export async function createApps(api: ApiClient, apps: readonly App[]): Promise<void> {
  await forEachBounded(apps, AT_ONCE, async ({ name, replicas }) => {
    const labels = { app: name };
    await create(api, `/api/v1/namespaces/${NAMESPACE}/services`, {
      metadata: { name },
      spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
    });
    const container = {
      ...{ name: 'app', image: 'registry.invalid/app:1' },
      ports: [{ name: 'http', containerPort: 8080 }],
      readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
    };
    await create(api, `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, {
      metadata: { name },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations: { [annotations.inject]: 'enabled' } },
          spec: { containers: [container] },
        },
      },
    });
  });
}

/**
 * Resolves with the pods once as many as `sidecars` have a sidecar and run. A pod that started bare because the
 * operator was slow is deleted, as a person would; `say` is told how far it is.
 */
export async function runPods(
  api: ApiClient,
  sidecars: number,
  say: (text: string) => void,
): Promise<readonly unknown[]> {
  const running = new Map<string, unknown>();
  const look = async (): Promise<boolean> => {
    await delay(POLL_MS);
    const { body } = await api.request('GET', `/api/v1/namespaces/${NAMESPACE}/pods`);
    const fresh = listAt(body, 'items').filter((pod) => !running.has(uidOf(pod)));
    await forEachBounded(fresh, AT_ONCE, async (pod) => {
      const name = textAt(pod, 'metadata', 'name');
      if (valueAt(pod, 'metadata', 'annotations', injected.status) === undefined) {
        const query = 'gracePeriodSeconds=0';
        await api.request('DELETE', `/api/v1/namespaces/${NAMESPACE}/pods/${name}?${query}`);
        return;
      }
      const index = running.size;
      running.set(uidOf(pod), pod);
      const ip = `198.19.${String(Math.floor(index / 250))}.${String((index % 250) + 1)}`;
      await markPodRunning(api, { namespace: NAMESPACE, name }, { ip });
    });
    if (fresh.length > 0) say(`${String(running.size)} of ${String(sidecars)} pods run`);
    return running.size >= sidecars;
  };
  await eventually('every pod has a sidecar and runs', look, 60_000 + sidecars * POD_MS);
  return [...running.values()];
}

/** Tokens as the kubelet asks for them: for our audience, bound to the pod. One file each in `folder`. */
export async function writeTokens(
  api: ApiClient,
  pods: readonly unknown[],
  folder: string,
): Promise<readonly SimulatedPod[]> {
  return forEachBounded(pods, AT_ONCE, async (pod) => {
    const [name, uid] = [textAt(pod, 'metadata', 'name'), uidOf(pod)];
    const path_ = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default/token`;
    const answer = await create(api, path_, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        ...{ audiences: [STREAM_AUDIENCE], expirationSeconds: TOKEN_SECONDS },
        boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
      },
    });
    const tokenFile = path.join(folder, uid);
    await writeFile(tokenFile, textAt(answer, 'status', 'token'), { mode: 0o600 });
    return { namespace: NAMESPACE, name, uid, tokenFile };
  });
}

function uidOf(pod: unknown): string {
  return textAt(pod, 'metadata', 'uid');
}

async function create(api: ApiClient, at: string, body: object): Promise<unknown> {
  const answer = await api.request('POST', at, { body });
  if (answer.status !== 201) {
    throw new Error(`POST ${at}: ${String(answer.status)} ${textAt(answer.body, 'message')}`);
  }
  return answer.body;
}
