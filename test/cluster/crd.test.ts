// What the API server makes of the generated CRD, and of documents and examples under it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readDocument, readVerdicts, type Verdict } from '../conformance/verdicts.ts';
import type { Cluster } from './cluster.ts';
import { installCrds } from './crd-installation.ts';
import type { JsonAnswer } from './json-exchange.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import { openCluster } from './test-cluster.ts';

const EXAMPLES = path.join(import.meta.dirname, '..', '..', 'examples');
const examples = readdirSync(EXAMPLES).filter((file) => file.endsWith('.yaml'));
/** Where the API server looks elsewhere: it drops fields it does not know before it misses others. */
const SERVER_PATHS: Readonly<Record<string, string>> = {
  'whole-misspelt-capacity.yaml': 'spec.rules[0].buckets[0].capacity',
  'metadata-missing.yaml': 'metadata.name',
};
/** The namespace that documents and examples name; each run has one of its own in its place. */
const WRITTEN_NAMESPACE = /(\bnamespace"?: *"?)shop\b/g;

describe('the CRD on an API server', () => {
  const namespace = `weir-crd-${randomBytes(4).toString('hex')}`;
  let cluster: Cluster;
  before(async () => {
    cluster = await openCluster();
    await installCrds(cluster.api);
    const { code, stderr } = await cluster.kubectl(['create', 'namespace', namespace]);
    assert.equal(code, 0, stderr);
  });
  after(async () => {
    await cluster.kubectl(['delete', 'namespace', namespace, '--wait=false']);
    await cluster[Symbol.asyncDispose]();
  });

  function moved(text: string): string {
    return text.replaceAll(WRITTEN_NAMESPACE, `$1${namespace}`);
  }

  /** As `kubectl create --dry-run=server --validate=warn`, whose YAML is read as the API server reads its own. */
  async function judge(document: string): Promise<JsonAnswer> {
    const collection = `/apis/weir.dev/v1alpha1/namespaces/${namespace}/ratelimitpolicies`;
    const contentType = 'application/yaml';
    return cluster.api.request('POST', `${collection}?dryRun=All&fieldValidation=Warn`, {
      body: moved(document),
      contentType,
    });
  }

  async function apply(text: string, ...flags: readonly string[]): Promise<string> {
    const args = ['apply', '-n', namespace, ...flags, '-f', '-'];
    const { stdout, stderr } = await cluster.kubectl(args, { input: moved(text) });
    return stdout + stderr;
  }

  describe('judges policy documents as the table says', () => {
    for (const verdict of readVerdicts()) {
      it(`${verdict.file}: ${verdict.server}`, async () => {
        const { status, body } = await judge(readDocument(verdict.file));

        if (verdict.server === 'accept') assert.equal(status, 201, textAt(body, 'message'));
        else assertRefusedAt(verdict, { status, body });
      });
    }
  });

  it('refuses an unknown field when kubectl asks; a key written twice is seen by a file check only', async () => {
    const unknown = await apply(readDocument('whole-unknown-field.yaml'));
    const twice = await apply(readDocument('whole-duplicate-yaml-key.yaml'), '--dry-run=server');

    assert.match(unknown, /strict decoding error: unknown field "spec\.modes"/);
    assert.match(twice, /created \(server dry run\)/);
  });

  for (const file of examples) {
    it(`takes ${file}, and says "unchanged" when it comes again`, async () => {
      const text = readFileSync(path.join(EXAMPLES, file), 'utf8');
      const name = `ratelimitpolicy.weir.dev/${path.basename(file, '.yaml')}`;

      const said = [await apply(text), await apply(text)];

      assert.deepEqual(said, [`${name} created\n`, `${name} unchanged\n`]);
    });
  }

  it('says "unchanged" of a policy that writes every field, when it comes again', async () => {
    const text = readDocument('whole-example-of-everything.yaml');
    await apply(text);

    const said = await apply(text);

    assert.match(said, /unchanged\n$/);
  });

  it('describes every field that it publishes', async () => {
    const { body } = await cluster.api.request('GET', '/openapi/v3/apis/weir.dev/v1alpha1');
    const schema = valueAt(
      body,
      ...['components', 'schemas', 'dev.weir.v1alpha1.RateLimitPolicy', 'properties'],
    );
    const fields = ['spec', 'status'].flatMap((name) => fieldsOf(valueAt(schema, name), name));

    const bare = fields.filter(({ description }) => description === '');

    assert.ok(fields.length > 100, `${fields.length} fields`);
    assert.deepEqual(bare, []);
  });

  it('explains its rules', async () => {
    const { stdout } = await cluster.kubectl(['explain', 'ratelimitpolicy.spec.rules']);

    assert.match(stdout, /^GROUP: +weir\.dev$/m);
    for (const field of ['buckets', 'key', 'match', 'name', 'tiers']) {
      assert.match(stdout, new RegExp(`^ {2}${field}\\t<.+>.*\\n {4}\\S`, 'm'));
    }
    assert.doesNotMatch(stdout, /<no description>/);
  });

  it('shows mode, enforcement, pods and age of a policy; rules and reason when asked for more', async () => {
    await apply(policy('shown', [rule('first', 10)]));
    await writeStatus(cluster, namespace, 'shown');
    const get = ['get', 'rlpol', 'shown', '-n', namespace];

    const { stdout } = await cluster.kubectl(get);
    const { stdout: wide } = await cluster.kubectl([...get, '-o', 'wide']);

    const [header, row] = cells(stdout);
    assert.deepEqual(header, ['NAME', 'MODE', 'ENFORCED', 'PODS', 'AGE']);
    assert.deepEqual(row?.slice(0, 4), ['shown', 'Enforce', 'False', '2/3']);
    const [wideHeader, wideRow] = cells(wide);
    assert.deepEqual(wideHeader, ['NAME', 'MODE', 'ENFORCED', 'PODS', 'AGE', 'RULES', 'REASON']);
    assert.deepEqual(wideRow?.slice(5), ['1', 'NotInjected']);
  });

  it('lets two appliers own a rule each, and names the conflict where they want the same one', async () => {
    const flags = (manager: string): string[] => ['--server-side', `--field-manager=${manager}`];

    await apply(policy('shared', [rule('first', 10)]), ...flags('one'));
    const second = await apply(policy('shared', [rule('second', 20)]), ...flags('two'));
    const again = await apply(policy('shared', [rule('first', 30)]), ...flags('one'));
    const conflict = await apply(policy('shared', [rule('first', 40)]), ...flags('two'));

    assert.match(second, /serverside-applied/);
    assert.match(again, /serverside-applied/);
    assert.match(conflict, /conflict with "one": \.spec\.rules\[name="first"\]\.buckets/);
    const get = ['get', 'rlpol', 'shared', '-n', namespace, '-o', 'json'];
    const stored: unknown = JSON.parse((await cluster.kubectl(get)).stdout);
    const capacities = listAt(stored, 'spec', 'rules').map((one) => [
      textAt(one, 'name'),
      valueAt(one, 'buckets', 0, 'capacity'),
    ]);
    assert.deepEqual(capacities, [
      ['first', 30],
      ['second', 20],
    ]);
  });
});

