import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { makeCertificates } from '../support/certificates.ts';
import { closed, listenOnLoopback } from '../support/loopback.ts';
import { eventually } from '../support/redis.ts';
import { ApiClient } from './api-client.ts';
import { openControlPlane, type ControlPlane } from './control-plane.ts';
import { FakeKubelet, markPodRunning } from './fake-kubelet.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import { whyNoFaults } from './test-cluster.ts';

const PODS = '/api/v1/namespaces/default/pods';

function podNamed(name: string, more: object = {}): object {
  const spec = { containers: [{ name: 'app', image: 'app' }], ...more };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: name } }, spec };
}

describe('a control plane of our own', { skip: whyNoFaults() }, () => {
  let cluster: ControlPlane;
  before(async () => {
    cluster = await openControlPlane({ audit: true });
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
  });

  it('answers kubectl and takes its input', async () => {
    const input = JSON.stringify(podNamed('from-kubectl'));

    const created = await cluster.kubectl(['create', '-f', '-'], { input });
    const refused = await cluster.kubectl(['get', 'pod', 'nobody']);

    assert.deepEqual([created.code, created.stdout], [0, 'pod/from-kubectl created\n']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /NotFound/);
  });

  it('lets users do what RBAC gives them, and no more', async () => {
    const user = { name: 'jane', groups: ['readers', 'writers'] };
    using jane = await ApiClient.open(await cluster.kubeConfigFor(user));
    const bind = ['create', 'clusterrolebinding', 'readers', '--clusterrole=view'];
    await cluster.kubectl([...bind, '--group=readers']);

    await eventually('the binding is seen', async () => {
      return (await jane.request('GET', PODS)).status === 200;
    });

    assert.equal((await jane.request('POST', PODS, { body: podNamed('janes') })).status, 403);
  });

  it('lets a service account show its token', async () => {
    const who = { namespace: 'default', serviceAccount: 'default' };
    using api = await ApiClient.open(await cluster.kubeConfigFor(who));

    const { status, body } = await api.request('GET', PODS);

    assert.equal(status, 403);
    assert.match(textAt(body, 'message'), /system:serviceaccount:default:default/);
  });

  it('enforces Pod Security', async () => {
    await cluster.kubectl(['create', 'namespace', 'strict']);
    const level = 'pod-security.kubernetes.io/enforce=restricted';
    await cluster.kubectl(['label', 'namespace', 'strict', level]);

    const { status, body } = await cluster.api.request('POST', '/api/v1/namespaces/strict/pods', {
      body: podNamed('lax'),
    });

    assert.equal(status, 403);
    assert.match(textAt(body, 'message'), /violates PodSecurity "restricted/);
  });

  it('calls a webhook on loopback', async () => {
    await using webhook = await openWebhook();
    const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
    await cluster.api.request('POST', configurations, { body: webhook.configuration });

    await eventually('a pod came back with the label', async () => {
      const { body } = await cluster.api.request('POST', `${PODS}?dryRun=All`, {
        body: podNamed('labelled'),
      });
      return textAt(body, 'metadata', 'labels', 'seen') === 'true';
    });

    await cluster.api.request('DELETE', `${configurations}/labelling`);
  });

  it('lets a Deployment roll out and a Service have endpoints where its kubelet is played', async () => {
    await using stack = new AsyncDisposableStack();
    stack.use(new FakeKubelet(cluster.api));
    await cluster.kubectl(['create', 'deployment', 'web', '--image=app', '--replicas=3']);
    await cluster.kubectl(['expose', 'deployment', 'web', '--port=80']);

    const rolled = await cluster.kubectl(['rollout', 'status', 'deploy/web', '--timeout=60s']);

    assert.equal(rolled.code, 0, rolled.stderr);
    const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
    await eventually('three endpoints', async () => {
      const { body } = await cluster.api.request('GET', slices);
      const slice = listAt(body, 'items').find((one) =>
        textAt(one, 'metadata', 'name').startsWith('web-'),
      );
      const addresses = listAt(slice, 'endpoints').flatMap((one) => listAt(one, 'addresses'));
      return new Set(addresses).size === 3;
    });
  });

  it('shows a native sidecar running and other init containers completed', async () => {
    const initContainers = [
      { name: 'redirect', image: 'init' },
      { name: 'weir', image: 'sidecar', restartPolicy: 'Always' },
    ];
    await cluster.api.request('POST', PODS, { body: podNamed('meshed', { initContainers }) });

    await markPodRunning(
      cluster.api,
      { namespace: 'default', name: 'meshed' },
      { ip: '198.19.255.1' },
    );

    const { body } = await cluster.api.request('GET', `${PODS}/meshed`);
    assert.equal(valueAt(body, 'status', 'podIP'), '198.19.255.1');
    const states = listAt(body, 'status', 'initContainerStatuses').map((one) => [
      valueAt(one, 'ready'),
      valueAt(one, 'state', 'terminated', 'exitCode'),
      typeof valueAt(one, 'state', 'running', 'startedAt'),
    ]);
    assert.deepEqual(states, [
      [true, 0, 'undefined'],
      [true, undefined, 'string'],
    ]);
  });

  it('keeps its objects and its address while the API server is away, and forgets old revisions', async () => {
    const { body: before } = await cluster.api.request('GET', PODS);
    const version = textAt(before, 'metadata', 'resourceVersion');
    await cluster.api.request('POST', PODS, { body: podNamed('later') });

    await cluster.compactEtcd();
    await cluster.stopApiServer('SIGKILL');
    await assert.rejects(cluster.api.request('GET', PODS));
    await cluster.startApiServer();

    assert.equal((await cluster.api.request('GET', `${PODS}/later`)).status, 200);
    const watch = `${PODS}?watch=1&timeoutSeconds=1&resourceVersion=${version}`;
    const { status, body } = await cluster.api.request('GET', watch);
    assert.deepEqual([status, valueAt(body, 'type')], [200, 'ERROR']);
    assert.equal(valueAt(body, 'object', 'code'), 410);
  });

  it('writes down who asked for what', async () => {
    const log = await readFile(cluster.auditLogPath ?? '', 'utf8');
    const lines = log.trimEnd().split('\n');

    const events = lines.map((line): unknown => JSON.parse(line));

    const janes = events.filter((event) => textAt(event, 'user', 'username') === 'jane');
    assert.ok(janes.some((event) => textAt(event, 'verb') === 'create'));
  });

  it('leaves neither process nor folder when the process that opened it is killed', async () => {
    const source = `import { openControlPlane } from ${JSON.stringify(import.meta.resolve('./control-plane.ts'))};
      const cluster = await openControlPlane();
      console.log(cluster.kubeconfig);`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [kubeconfig] = (await once(createInterface(owner.stdout), 'line')) as [string];
    const folder = path.dirname(path.dirname(kubeconfig));
    assert.equal(processesOf(folder).length, 3);

    owner.kill('SIGKILL');

    await eventually('all are gone', () => {
      return processesOf(folder).length === 0 && !existsSync(folder);
    });
  });
});

/** Ids of the control plane's processes whose flags name the folder. */
function processesOf(folder: string): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    const command = readFlags(pid);
    return command.includes(folder) && command.includes('control-plane');
  });
}

