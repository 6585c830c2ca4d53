// What the chart takes and what it refuses, and in which words.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { CHART, RELEASE_NAMESPACE, runHelm } from './helm.ts';

interface SchemaNode {
  readonly type?: unknown;
  readonly description?: string;
  readonly default?: unknown;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
}

async function schema(): Promise<SchemaNode> {
  return JSON.parse(await readFile(path.join(CHART, 'values.schema.json'), 'utf8')) as SchemaNode;
}

/** Paths of what holds a default, with it. */
function leavesOf(node: SchemaNode, at: string): readonly (readonly [string, SchemaNode])[] {
  if ('default' in node) return [[at, node]];
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) =>
    leavesOf(child, at === '' ? key : `${at}.${key}`),
  );
}

function valueAt(values: unknown, at: string): unknown {
  return at
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], values);
}

function pathsOf(values: unknown, known: ReadonlySet<string>, at = ''): readonly string[] {
  if (known.has(at) || typeof values !== 'object' || values === null) return [at];
  return Object.entries(values).flatMap(([key, value]) =>
    pathsOf(value, known, at === '' ? key : `${at}.${key}`),
  );
}

const bad: readonly (readonly [set: string, words: RegExp])[] = [
  ['operator.replicas=0', /'\/operator\/replicas': minimum: got 0, want 1/],
  ['operator.replicas=two', /'\/operator\/replicas': got string, want integer/],
  ['operator.replica=2', /'\/operator': additional properties 'replica' not allowed/],
  ['operator.logLevel=loud', /'\/operator\/logLevel': value must be one of 'error', 'warn'/],
  ['operator.grace=1m', /'\/operator\/grace': '1m' does not match pattern/],
  ['operator.image.digest=latest', /'\/operator\/image\/digest': 'latest' does not match/],
  ['operator.ports.admin=70000', /'\/operator\/ports\/admin': maximum/],
  ['sidecar.mode=both', /'\/sidecar\/mode': value must be one of/],
  ['sidecar.drainSeconds=-1', /'\/sidecar\/drainSeconds': minimum/],
  ['sidecar.resources.limits.memory=lots', /'\/sidecar\/resources\/limits\/memory': 'lots'/],
  ['redirectInit.image.pullPolicy=Never', /additional properties 'pullPolicy' not allowed/],
  ['redis.embedded.enable=true', /additional properties 'enable' not allowed/],
  ['webhookConfiguration.timeoutSeconds=31', /'\/webhookConfiguration\/timeoutSeconds': maximum/],
  ['webhookConfiguration.name=', /'\/webhookConfiguration\/name': minLength/],
  ['certificates.mode=letsencrypt', /'\/certificates\/mode': value must be one of 'own'/],
  ['watchNamespaces={Shop}', /'\/watchNamespaces\/0': 'Shop' does not match pattern/],
  ['imagePullSecrets[0].secret=x', /'\/imagePullSecrets\/0': .*'secret'/s],
  ['crds.keep=yes', /'\/crds\/keep': got string, want boolean/],
  ['operator.image.tag=20240101', /'\/operator\/image\/tag': got number, want string/],
  ['global.imageRegistry=https://registry.example', /'\/global\/imageRegistry': .* does not match/],
  ['global.imageRegistry=a b', /'\/global\/imageRegistry': 'a b' does not match/],
  ['operator.listenAddress=null', /'\/operator': missing property 'listenAddress'/],
  ['sidecar.resources.limits.cpu=null', /'\/sidecar\/resources\/limits': missing property 'cpu'/],
  ['operator.extraEnv[0].value=x', /'\/operator\/extraEnv\/0': missing property 'name'/],
  ['operator.podDisruptionBudget.maxUnavailable=0%', /'0%' does not match pattern/],
  ['certificates.certManager.issuerRef.kind=ClusterIssuer', /properties 'name' required/],
  ['surprise=1', /'': additional properties 'surprise' not allowed/],
];

