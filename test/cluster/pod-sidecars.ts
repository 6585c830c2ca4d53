// The sidecars that a kubelet would run, where there is none: a process for each injected pod, with what its container
// says, its own token and its own folders. Only what needs the pod's network is put on loopback instead.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inPod, injected, STREAM_AUDIENCE } from '../../contract/names.ts';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import type { ApiClient } from './api-client.ts';
import { listAt, textAt, valueAt } from './json-value.ts';

/** Longer than any test; the API server allows no less than 10 minutes. */
const TOKEN_SECONDS = 3_600;
/** A rollout of some pods, with both cores busy. */
const PODS_TIMEOUT_MS = 60_000;

export interface PodSidecarsOptions {
  readonly api: ApiClient;
  readonly namespace: string;
  /** As the API takes it, e.g. `app=api`. */
  readonly labelSelector: string;
  /** The app, which all pods share. */
  readonly upstreamPort: number;
}

/** One pod and the process that stands for its sidecar. */
export class PodSidecar implements AsyncDisposable {
  readonly name: string;
  readonly uid: string;
  readonly #pod: unknown;
  readonly #folder: string;
  readonly #upstreamPort: number;
  #process: SidecarProcess | undefined;

  constructor(pod: unknown, folder: string, upstreamPort: number) {
    this.name = textAt(pod, 'metadata', 'name');
    this.uid = textAt(pod, 'metadata', 'uid');
    this.#pod = pod;
    this.#folder = folder;
    this.#upstreamPort = upstreamPort;
  }