function readFlags(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    // It ended meanwhile.
    return '';
  }
}

interface Webhook extends AsyncDisposable {
  readonly configuration: object;
}

/** Labels every pod it is shown `seen=true`. */
async function openWebhook(): Promise<Webhook> {
  await using stack = new AsyncDisposableStack();
  const certificates = stack.use(await makeCertificates());
  const read = (file: string): Promise<string> =>
    readFile(path.join(certificates.folder, file), 'utf8');
  const tls = { cert: await read('server.crt'), key: await read('server.key') };
  const server = createServer(tls, (request, response) => {
    void json(request).then((review) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(labelling(review)));
    });
  });
  const port = await listenOnLoopback(server);
  stack.defer(async () => {
    server.closeAllConnections();
    await closed(server);
  });
  const owned = stack.move();
  return {
    configuration: webhookConfiguration(`https://127.0.0.1:${port}/`, certificates.ca),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function labelling(review: unknown): object {
  const patch = [{ op: 'add', path: '/metadata/labels/seen', value: 'true' }];
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid: textAt(review, 'request', 'uid'),
      allowed: true,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    },
  };
}

function webhookConfiguration(url: string, ca: string): object {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'labelling' },
    webhooks: [
      {
        name: 'labelling.weir.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url, caBundle: Buffer.from(ca).toString('base64') },
        rules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
    ],
  };
}
