// A namespace with an app that asked for sidecars, an operator and a store beside a control plane of the test's own:
// the whole product, as far as it goes without a node.
import assert from 'node:assert/strict';
import { eventually, openRedisServer, type RedisServer } from '../support/redis.ts';
import { AnsweringUpstream } from '../support/upstream.ts';
import { openControlPlane, type ControlPlane } from './control-plane.ts';
import { installCrds } from './crd-installation.ts';
import { FakeKubelet } from './fake-kubelet.ts';
import type { JsonAnswer } from './json-exchange.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import {
  applyAll,
  installOperatorAccess,
  OPERATOR_NAMESPACE,
  type OperatorProcess,
} from './operator-process.ts';
import { OperatorReplicas } from './operator-replicas.ts';
import { PodSidecars } from './pod-sidecars.ts';

export const NAMESPACE = 'shop';
export const STORE_SECRET = 'weir-store';
const POLICIES = `/apis/weir.dev/v1alpha1/namespaces/${NAMESPACE}/ratelimitpolicies`;
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Status is gathered for 5 s, and everything is slow on two busy cores. */
const STATUS_TIMEOUT_MS = 60_000;
/** A decision that a busy machine delays is not the subject. */
const DEADLINE = '2s';

export interface EnforcedAppOptions {
  /** False: the Secret that names the store is not there yet. */
  readonly hasStore?: boolean;
  /** Of the operator; one unless given. */
  readonly replicas?: number;
}

export interface Condition {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface Parts {
  readonly cluster: ControlPlane;
  readonly redis: RedisServer;
  readonly upstream: AnsweringUpstream;
  readonly sidecars: PodSidecars;
  readonly operators: OperatorReplicas;
}

export class EnforcedApp implements AsyncDisposable {
  readonly cluster: ControlPlane;
  readonly redis: RedisServer;
  readonly upstream: AnsweringUpstream;
  readonly sidecars: PodSidecars;
  readonly operators: OperatorReplicas;
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: Parts, stack: AsyncDisposableStack) {
    this.cluster = parts.cluster;
    this.redis = parts.redis;
    this.upstream = parts.upstream;
    this.sidecars = parts.sidecars;
    this.operators = parts.operators;
    this.#stack = stack;
  }