/** Refused for the reason the table gives: at its path, or at the list or object that holds it. */
function assertRefusedAt(verdict: Verdict, { status, body }: JsonAnswer): void {
  const message = textAt(body, 'message');
  assert.ok(status === 422 || status === 400, `${status}: ${message}`);
  const wanted = SERVER_PATHS[verdict.file] ?? verdict.path;
  const fields = listAt(body, 'details', 'causes').map((cause) => textAt(cause, 'field'));
  assert.ok(
    fields.some((field) => isSameOrHolds(field, wanted)),
    `wanted ${wanted}, found ${fields.join(', ')}: ${message}`,
  );
}

function isSameOrHolds(field: string, wanted: string): boolean {
  if (!wanted.startsWith(field) || field === '') return false;
  return field.length === wanted.length || /^[.[]/.test(wanted.slice(field.length));
}

interface Field {
  readonly path: string;
  readonly description: string;
}

/** Every property below a published schema. Items and values have no name, and kubectl shows nothing of them. */
function fieldsOf(schema: unknown, at: string): Field[] {
  const own = { path: at, description: textAt(schema, 'description') };
  return [own, ...propertiesOf(schema, at)];
}

function propertiesOf(schema: unknown, at: string): Field[] {
  const properties = valueAt(schema, 'properties');
  const named = typeof properties === 'object' && properties !== null ? properties : {};
  const nested = [valueAt(schema, 'items'), valueAt(schema, 'additionalProperties')];
  return [
    ...Object.entries(named).flatMap(([name, child]) => fieldsOf(child, `${at}.${name}`)),
    ...nested.filter((child) => child !== undefined).flatMap((child) => propertiesOf(child, at)),
  ];
}

function cells(table: string): (readonly string[])[] {
  return table
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
}

function rule(name: string, capacity: number): object {
  return { name, buckets: [{ name: 'main', capacity, refill: { tokens: 1, every: '1s' } }] };
}

function policy(name: string, rules: readonly object[]): string {
  return JSON.stringify({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name },
    spec: { selector: { matchLabels: { app: 'api' } }, rules },
  });
}

async function writeStatus(cluster: Cluster, namespace: string, name: string): Promise<void> {
  const condition = {
    type: 'Enforced',
    status: 'False',
    reason: 'NotInjected',
    message: 'One pod has no sidecar.',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const { status, body } = await cluster.api.request(
    'PATCH',
    `/apis/weir.dev/v1alpha1/namespaces/${namespace}/ratelimitpolicies/${name}/status`,
    {
      body: { status: { conditions: [condition], pods: { summary: '2/3' }, rules: 1 } },
      contentType: 'application/merge-patch+json',
    },
  );
  assert.equal(status, 200, textAt(body, 'message'));
}
