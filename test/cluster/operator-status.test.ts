// What people are told on a real API server: conditions, columns and Events for everything that keeps a limit from being
// one, and that the last good version stays in force meanwhile.
import assert from 'node:assert/strict';
import process from 'node:process';
import { after, before, describe, it } from 'node:test';
import type { CompiledRule } from '../../contract/bundle.ts';
import type { OperatorFrame, PolicyRefusal } from '../../contract/stream.ts';
import { eventually } from '../support/redis.ts';
import { StreamClient } from '../support/stream-client.ts';
import { conditionsOf, deployment, EnforcedApp, policy, service } from './enforced-app.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import { PodSidecars, sidecarOf } from './pod-sidecars.ts';
import { askInTurn, askSidecar, tallyOf } from './sidecar-requests.ts';
import { whyNoFaults } from './test-cluster.ts';

const PODS = 2;
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ratelimitpolicies.weir.dev';
const NAMED = { name: 'http', port: 80, targetPort: 'http' };

describe('what status and Events say', { skip: whyNoFaults() }, () => {
  let app: EnforcedApp;

  before(async () => {
    app = await EnforcedApp.open();
    await app.apply([
      deployment('api', { replicas: PODS }),
      service('api', 'api', { ports: [NAMED] }),
    ]);
    await app.sidecars.follow(PODS);
  });
  after(async () => {
    if (process.env['WEIR_TEST_LOG']) console.error(app.operator.log.join('\n'));
    await app[Symbol.asyncDispose]();
  });

  async function withObjects(objects: readonly object[], test: () => Promise<void>): Promise<void> {
    await app.apply(objects);
    try {
      await test();
    } finally {
      for (const one of objects) {
        const kind = textAt(one, 'kind');
        await app.kubectl('delete', kind, textAt(one, 'metadata', 'name'));
      }
    }
  }

  /** `Kind/name: note` of every Event of that reason, as `kubectl get events` shows them. */
  async function events(reason: string): Promise<readonly string[]> {
    const shown = await app.kubectl(
      ...['get', 'events', '--field-selector', `reason=${reason}`, '--no-headers'],
      ...['-o', 'custom-columns=K:.involvedObject.kind,N:.involvedObject.name,M:.message'],
    );
    return shown.split('\n').map((line) => line.replace(/^(\S+) +(\S+) +/, '$1/$2: '));
  }

  async function untilEvent(reason: string, ...patterns: readonly RegExp[]): Promise<void> {
    let seen: readonly string[] = [];
    try {
      await eventually(`Events ${reason}`, async () => {
        seen = await events(reason);
        return patterns.every((pattern) => seen.some((line) => pattern.test(line)));
      });
    } catch (error) {
      throw new Error(`no ${patterns.map(String).join(' ')} in ${seen.join('\n')}`, {
        cause: error,
      });
    }
  }

  it('names the Service that goes around, on the policy, the Service and the workload', async () => {
    const numeric = service('numeric', 'api', { ports: [{ port: 80, targetPort: 8080 }] });
    await withObjects([policy('around'), numeric], async () => {
      const found = await app.untilConditions('around', {
        Programmed: 'True/Programmed',
        Enforced: 'False/Bypassable',
      });

      assert.equal(
        conditionsOf(found).get('Enforced')?.message,
        'Service numeric, port 80, reaches the app past the sidecar: in spec.ports[0].targetPort write targetPort: http.',
      );
      assert.equal(valueAt(found, 'status', 'pods', 'bypassable'), PODS);
      const says = 'Service numeric, port 80, reaches .* rollout restart';
      await untilEvent(
        'Bypassable',
        new RegExp(`^Service/numeric: ${says}`),
        new RegExp(`^Deployment/api: ${says}`),
      );
      await app.apply([service('numeric', 'api', { ports: [NAMED] })]);
      await app.untilConditions('around', { Enforced: 'True/Enforced' });
    });
  });

  it('finds every other way around, with what to change', async () => {
    const odd = [{ name: 'http', containerPort: 8080, hostPort: 18_080 }, { containerPort: 9090 }];
    const objects = [
      policy('around-more'),
      service('exposed', 'api', { ports: [{ port: 8080 }] }),
      service('two', 'api', { ports: [NAMED, { name: 'b', port: 81, targetPort: 8080 }] }),
      service('renamed', 'api', { ports: [{ port: 80, targetPort: 'app-http' }] }),
      service('headless', 'api', { ports: [NAMED], clusterIP: 'None' }),
      deployment('odd', { replicas: 1, ports: odd }),
      service('unnamed', 'odd', { ports: [{ port: 80, targetPort: 9090 }] }),
    ];
    await withObjects(objects, async () => {
      await app.untilConditions('around-more', { Enforced: 'False/Bypassable' });

      await untilEvent(
        'Bypassable',
        /^Service\/exposed: .*port 8080.*spec\.ports\[0\]\.targetPort write targetPort: http/,
        /^Service\/two: .*port b,.*spec\.ports\[1\]\.targetPort write targetPort: http/,
        /^Service\/renamed: .*spec\.ports\[0\]\.targetPort write targetPort: http/,
        /^Service\/headless: .*weir\.dev\/mode: redirect/,
        /^Deployment\/odd: host port 18080 reaches .*remove hostPort/,
        /^Service\/unnamed: .*give container port 9090 a name/,
      );
      const found = await app.untilConditions('around-more', { Enforced: 'False/Bypassable' });
      assert.match(conditionsOf(found).get('Enforced')?.message ?? '', /\(and 5 more\)/);
    });
  });

  it('names the pod whose sidecar refuses, and the others run the newest', async () => {
    await app.apply([deployment('old', { replicas: 1 })]);
    await using old = await OldSidecar.open(app, { refusedCapacity: 7 });
    await withObjects([policy('refused', { capacity: 5 })], async () => {
      await app.untilConditions('refused', { Programmed: 'True/Programmed' });

      await app.apply([policy('refused', { capacity: 7 })]);

      const found = await app.untilConditions('refused', { Programmed: 'False/Rejected' });
      const said = conditionsOf(found).get('Programmed')?.message ?? '';
      assert.match(said, new RegExp(`pod ${old.podName} refused .*spec\\.rules\\[0\\]: too new`));
      assert.equal(valueAt(found, 'status', 'pods', 'rejected'), 1);
      assert.equal(valueAt(found, 'status', 'pods', 'programmed'), PODS);
      assert.deepEqual(old.capacities, [5, 7], 'what was refused is not sent again');
      await app.untilInForce('refused');
      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 9)), { 200: 7, 429: 2 });
    });
    await app.kubectl('delete', 'deployment', 'old');
  });

  it('names the pod whose sidecar is too old, and does not send what that would misread', async () => {
    await app.apply([deployment('old', { replicas: 1 })]);
    await using old = await OldSidecar.open(app, { features: ['mode:Enforce', 'failure:Local'] });
    await withObjects([policy('modern', { spec: { scope: 'Pod' } })], async () => {
      const found = await app.untilConditions('modern', { Programmed: 'False/SidecarTooOld' });

      const said = conditionsOf(found).get('Programmed')?.message ?? '';
      assert.match(said, new RegExp(`pod ${old.podName} is too old .*scope:Pod`));
      assert.deepEqual(old.capacities, []);
    });
    await app.kubectl('delete', 'deployment', 'old');
  });

  it('names rules that conflict on both policies', async () => {
    await withObjects([policy('loose', { capacity: 9 }), policy('tight')], async () => {
      for (const name of ['loose', 'tight']) {
        await eventually(`the conflict on ${name}`, async () => {
          const said = conditionsOf(await app.policy(name)).get('Accepted')?.message ?? '';
          return said.includes('shop/loose/all and shop/tight/all');
        });
      }
      await untilEvent(
        'RuleConflict',
        /^RateLimitPolicy\/loose: .*shop\/tight\/all/,
        /^RateLimitPolicy\/tight: .*shop\/loose\/all/,
      );
    });
  });

  it('warns of a limit by client address behind a proxy, as soon as one shows', async () => {
    const keyed = policy('by-address', { capacity: 50, rule: { key: [{ clientIP: {} }] } });
    await withObjects([keyed], async () => {
      await app.untilConditions('by-address', { Enforced: 'True/Enforced' });

      const [port = 0] = app.sidecars.ports;
      await askSidecar(port, { 'X-Forwarded-For': '203.0.113.9' });

      const found = await app.untilConditions('by-address', { Enforced: 'True/ClientIPIsProxy' });
      assert.match(conditionsOf(found).get('Enforced')?.message ?? '', /trustedHops/);
      await untilEvent('ClientIPIsProxy', /^RateLimitPolicy\/by-address: .*trustedProxies/);
    });
  });

  it('refuses what only the operator can see to be wrong, by path, and keeps the last good', async () => {
    await withObjects([policy('good', { capacity: 2 })], async () => {
      await app.untilConditions('good', { Enforced: 'True/Enforced' });
      const wrong = { match: [{ cel: { expression: 'request.methd == "GET"' } }] };

      await app.apply([policy('good', { capacity: 50, rule: wrong })]);

      const found = await app.untilConditions('good', {
        Accepted: 'False/InvalidCEL',
        Programmed: 'False/NotAccepted',
        Enforced: 'False/NotAccepted',
      });
      const said = conditionsOf(found);
      assert.match(
        said.get('Accepted')?.message ?? '',
        /^spec\.rules\[0\]\.match\[0\]\.cel\.expression [^]*\^/,
      );
      assert.match(said.get('Programmed')?.message ?? '', /generation 1 stays in force/);
      assert.deepEqual(tallyOf(await askInTurn(app.sidecars.ports, 5)), { 200: 2, 429: 3 });
      assert.equal(await app.kubectl('get', 'rlpol', 'good', '-o', ENFORCED), 'False');
    });
  });

  it('refuses what compiles to too much, and what an operator of this version does not know', async () => {
    const cel = { expression: `request.path == "${'x'.repeat(1_000)}"` };
    const match = Array.from({ length: 5 }, () => ({ cel }));
    const buckets = [{ capacity: 1, refill: { tokens: 1, every: '1h' } }];
    const rules = Array.from({ length: 64 }, (_, i) => ({ name: `rule-${i}`, match, buckets }));
    await app.applyServerSide(policy('large', { spec: { rules } }));

    const large = await app.untilConditions('large', { Accepted: 'False/TooLarge' });
    await app.kubectl('delete', 'rlpol', 'large');

    assert.match(conditionsOf(large).get('Accepted')?.message ?? '', /^spec compiles to \d+ bytes/);
    await withNewerCrd(async () => {
      await withObjects([policy('newer', { spec: { jitter: '5s' } })], async () => {
        const newer = await app.untilConditions('newer', { Accepted: 'False/UnsupportedField' });
        assert.match(conditionsOf(newer).get('Accepted')?.message ?? '', /^spec\.jitter /);
      });
    });
  });

  /** A CRD of a later version, whose fields the API server keeps. */
  async function withNewerCrd(test: () => Promise<void>): Promise<void> {
    const { body } = await app.cluster.api.request('GET', CRD);
    const versions = listAt(body, 'spec', 'versions');
    assert.equal(versions.length, 1);
    const path =
      '/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-preserve-unknown-fields';
    const patch = async (operation: object): Promise<void> => {
      const { status, body: answer } = await app.cluster.api.request('PATCH', CRD, {
        body: [operation],
        contentType: 'application/json-patch+json',
      });
      assert.equal(status, 200, textAt(answer, 'message'));
    };
    await patch({ op: 'add', path, value: true });
    await eventually('the field is kept', async () => {
      const probe = policy('probe', { spec: { jitter: '5s' } });
      const { body: kept } = await app.dryRun(probe);
      return textAt(kept, 'spec', 'jitter') === '5s';
    });
    try {
      await test();
    } finally {
      await patch({ op: 'remove', path });
    }
  }
});