  /** With an operator that is ready, without any pod. `sidecars` are those of a Deployment named api. */
  static async open(options: EnforcedAppOptions = {}): Promise<EnforcedApp> {
    await using stack = new AsyncDisposableStack();
    const redis = stack.use(await openRedisServer());
    const upstream = stack.use(await AnsweringUpstream.open(ANSWER));
    const cluster = stack.use(await openControlPlane());
    const flags = ['--store-secret', STORE_SECRET, '--deadline', DEADLINE];
    await installCrds(cluster.api);
    await installOperatorAccess(cluster, flags);
    await applyAll(cluster, [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    ]);
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`;
    await eventually('the service account of pods', async () => {
      return (await cluster.api.request('GET', account)).status === 200;
    });
    stack.use(new FakeKubelet(cluster.api));
    const sidecars = stack.use(
      await PodSidecars.open({
        ...{ api: cluster.api, namespace: NAMESPACE, labelSelector: 'app=api' },
        upstreamPort: upstream.port,
      }),
    );
    if (options.hasStore !== false) await nameStore(cluster, redis.url);
    const operators = stack.use(
      await OperatorReplicas.open({ cluster, count: options.replicas ?? 1, flags }),
    );
    return new EnforcedApp({ cluster, redis, upstream, sidecars, operators }, stack.move());
  }

  /** The first replica, which may not be the leader. */
  get operator(): OperatorProcess {
    return this.operators.first.process;
  }

  nameStore(url: string): Promise<void> {
    return nameStore(this.cluster, url);
  }

  apply(objects: readonly object[]): Promise<void> {
    return applyAll(this.cluster, objects);
  }

  /** For a policy that is too large for the annotation that `kubectl apply` keeps. */
  async applyServerSide(object: object): Promise<void> {
    const { status, body } = await this.tryApply(object);
    assert.ok(status < 300, textAt(body, 'message'));
  }

  /** The API server's answer to a policy; rejects when there is none. */
  tryApply(object: object): Promise<JsonAnswer> {
    return this.#applyPolicy(object, 'fieldManager=weir-test&force=true');
  }

  /** What the API server would make of a policy. */
  dryRun(object: object): Promise<JsonAnswer> {
    return this.#applyPolicy(object, 'fieldManager=weir-test&dryRun=All');
  }

  #applyPolicy(object: object, query: string): Promise<JsonAnswer> {
    const name = textAt(object, 'metadata', 'name');
    return this.cluster.api.request('PATCH', `${POLICIES}/${name}?${query}`, {
      body: object,
      contentType: 'application/apply-patch+yaml',
    });
  }

  /** What kubectl prints; rejects with what it complains of. */
  async kubectl(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.cluster.kubectl(['-n', NAMESPACE, ...args]);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  async policy(name: string): Promise<unknown> {
    return (await this.cluster.api.request('GET', `${POLICIES}/${name}`)).body;
  }

  /** Waits until the conditions of the newest generation read so; a text stands for `Status/Reason`. */
  async untilConditions(name: string, wanted: Readonly<Record<string, string>>): Promise<unknown> {
    let policy: unknown;
    let found: Readonly<Record<string, string>> = {};
    try {
      await eventually(
        `conditions of ${name}`,
        async () => {
          policy = await this.policy(name);
          found = Object.fromEntries(
            [...conditionsOf(policy)].map(([type, one]) => [type, `${one.status}/${one.reason}`]),
          );
          const isNewest =
            valueAt(policy, 'status', 'observedGeneration') ===
            valueAt(policy, 'metadata', 'generation');
          return isNewest && Object.entries(wanted).every(([type, text]) => found[type] === text);
        },
        STATUS_TIMEOUT_MS,
      );
    } catch (error) {
      const says = JSON.stringify({ wanted, status: valueAt(policy, 'status') }, undefined, 2);
      throw new Error(`the conditions of ${name} do not come to be: ${says}`, { cause: error });
    }
    return policy;
  }

  /** Waits until the policy says of its pods, programmed of matched, what is wanted. */
  async untilPods(name: string, summary: string): Promise<void> {
    await eventually(
      `${name} says ${summary}`,
      async () => valueAt(await this.policy(name), 'status', 'pods', 'summary') === summary,
      STATUS_TIMEOUT_MS,
    );
  }

  /** Waits until every sidecar runs the newest generation of the policy. */
  async untilInForce(name: string): Promise<void> {
    const generation = valueAt(await this.policy(name), 'metadata', 'generation');
    await this.untilBundles(
      `generation ${String(generation)} of ${name} is in force`,
      (policies) => policies.get(name) === generation,
    );
  }

  async untilLifted(name: string): Promise<void> {
    await this.untilBundles(`${name} is lifted`, (policies) => !policies.has(name));
  }

  /** Waits until what every sidecar has in force, generations by policy name, is as told. */
  async untilBundles(
    what: string,
    holds: (policies: ReadonlyMap<string, number>) => boolean,
  ): Promise<void> {
    for (const sidecar of this.sidecars.all) {
      await eventually(`${what} on ${sidecar.name}`, async () => {
        const { policies } = await sidecar.process.bundle();
        return holds(new Map(policies.map(({ name, generation }) => [name, generation])));
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Writes the Secret that the operator reads the store's address from. */
async function nameStore(cluster: ControlPlane, url: string): Promise<void> {
  await applyAll(cluster, [
    {
      ...{ apiVersion: 'v1', kind: 'Secret', stringData: { url } },
      metadata: { name: STORE_SECRET, namespace: OPERATOR_NAMESPACE },
    },
  ]);
}

export function conditionsOf(policy: unknown): ReadonlyMap<string, Condition> {
  return new Map(
    listAt(policy, 'status', 'conditions').map((one) => [
      textAt(one, 'type'),
      {
        status: textAt(one, 'status'),
        reason: textAt(one, 'reason'),
        message: textAt(one, 'message'),
      },
    ]),
  );
}

export interface AppOptions {
  readonly replicas: number;
  /** Of the one container; a port named http unless given. */
  readonly ports?: readonly object[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A Deployment that asks for sidecars. */
export function deployment(name: string, options: AppOptions): object {
  const { replicas, ports = [{ name: 'http', containerPort: 8080 }] } = options;
  const labels = { app: name, ...options.labels };
  const annotations = { 'weir.dev/inject': 'required', ...options.annotations };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: NAMESPACE } },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels, annotations },
        spec: { containers: [{ name: 'app', image: 'registry.test/app:1', ports }] },
      },
    },
  };
}

/** A Service in front of pods of that name. */
export function service(
  name: string,
  app: string,
  { ports, ...spec }: { readonly ports: readonly object[]; readonly clusterIP?: string },
): object {
  return {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: NAMESPACE } },
    spec: { selector: { app }, ports, ...spec },
  };
}

export interface PolicyOptions {
  readonly capacity?: number;
  /** More fields of the spec, or others. */
  readonly spec?: object;
  /** More fields of the one rule. */
  readonly rule?: object;
}

/** A bucket that does not fill while a test runs, for every opted-in pod. */
export function policy(
  name: string,
  { capacity = 3, spec = {}, rule = {} }: PolicyOptions = {},
): object {
  const bucket = { capacity, refill: { tokens: 1, every: '1h' } };
  return {
    ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy' },
    metadata: { name, namespace: NAMESPACE },
    spec: { selector: {}, rules: [{ name: 'all', buckets: [bucket], ...rule }], ...spec },
  };
}
