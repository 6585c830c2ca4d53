// `weir operator` as a pod would run it, beside a stand-in of an API server that fails on command. The whole way on a
// real API server is in test/cluster.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { STREAM_AUDIENCE } from '../../contract/names.ts';
import type { Pod } from '../../operator/injection/pod.ts';
import { encodeReports } from '../../operator/reports/report-codec.ts';
import { MUTATE_PATH } from '../../operator/webhook/server.ts';
import {
  type ClusterStandIn,
  type Fault,
  isJson,
  type Json,
  type SeenCall,
} from '../support/cluster-stand-in.ts';
import { OPERATOR_NAMESPACE, OperatorRun } from '../support/operator-run.ts';
import { simplePod } from '../support/pods.ts';
import { eventually } from '../support/redis.ts';
import { StreamClient } from '../support/stream-client.ts';
import { podObject, policyObject } from '../support/world-objects.ts';
import { runWeir } from '../support/sidecar.ts';

const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/weir-inject';
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/weir-operator`;
const POLICIES = '/apis/weir.dev/v1alpha1/namespaces/shop/ratelimitpolicies';
const EVENTS = '/apis/events.k8s.io/v1/events';
const CONFIG_MAPS = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/configmaps`;

/** As a chart installs it: nobody's CA in it yet. */
function webhookList(): Json {
  const clientConfig = { url: 'https://127.0.0.1:9443/mutate' };
  return { webhooks: [{ name: 'enabled.inject.weir.dev', clientConfig }] };
}

function install(cluster: ClusterStandIn): void {
  cluster.put(WEBHOOKS, webhookList());
}

/** A field of an object whose shape the stand-in does not know. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const name of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Reflect.get(here, name);
  }
  return here;
}

function caOf(cluster: ClusterStandIn): string {
  const bundle = at(cluster.get(WEBHOOKS), 'webhooks', 0, 'clientConfig', 'caBundle');
  return typeof bundle === 'string' ? Buffer.from(bundle, 'base64').toString('utf8') : '';
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** What the API server does: a POST over TLS that trusts the CA of the configuration. */
async function postReview(
  operator: OperatorRun,
  body: string,
  contentType: string,
): Promise<Answer> {
  const { webhook } = await operator.addresses();
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = { 'content-type': contentType };
  const ca = caOf(operator.cluster);
  const sent = request(
    `${webhook}${MUTATE_PATH}`,
    { method: 'POST', ca, headers, agent: false },
    (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (text += part));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text });
      });
    },
  );
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

function review(object: Pod = simplePod()): string {
  const kind = { group: '', version: 'v1', kind: 'Pod' };
  const asked = { uid: 'u1', kind, namespace: 'shop', operation: 'CREATE', object };
  const apiVersion = 'admission.k8s.io/v1';
  return JSON.stringify({ apiVersion, kind: 'AdmissionReview', request: asked });
}

/** A sidecar of a pod that the cluster has, let in and greeted. */
async function connectSidecar(operator: OperatorRun, name: string): Promise<StreamClient> {
  const { cluster } = operator;
  const pod = podObject(name, { uid: name, mode: 'takeover' });
  cluster.put(`/api/v1/namespaces/shop/pods/${name}`, { ...pod });
  const token = cluster.issue({ uid: name, namespace: 'shop', audience: STREAM_AUDIENCE });
  const { stream: url } = await operator.addresses();
  const deadline = performance.now() + 10_000;
  for (;;) {
    const client = new StreamClient({ url, certificates: { ca: caOf(cluster) } }, { token });
    // Until the watch has told of the pod, it is forbidden.
    if ((await client.answered()) === 200 || performance.now() > deadline) {
      client.hello(name);
      await eventually('it has its rules', () => client.frames.length > 0);
      return client;
    }
    client[Symbol.dispose]();
  }
}

function conditionOf(cluster: ClusterStandIn, name: string, type: string): unknown {
  const conditions = at(cluster.get(`${POLICIES}/${name}`), 'status', 'conditions');
  const found: unknown = Array.isArray(conditions)
    ? conditions.find((one) => at(one, 'type') === type)
    : undefined;
  return found === undefined
    ? undefined
    : `${String(at(found, 'status'))}/${String(at(found, 'reason'))}`;
}

function putPolicy(cluster: ClusterStandIn, name: string, spec: object = {}): void {
  cluster.put(`${POLICIES}/${name}`, { ...policyObject(name, spec) });
}

