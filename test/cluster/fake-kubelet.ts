// Makes pods look as if a kubelet ran them, where none does: Running and Ready, with an address, so that rollouts
// complete and Services get their endpoints. Pods are not bound to a node, so their deletion is immediate.
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from './api-client.ts';
import { listAt, textAt, valueAt } from './json-value.ts';

const POLL_MS = 100;
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
      await this.#runPending().catch(() => undefined);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #runPending(): Promise<void> {
    const { body } = await this.#api.request(
      'GET',
      '/api/v1/pods?fieldSelector=status.phase%3DPending',
    );
    const pods = listAt(body, 'items').filter((pod) => !this.#options.isIgnored?.(pod));
    await Promise.all(pods.map((pod) => writeRunning(this.#api, pod, this.#ipOf(pod))));
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
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  const { status, body } = await api.request('GET', path);
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
  const path = `/api/v1/namespaces/${textAt(pod, 'metadata', 'namespace')}/pods/${textAt(pod, 'metadata', 'name')}`;
  const body = { status: runningStatus(pod, { ip, now: new Date().toISOString() }) };
  const contentType = 'application/merge-patch+json';
  return api.request('PATCH', `${path}/status`, { body, contentType });
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