const contradictions: readonly (readonly [set: string, words: RegExp])[] = [
  ['redis.url=redis://r', /redis\.embedded\.enabled and redis\.url name a store each/],
  ['redis.existingSecret=s', /add --set redis\.embedded\.enabled=false/],
  [
    'redis.embedded.enabled=false,redis.url=http://:secret@store',
    /redis\.url is no address of a store/,
  ],
  ['redis.embedded.enabled=false,redis.existingSecret=weir-ca', /which holds the operator's CA/],
  [
    'redis.embedded.enabled=false,redis.existingSecret=weir-store-made-by-chart',
    /the upgrade would delete yours/,
  ],
  ['operator.ports.webhook=8443', /need three numbers/],
  ['operator.terminationGracePeriodSeconds=5', /killed before it has sent its sidecars elsewhere/],
  ['operator.extraEnv[0].name=WEIR_MODE', /names WEIR_MODE, which the chart writes/],
  ['watchNamespaces={weir-system}', /the release's own namespace/],
  ['watchNamespaces={shop},test.namespace=default', /not among watchNamespaces/],
  ['fullnameOverride=1weir', /cannot be the beginning of a Service's name/],
  ['operator.leaderElect=false', /all of them would write at once\. Set operator\.replicas=1/],
  ['certificates.mode=files', /name the Secret .* in certificates\.files\.secretName/],
  ['certificates.mode=cert-manager', /this cluster has no cert-manager\.io\/v1/],
  [
    'webhookConfiguration.entries.enabled=false,webhookConfiguration.entries.required=false,webhookConfiguration.entries.namespace=false',
    /no pod would ever get a sidecar/,
  ],
];

describe('a value of the chart', () => {
  it('is in values.yaml and in the schema, with its kind and a sentence, and nowhere else', async () => {
    const values: unknown = parse(await readFile(path.join(CHART, 'values.yaml'), 'utf8'));
    const leaves = new Map(leavesOf(await schema(), ''));
    for (const [at, leaf] of leaves) {
      assert.deepEqual(valueAt(values, at), leaf.default, at);
      assert('type' in leaf && (leaf.description ?? '') !== '', `${at} has a kind and a sentence`);
    }

    assert.deepEqual(
      pathsOf(values, new Set(leaves.keys())).toSorted(),
      [...leaves.keys()].toSorted(),
    );
  });

  it('has a row in the README of the chart', async () => {
    const page = await readFile(path.join(CHART, 'README.md'), 'utf8');
    const missing = leavesOf(await schema(), '').filter(([at]) => !page.includes(`| \`${at}\``));

    assert.deepEqual(missing, []);
  });

  it('stands in an object that takes no others, but for the globals of other charts', async () => {
    const open: string[] = [];
    const look = (node: SchemaNode, at: string): void => {
      if ('default' in node) return;
      if (node.additionalProperties !== false) open.push(at);
      for (const [key, child] of Object.entries(node.properties ?? {})) look(child, `${at}/${key}`);
    };
    look(await schema(), '');

    assert.deepEqual(open, ['/global']);
  });

  it('is explained without asking anybody on the network', async () => {
    assert.doesNotMatch(JSON.stringify(await schema()), /\$ref/);
  });

  for (const [set, words] of bad) {
    it(`is refused by the schema when it is ${set}`, async () => {
      const { code, stderr } = await refused(set);

      assert.notEqual(code, 0);
      assert.match(stderr, /values don't meet the specifications of the schema/);
      assert.match(stderr, words);
    });
  }

  for (const [set, words] of contradictions) {
    it(`is refused in words when it contradicts another: ${set}`, async () => {
      const { code, stderr } = await refused(set);

      assert.notEqual(code, 0);
      assert.match(stderr, words);
    });
  }
});

function refused(set: string): ReturnType<typeof runHelm> {
  return runHelm(['template', 'weir', CHART, '--namespace', RELEASE_NAMESPACE, '--set', set]);
}