describe('a running operator', () => {
  let operator: OperatorRun;

  before(async () => {
    operator = await OperatorRun.open({ prepare: install, flags: ['--grace', '2s'] });
    await operator.ready();
  });
  after(() => operator[Symbol.asyncDispose]());

  it('writes the status of a policy, and Events about it', async () => {
    const { cluster } = operator;

    putPolicy(cluster, 'lonely', { selector: { matchLabels: { app: 'nobody' } } });
    putPolicy(cluster, 'wrong', { rules: [] });

    await eventually('both have a status', () => {
      const seen = ['lonely', 'wrong'].map((name) => conditionOf(cluster, name, 'Accepted'));
      return seen.join() === 'True/Accepted,False/Invalid';
    });
    assert.equal(conditionOf(cluster, 'lonely', 'Enforced'), 'False/NoMatchingPods');
    await eventually('Events', () => {
      const told = cluster
        .list(EVENTS)
        .map((event) => `${String(at(event, 'regarding', 'name'))} ${String(event['reason'])}`);
      return told.includes('lonely Accepted') && told.includes('wrong Invalid');
    });
    const [event] = cluster.list(EVENTS).filter(({ reason }) => reason === 'Invalid');
    assert.equal(at(event, 'regarding', 'kind'), 'RateLimitPolicy');
    assert.match(String(event?.['note']), /^spec\.rules /);
  });

  it('puts its CA back when somebody wipes it, and touches nothing else', async () => {
    const { cluster } = operator;
    const ca = caOf(cluster);

    cluster.put(WEBHOOKS, { ...webhookList(), somebodys: 'field' });

    await eventually('the CA is back', () => caOf(cluster) === ca);
    assert.match(ca, /^-----BEGIN CERTIFICATE-----/);
    assert.equal(cluster.get(WEBHOOKS)?.['somebodys'], 'field');
  });

  it('answers an admission review over TLS that the CA in the configuration vouches for', async () => {
    const { status, text } = await postReview(operator, review(), 'application/json');

    assert.equal(status, 200);
    const answer: unknown = JSON.parse(text);
    assert.equal(at(answer, 'response', 'allowed'), true);
    const patch = Buffer.from(String(at(answer, 'response', 'patch')), 'base64').toString('utf8');
    assert.match(patch, /weir\.dev~1status/);
    await assert.rejects(fetch(`${(await operator.addresses()).webhook}${MUTATE_PATH}`));
  });

  it('tells the owner of a pod that cannot have a sidecar, in an Event', async () => {
    const { cluster } = operator;
    const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'nightly', uid: 'u' };
    const metadata = { ownerReferences: [{ ...owner, controller: true }] };

    await postReview(
      operator,
      review(simplePod({ spec: { hostNetwork: true }, metadata })),
      'application/json',
    );

    await eventually('the Event', () =>
      cluster
        .list(EVENTS)
        .some((event) => event['reason'] === 'HostNetwork' && event['type'] === 'Warning'),
    );
    const event = cluster.list(EVENTS).find(({ reason }) => reason === 'HostNetwork');
    assert.equal(at(event, 'regarding', 'name'), 'nightly');
  });

  it('counts sidecars that hold their streams elsewhere, by what that replica reports', async () => {
    const { cluster } = operator;
    const labels = { app: 'far' };
    const pod = podObject('far-1', { uid: 'far-1', mode: 'takeover', labels });
    cluster.put('/api/v1/namespaces/shop/pods/far-1', { ...pod });
    putPolicy(cluster, 'far', { selector: { matchLabels: labels } });
    const report = { refusals: [], tooOld: [], store: 'up', clientIpIsProxy: [] } as const;
    const generations = new Map([['uid-far', 1]]);
    const reports = encodeReports(
      new Map([['far-1', { isConnected: true, report: { ...report, generations } }]]),
    );

    cluster.put(`${CONFIG_MAPS}/weir-reports-other`, {
      metadata: { labels: { 'weir.dev/reports': 'true' } },
      binaryData: { reports: reports.toString('base64') },
    });

    await eventually(
      'it is programmed',
      () => conditionOf(cluster, 'far', 'Programmed') === 'True/Programmed',
    );
  });

  it('says what is wrong with a body that is no review', async () => {
    const answers = [
      await postReview(operator, '{', 'application/json'),
      await postReview(operator, '{}', 'application/json'),
      await postReview(operator, review(), 'text/yaml'),
    ];

    assert.deepEqual(
      answers.map(({ status }) => status),
      [400, 400, 415],
    );
    for (const { text } of answers) assert.match(text, /^\{"error":"[^"]{10,}/);
  });

  it("counts what it does under controller-runtime's names", async () => {
    await postReview(operator, review(), 'application/json');

    const metrics = await operator.metrics();

    for (const series of [
      /^controller_runtime_webhook_requests_total\{webhook="\/mutate",code="200"\} [1-9]/m,
      /^controller_runtime_reconcile_total\{controller="ca-bundle",result="requeue_after"\} [1-9]/m,
      /^workqueue_adds_total\{name="ca-bundle"\} [1-9]/m,
      /^leader_election_master_status\{name="weir-operator"\} 1/m,
      /^rest_client_requests_total\{code="200".*\} [1-9]/m,
      /^weir_injection_total\{result="injected".*\} [1-9]/m,
    ]) {
      assert.match(metrics, series);
    }
  });

  it('takes the stream of a sidecar whose token the API server knows, and says what it runs', async () => {
    putPolicy(operator.cluster, 'api');
    using sidecar = await connectSidecar(operator, 'a');
    await eventually('the policy comes', () => {
      const frame = sidecar.frames.findLast(({ type }) => type === 'config' || type === 'delta');
      return JSON.stringify(frame ?? {}).includes('uid-api');
    });
    const last = sidecar.frames.findLast(({ type }) => type === 'config' || type === 'delta');
    assert.ok(last?.type === 'config' || last?.type === 'delta');

    sidecar.send({ type: 'ack', nonce: last.nonce, version: last.version });

    await eventually(
      'it is programmed',
      () => conditionOf(operator.cluster, 'api', 'Programmed') === 'True/Programmed',
    );
    assert.equal(at(operator.cluster.get(`${POLICIES}/api`), 'status', 'pods', 'summary'), '1/1');
  });

  it('lets nobody in whose token the API server does not know', async () => {
    const { stream: url } = await operator.addresses();
    const target = { url, certificates: { ca: caOf(operator.cluster) } };

    using stranger = new StreamClient(target, { token: 'nobodys' });

    assert.equal(await stranger.answered(), 401);
  });
});

