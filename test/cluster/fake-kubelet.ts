// Makes pods look as if a kubelet ran them, where none does: Running and Ready, with an address, so that rollouts
// complete and Services get their endpoints. Pods are bound to a node that exists by name only; deleted ones go at
// once for as long as this runs.
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { listAt, textAt, valueAt } from './json-value.ts';

const POLL_MS = 100;
/** Endpoints are given to pods of known nodes only. */
const NODE = 'fake-kubelet';
/** The second half of 198.18.0.0/15 (RFC 2544) is meant for tests and routed nowhere. */
const NETWORK = '198.19';
/** `.0` and `.255` are left out of each row. */
const ROW = 254;

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface FakeKubeletOptions {
  /** The address a pod gets; one of its own from 198.19.0.0/16 unless given. */
  readonly ipOf?: (pod: unknown) => string;
  /** Pods it leaves Pending; none unless given. */
  readonly isIgnored?: (pod: unknown) => boolean;
}

/** Polls rather than watches: it goes on by itself after every fault a test brings about. */
export class FakeKubelet implements AsyncDisposable {
  readonly #api: ApiClient;
  readonly #options: FakeKubeletOptions;
  readonly #ended = new AbortController();
  readonly #loop: Promise<void>;
  #count = 0;

  constructor(api: ApiClient, options: FakeKubeletOptions = {}) {
    this.#api = api;
    this.#options = options;
    this.#loop = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      // The API server may be away; that is what some tests are about.
      await this.#look().catch(() => undefined);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { body } = await this.#api.request('GET', '/api/v1/pods');
    const pods = listAt(body, 'items').filter((pod) => !this.#options.isIgnored?.(pod));
    await Promise.all(pods.map((pod) => this.#bringAlong(pod)));
  }

  async #bringAlong(pod: unknown): Promise<void> {
    if (valueAt(pod, 'metadata', 'deletionTimestamp') !== undefined) {
      await this.#api.request('DELETE', `${pathOf(pod)}?gracePeriodSeconds=0`);
    } else if (valueAt(pod, 'status', 'phase') === 'Pending') {
      if (valueAt(pod, 'spec', 'nodeName') === undefined) await this.#bind(pod);
      await writeRunning(this.#api, pod, this.#ipOf(pod));
    }
  }

  /** The node is there from the first pod on. */
  async #bind(pod: unknown): Promise<void> {
    const metadata = { name: NODE };
    const node = { apiVersion: 'v1', kind: 'Node', metadata };
    if ((await this.#api.request('GET', `/api/v1/nodes/${NODE}`)).status === 404) {
      await this.#api.request('POST', '/api/v1/nodes', { body: node });
    }
    const target = { apiVersion: 'v1', kind: 'Node', name: NODE };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: nameOf(pod), target };
    await this.#api.request('POST', `${pathOf(pod)}/binding`, { body: binding });
  }

  #ipOf(pod: unknown): string {
    if (this.#options.ipOf !== undefined) return this.#options.ipOf(pod);
    const index = this.#count;
    this.#count += 1;
    return `${NETWORK}.${Math.floor(index / ROW) % 256}.${(index % ROW) + 1}`;
  }
}

/** Sets one pod Running and Ready at the address. Rejects with the API server's answer when it may not be. */
export async function markPodRunning(
  api: ApiClient,
  { namespace, name }: PodName,
  { ip }: { readonly ip: string },
): Promise<void> {
  const url = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const { status, body } = await api.request('GET', url);
  if (status !== 200) throw new Error(`no pod ${namespace}/${name}: ${textAt(body, 'message')}`);
  const patched = await writeRunning(api, body, ip);
  if (patched.status !== 200) {
    throw new Error(`pod ${namespace}/${name} cannot run: ${textAt(patched.body, 'message')}`);
  }
}

async function writeRunning(
  api: ApiClient,
  pod: unknown,
  ip: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const body = { status: runningStatus(pod, { ip, now: new Date().toISOString() }) };
  const contentType = 'application/merge-patch+json';
  return api.request('PATCH', `${pathOf(pod)}/status`, { body, contentType });
}

function nameOf(pod: unknown): PodName {
  return { namespace: textAt(pod, 'metadata', 'namespace'), name: textAt(pod, 'metadata', 'name') };
}

function pathOf(pod: unknown): string {
  const { namespace, name } = nameOf(pod);
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}

const CONDITIONS = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'];

function runningStatus(
  pod: unknown,
  { ip, now }: { readonly ip: string; readonly now: string },
): unknown {
  const running = { running: { startedAt: now } };
  const gates = listAt(pod, 'spec', 'readinessGates').map((gate) => textAt(gate, 'conditionType'));
  const isSidecar = (container: unknown): boolean =>
    valueAt(container, 'restartPolicy') === 'Always';
  return {
    phase: 'Running',
    startTime: now,
    hostIP: '127.0.0.1',
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [...gates, ...CONDITIONS].map((type) => ({
      ...{ type, status: 'True', lastTransitionTime: now },
    })),
    initContainerStatuses: listAt(pod, 'spec', 'initContainers').map((container) =>
      isSidecar(container)
        ? containerStatus(container, running)
        : containerStatus(container, { terminated: completed(now) }),
    ),
    containerStatuses: listAt(pod, 'spec', 'containers').map((container) =>
      containerStatus(container, running),
    ),
  };
}

function completed(now: string): unknown {
  return { exitCode: 0, reason: 'Completed', startedAt: now, finishedAt: now };
}

/** An init container that has ended well counts as ready too. */
function containerStatus(container: unknown, state: object): unknown {
  const image = textAt(container, 'image');
  const isStarted = 'running' in state;
  return {
    ...{ name: textAt(container, 'name'), image, imageID: image, state },
    ...{ ready: true, started: isStarted, restartCount: 0 },
  };
}