const ENFORCED = 'jsonpath={.status.conditions[?(@.type=="Enforced")].status}';

interface OldSidecarOptions {
  /** It does not take a policy whose first bucket has this capacity. */
  readonly refusedCapacity?: number;
  /** What it says it understands; everything unless given. */
  readonly features?: readonly string[];
}

/** A sidecar of another version, in the pod of the Deployment `old`: the stream as that one would speak it. */
class OldSidecar implements AsyncDisposable {
  readonly podName: string;
  /** Of the first buckets of what was sent, in order. */
  readonly capacities: number[] = [];
  readonly #client: StreamClient;
  readonly #refusedCapacity: number | undefined;
  readonly #answering: NodeJS.Timeout;
  #answered = 0;

  private constructor(podName: string, client: StreamClient, refusedCapacity?: number) {
    this.podName = podName;
    this.#client = client;
    this.#refusedCapacity = refusedCapacity;
    this.#answering = setInterval(() => {
      this.#answer();
    }, 20);
  }

  static async open(app: EnforcedApp, options: OldSidecarOptions): Promise<OldSidecar> {
    await using pods = await PodSidecars.open({
      ...{ api: app.cluster.api, namespace: 'shop', labelSelector: 'app=old', upstreamPort: 0 },
    });
    const pod = await pods.firstRunning();
    const variables = listAt(sidecarOf(pod), 'env');
    const ca = variables.find((one) => textAt(one, 'name') === 'WEIR_OPERATOR_CA');
    const target = {
      url: app.operator.addresses.stream,
      certificates: { ca: textAt(ca, 'value') },
    };
    const client = new StreamClient(target, { token: await pods.tokenFor(pod) });
    const name = textAt(pod, 'metadata', 'name');
    const { features, refusedCapacity } = options;
    client.send({
      ...{ type: 'hello', protocol: 1 },
      pod: { namespace: 'shop', name, uid: textAt(pod, 'metadata', 'uid') },
      sidecar: { version: '0.0.9', formats: [1], ...(features && { features }) },
      have: { version: '', sources: [], origin: 'none' },
    });
    return new OldSidecar(name, client, refusedCapacity);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#answering);
    this.#client[Symbol.dispose]();
    await Promise.resolve();
  }

  #answer(): void {
    for (const frame of this.#client.frames.slice(this.#answered)) {
      this.#answered += 1;
      this.#answerTo(frame);
    }
  }

  #answerTo(frame: OperatorFrame): void {
    if (frame.type !== 'config' && frame.type !== 'delta') return;
    const { nonce, version } = frame;
    const sent = frame.type === 'config' ? frame.policies : frame.upsert;
    const refusals: PolicyRefusal[] = [];
    for (const { uid, generation, rules } of sent) {
      const capacity = capacityOf(rules);
      this.capacities.push(capacity);
      if (capacity !== this.#refusedCapacity) continue;
      const place = { path: 'spec.rules[0]', message: 'too new' } as const;
      refusals.push({ uid, generation, ...place, code: 'Unsupported' });
    }
    if (refusals.length === 0) this.#client.send({ type: 'ack', nonce, version });
    else this.#client.send({ type: 'nack', nonce, version: 'mine', code: 'Policies', refusals });
  }
}

function capacityOf(rules: readonly CompiledRule[]): number {
  return rules[0]?.tiers[0]?.buckets[0]?.limit.capacity ?? 0;
}