  get process(): SidecarProcess {
    if (this.#process === undefined) throw new Error(`the sidecar of ${this.name} is not running`);
    return this.#process;
  }

  /** As it stands in the pod's annotation; empty = none. */
  get seed(): string {
    return textAt(this.#pod, 'metadata', 'annotations', injected.seed);
  }

  /** Writes the volumes of the pod: token, seed, an empty cache. */
  async prepare(token: string): Promise<void> {
    await mkdir(path.join(this.#folder, 'cache'), { recursive: true });
    await writeFile(path.join(this.#folder, inPod.tokenFile), token);
    await writeFile(path.join(this.#folder, inPod.seedFile), this.seed);
  }

  /** As the container's command and environment say. */
  async start(): Promise<void> {
    const container = sidecarOf(this.#pod);
    const args = listAt(container, 'args').join(' ');
    if (args !== 'run') throw new Error(`the sidecar's arguments are ${args}`);
    this.#process = await SidecarProcess.open({
      source: [],
      upstreamPort: this.#upstreamPort,
      env: {
        ...environmentOf(this.#pod, container),
        WEIR_OPERATOR_TOKEN: path.join(this.#folder, inPod.tokenFile),
        WEIR_SEED: path.join(this.#folder, inPod.seedFile),
        WEIR_CONFIG_CACHE: path.join(this.#folder, 'cache'),
      },
    });
  }

  /** Ends the process as a crash would; its volumes stay. */
  async crash(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.process.exited;
  }

  /** Crashes, and comes to another node: token and seed are as they were, the cache is empty. */
  async loseCache(): Promise<void> {
    await this.crash();
    await rm(path.join(this.#folder, 'cache'), { recursive: true });
    await mkdir(path.join(this.#folder, 'cache'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** The sidecars of the pods that a selector finds, kept in step with them on command. */
export class PodSidecars implements AsyncDisposable {
  readonly #options: PodSidecarsOptions;
  readonly #folder: string;
  readonly #running = new Map<string, PodSidecar>();

  private constructor(options: PodSidecarsOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
  }

  static async open(options: PodSidecarsOptions): Promise<PodSidecars> {
    return new PodSidecars(options, await mkdtemp(path.join(tmpdir(), 'weir-pods-')));
  }

  get all(): readonly PodSidecar[] {
    return [...this.#running.values()];
  }

  get ports(): readonly number[] {
    return this.all.map(({ process }) => process.port);
  }

  /** Waits until so many pods run, starts what is missing and ends whose pod has gone. */
  async follow(count: number): Promise<readonly PodSidecar[]> {
    let pods: readonly unknown[] = [];
    await eventually(
      `${count} pods of ${this.#options.labelSelector} run`,
      async () => {
        pods = await this.pods();
        return pods.length === count && pods.every(isRunning);
      },
      PODS_TIMEOUT_MS,
    );
    const uids = new Set(pods.map((pod) => textAt(pod, 'metadata', 'uid')));
    for (const [uid, sidecar] of this.#running) {
      if (uids.has(uid)) continue;
      this.#running.delete(uid);
      await sidecar[Symbol.asyncDispose]();
    }
    // One after the other: several starts at once on two cores only take longer each.
    for (const pod of pods) await this.#startFor(pod);
    return this.all;
  }

  /** Waits for the first pod to run, and starts nothing. */
  async firstRunning(): Promise<unknown> {
    let found: unknown;
    await eventually(`a pod of ${this.#options.labelSelector} runs`, async () => {
      found = (await this.pods()).find(isRunning);
      return found !== undefined;
    });
    return found;
  }

  /** All pods, also those that are about to end. */
  async pods(): Promise<readonly unknown[]> {
    const { api, namespace, labelSelector } = this.#options;
    const query = `labelSelector=${encodeURIComponent(labelSelector)}`;
    const { body } = await api.request('GET', `/api/v1/namespaces/${namespace}/pods?${query}`);
    return listAt(body, 'items');
  }

  /** A token as the kubelet gets it for the pod's projected volume. */
  async tokenFor(pod: unknown): Promise<string> {
    const { api, namespace } = this.#options;
    const account = textAt(pod, 'spec', 'serviceAccountName');
    const { status, body } = await api.request(
      'POST',
      `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      {
        body: {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: {
            audiences: [audienceOf(pod)],
            expirationSeconds: TOKEN_SECONDS,
            boundObjectRef: {
              ...{ apiVersion: 'v1', kind: 'Pod' },
              name: textAt(pod, 'metadata', 'name'),
              uid: textAt(pod, 'metadata', 'uid'),
            },
          },
        },
      },
    );
    if (status !== 201) throw new Error(`no token: ${textAt(body, 'message')}`);
    return textAt(body, 'status', 'token');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map((one) => one[Symbol.asyncDispose]()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #startFor(pod: unknown): Promise<void> {
    const uid = textAt(pod, 'metadata', 'uid');
    if (this.#running.has(uid)) return;
    const sidecar = new PodSidecar(pod, path.join(this.#folder, uid), this.#options.upstreamPort);
    this.#running.set(uid, sidecar);
    await sidecar.prepare(await this.tokenFor(pod));
    await sidecar.start();
  }
}

/** The container of ours, wherever the server's version has it. */
export function sidecarOf(pod: unknown): unknown {
  const containers = [
    ...listAt(pod, 'spec', 'initContainers'),
    ...listAt(pod, 'spec', 'containers'),
  ];
  const found = containers.find((one) => textAt(one, 'name') === inPod.sidecar);
  if (found === undefined) {
    throw new Error(`pod ${textAt(pod, 'metadata', 'name')} has no sidecar`);
  }
  return found;
}

function isRunning(pod: unknown): boolean {
  return (
    textAt(pod, 'status', 'phase') === 'Running' &&
    valueAt(pod, 'metadata', 'deletionTimestamp') === undefined
  );
}

/** Values as they are written, and fields of the pod as the kubelet fills them in. */
function environmentOf(pod: unknown, container: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    listAt(container, 'env').map((one) => {
      const field = textAt(one, 'valueFrom', 'fieldRef', 'fieldPath');
      const value = field === '' ? textAt(one, 'value') : textAt(pod, ...field.split('.'));
      return [textAt(one, 'name'), value];
    }),
  );
}

/** What the projected volume asks for. */
function audienceOf(pod: unknown): string {
  const audiences = listAt(pod, 'spec', 'volumes')
    .flatMap((volume) => listAt(volume, 'projected', 'sources'))
    .map((source) => textAt(source, 'serviceAccountToken', 'audience'))
    .filter((audience) => audience === STREAM_AUDIENCE);
  const [audience] = audiences;
  if (audience === undefined) throw new Error('the pod has no token for the operator');
  return audience;
}