describe('a single operator with a store', () => {
  const FLAGS = ['--leader-elect', 'false', '--store-secret', 'weir-store', '--grace', '1s'];
  const SECRET = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/secrets/weir-store`;

  it('needs no Lease, says that the Secret is not there, and gives sidecars what is in it', async () => {
    await using operator = await OperatorRun.open({ prepare: install, flags: FLAGS });
    const { cluster } = operator;
    await operator.ready();
    putPolicy(cluster, 'api');
    using sidecar = await connectSidecar(operator, 'a');
    const seen = (): string => JSON.stringify(sidecar.frames);
    const acknowledge = async (what: string): Promise<void> => {
      await eventually(what, () => seen().includes(what));
      const last = sidecar.frames.findLast(({ type }) => type === 'config' || type === 'delta');
      assert.ok(last?.type === 'config' || last?.type === 'delta');
      sidecar.send({ type: 'ack', nonce: last.nonce, version: last.version });
    };
    await acknowledge('uid-api');
    await eventually(
      'the store is missing',
      () => conditionOf(cluster, 'api', 'Enforced') === 'False/StoreUnavailable',
    );

    const url = Buffer.from('redis://store.test:6379').toString('base64');
    cluster.put(SECRET, { data: { url } });

    await acknowledge('redis://store.test:6379');
    await eventually(
      'it is enforced',
      () => conditionOf(cluster, 'api', 'Enforced') === 'True/Enforced',
    );
    assert.equal(cluster.get(LEASE), undefined);
    assert.deepEqual(cluster.list(CONFIG_MAPS), []);
  });
});

describe('an operator that starts', () => {
  it('says what it still waits for, one thing after another, until it is ready', async () => {
    let isHeld = true;
    await using operator = await OperatorRun.open({
      prepare: (cluster) => {
        cluster.mayReviewTokens = false;
        cluster.fault = ({ path }) => (isHeld && path === '/api/v1/services' ? 500 : undefined);
      },
      flags: ['--grace', '1s'],
    });
    const { cluster } = operator;
    const says = (line: RegExp): Promise<void> =>
      eventually(line.source, async () => line.test(await operator.readiness()), 30_000);

    await says(/^\[-\] caches: services: .*500/m);
    assert.match(
      await operator.readiness(),
      /^\[-\] ca-bundle: there is no MutatingWebhookConfiguration weir-inject$/m,
    );
    await says(/^\[-\] token-reviews: this service account may not create tokenreviews/m);
    cluster.mayReviewTokens = true;
    await says(/^\[\+\] token-reviews: ok$/m);
    install(cluster);
    await says(/^\[-\] ca-bundle: weir-inject does not hold our CA yet$/m);
    isHeld = false;

    await operator.ready();

    assert.match(await operator.readiness(), /^\[\+\] ca-bundle: ok$/m);
    assert.match(await operator.readiness(), /^\[\+\] caches: ok$/m);
  });

  it('waits for an API server that resets, fails and does not know it yet, and says so', async () => {
    const faults: Fault[] = ['reset', 500];
    const ofSecrets: Fault[] = [500, 403];
    await using operator = await OperatorRun.open({
      prepare: (cluster) => {
        install(cluster);
        cluster.fault = ({ path }: SeenCall): Fault | undefined => {
          if (path === '/version') return faults.shift();
          return path.includes('/secrets') ? ofSecrets.shift() : undefined;
        };
      },
      flags: ['--grace', '1s'],
    });

    await operator.ready();

    const warnings = operator.log.map((line): unknown => JSON.parse(line));
    assert.equal(warnings.filter((line) => at(line, 'level') === 'warn').length, 4);
    assert.deepEqual([faults, ofSecrets], [[], []]);
  });

  it('ends at once where the cluster is too old for its policies', async () => {
    await using operator = await OperatorRun.open({
      prepare: (cluster) => {
        cluster.version = { major: '1', minor: '31+' };
      },
    });

    assert.equal(await operator.exit(), 1);

    assert.match(
      operator.log.join('\n'),
      /CLUSTER_TOO_OLD[^]*1\.31\+[^]*Kubernetes 1\.32 or newer/,
    );
  });
});

describe('an operator that ends', () => {
  it('is not ready first, sends its sidecars away, gives the Lease back and takes its reports away', async () => {
    await using operator = await OperatorRun.open({ prepare: install, flags: ['--grace', '12s'] });
    const { cluster } = operator;
    await operator.ready();
    using sidecar = await connectSidecar(operator, 'a');
    await eventually('its reports are there', () => cluster.list(CONFIG_MAPS).length === 1);
    assert.notEqual(at(cluster.get(LEASE), 'spec', 'holderIdentity'), '');

    operator.terminate();

    await eventually('it says so', async () =>
      /^\[-\] serving: stopping$/m.test(await operator.readiness()),
    );
    assert.equal(await sidecar.bye(), 'Shutdown');
    assert.equal(await operator.exit(12_000), 0);
    assert.equal(at(cluster.get(LEASE), 'spec', 'holderIdentity'), '');
    assert.deepEqual(cluster.list(CONFIG_MAPS), []);
  });

  it('with code 1 when another replica took the Lease: two must not write at once', async () => {
    await using operator = await OperatorRun.open({ prepare: install, flags: ['--grace', '1s'] });
    const { cluster } = operator;
    await operator.ready();
    const lease = cluster.get(LEASE) ?? assert.fail('no Lease');
    const spec = isJson(lease['spec']) ? lease['spec'] : {};

    cluster.put(LEASE, { ...lease, spec: { ...spec, holderIdentity: 'another' } });

    assert.equal(await operator.exit(), 1);
    assert.match(operator.log.join('\n'), /LEADERSHIP_LOST/);
    assert.equal(at(cluster.get(LEASE), 'spec', 'holderIdentity'), 'another');
  });

  it('with code 1 when it cannot renew, before anybody else may take over', async () => {
    await using operator = await OperatorRun.open({ prepare: install, flags: ['--grace', '1s'] });
    const { cluster } = operator;
    await operator.ready();

    cluster.fault = ({ method, path }) => (method === 'PUT' && path === LEASE ? 409 : undefined);

    assert.equal(await operator.exit(), 1);
    assert.match(operator.log.join('\n'), /LEADERSHIP_LOST/);
  });

  it('at once while it waits for an API server, with code 0', async () => {
    await using operator = await OperatorRun.open({
      prepare: (cluster) => {
        cluster.fault = () => 503;
      },
    });
    await eventually('it waits', () => operator.log.length > 0, 30_000);

    operator.terminate();

    assert.equal(await operator.exit(), 0);
  });
});

describe('the command line of the operator', () => {
  it('says that it has no cluster where it is no pod and has no kubeconfig', async () => {
    const { code, stderr } = await runWeir(['operator'], { HOME: '/nonexistent', KUBECONFIG: '' });

    assert.equal(code, 1, stderr);
    assert.match(stderr, /KUBE_CONFIG_INVALID[\s\S]*neither KUBECONFIG nor ~\/\.kube\/config/);
  });

  it('is refused with code 2, naming the flag and what would be right', async () => {
    const { code, stderr } = await runWeir(['operator', '--grace', 'soon']);

    assert.equal(code, 2);
    assert.match(stderr, /--grace: got soon; expected a duration/);
  });

  it('prints what it makes of its settings, and asks nobody', async () => {
    const { code, stdout } = await runWeir(['operator', '--print-config', '--mode', 'redirect']);

    assert.equal(code, 0);
    const config: unknown = JSON.parse(stdout);
    assert.equal(at(config, 'mode'), 'redirect');
    assert.equal(at(config, 'namespace'), OPERATOR_NAMESPACE);
  });
});
