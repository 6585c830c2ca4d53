import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { runInject, type InjectOptions } from './inject.ts';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function inject(input: string, changes: Partial<InjectOptions> = {}): Promise<Outcome> {
  await using folder = await openFolder({ 'ca.crt': '-----BEGIN CERTIFICATE-----\nTUlJ\n' });
  return await injectWith(path.join(folder.path, 'ca.crt'), input, changes);
}

async function injectWith(
  operatorCa: string,
  input: string,
  changes: Partial<InjectOptions> = {},
): Promise<Outcome> {
  let [out, err] = ['', ''];
  const options: InjectOptions = {
    ...{ filename: ['-'], image: 'weir:1', operator: 'https://weir:8443', operatorCa },
    redirectImage: 'weir-redirect:1',
    ...{ mode: 'auto', serverVersion: '1.36', namespace: 'default', output: 'yaml', ...changes },
  };
  const code = await runInject(options, {
    version: '1.2.3',
    readInput: () => Promise.resolve(input),
    write: (text) => (out += text),
    writeError: (text) => (err += text),
  });
  return { code, out, err };
}

interface Folder extends AsyncDisposable {
  readonly path: string;
}

async function openFolder(files: Readonly<Record<string, string>>): Promise<Folder> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-inject-'));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const template = (inject: string, indent = ''): string =>
  [
    'metadata:',
    '  labels: {app: api}   # found by the Service',
    `  annotations: {weir.dev/inject: ${inject}}`,
    'spec:',
    '  # one container',
    '  containers:',
    '  - name: app',
    '    image: "app:1"',
    '    ports:',
    '    - {name: http, containerPort: 8080}',
  ]
    .map((line) => `${indent}${line}\n`)
    .join('');

const deployment = (inject: string): string =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: api # ours\nspec:\n  template:\n${template(inject, '    ')}`;

function read(text: string): readonly Readonly<Record<string, unknown>>[] {
  const documents = parseAllDocuments(text);
  assert.ok(Array.isArray(documents));
  return documents.map((document) => document.toJS() as Readonly<Record<string, unknown>>);
}

function at(value: unknown, ...way: readonly string[]): unknown {
  return way.reduce<unknown>(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? Reflect.get(inner, name) : undefined,
    value,
  );
}

describe('weir inject', () => {
  it('injects a Deployment, keeps its comments, and says what it did', async () => {
    const { code, out, err } = await inject(deployment('enabled'));

    assert.equal(code, 0);
    assert.match(out, /name: api # ours/);
    assert.match(out, /# found by the Service/);
    assert.match(out, /# one container/);
    assert.match(out, /image: "app:1"/);
    const spec = at(read(out)[0], 'spec', 'template', 'spec');
    assert.equal(at(spec, 'initContainers', '0', 'name'), 'weir');
    assert.equal(at(spec, 'containers', '0', 'ports', '0', 'name'), 'app-http');
    assert.equal(
      err,
      'Deployment/api in default: injected, takeover, native sidecar, ports http (8080 behind 15100)\n',
    );
  });

  it('gives every other byte back as it was', async () => {
    const others = `# head\napiVersion: v1\nkind: ConfigMap\nmetadata: {name:   x}\ndata:\n    a: 'b'\n--- # next\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a}]}}}\n...\n`;

    const { code, out, err } = await inject(others);

    assert.equal(code, 0);
    assert.equal(out, others);
    assert.match(err, /skipped, NotAsked/);
  });

  it('changes one document of several and leaves those around it', async () => {
    const before = '# a policy\nkind: A\na:   1\n';
    const after = '---\nkind:   Z\n# the end\n';

    const { out } = await inject(`${before}---\n${deployment('enabled')}${after}`);

    assert.ok(out.startsWith(before), out.slice(0, 100));
    assert.ok(out.endsWith(after), out.slice(-100));
    assert.deepEqual(
      read(out).map(({ kind }) => kind),
      ['A', 'Deployment', 'Z'],
    );
  });

  it('gives its own output back unchanged', async () => {
    const once = await inject(deployment('enabled'));

    const twice = await inject(once.out);

    assert.equal(twice.out, once.out);
    assert.match(twice.err, /AlreadyInjected/);
  });

  it('finds pods, templates, jobs and lists', async () => {
    const pod = `kind: Pod\n${template('enabled')}`;
    const jobSpec = `      template:\n${template('enabled', '        ')}`;
    const cron = `kind: CronJob\nmetadata: {name: tick}\nspec:\n  jobTemplate:\n    spec:\n${jobSpec}          restartPolicy: Never\n`;
    const item = deployment('enabled').replace(/^/gm, '    ').trimEnd();
    const list = `kind: List\nitems:\n  -\n${item}\n  - kind: StatefulSet\n    metadata: {name: db}\n    spec: {template: {spec: {containers: [{name: a, ports: [{name: http, containerPort: 1}]}]}}}\n`;

    const { code, out, err } = await inject([pod, cron, list].join('---\n'), { all: true });

    assert.equal(code, 0, err);
    const [first, second, third] = read(out);
    assert.equal(at(first, 'spec', 'initContainers', '0', 'name'), 'weir');
    const inCron = [
      'spec',
      'jobTemplate',
      'spec',
      'template',
      'spec',
      'initContainers',
      '0',
      'name',
    ];
    assert.equal(at(second, ...inCron), 'weir');
    for (const index of ['0', '1']) {
      const inItem = ['items', index, 'spec', 'template', 'spec', 'initContainers', '0', 'name'];
      assert.equal(at(third, ...inItem), 'weir');
    }
  });

  it('looks at the Services and the Namespace beside the pods', async () => {
    const service =
      'kind: Service\nmetadata: {name: api}\nspec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}\n';
    const namespace =
      'kind: Namespace\nmetadata: {name: default, labels: {pod-security.kubernetes.io/enforce: restricted}}\n';

    const redirected = await inject(`${deployment('enabled')}---\n${service}`);
    const restricted = await inject(`${deployment('enabled')}---\n${service}---\n${namespace}`);
    const elsewhere = await inject(
      `${deployment('enabled')}---\n${service.replace('{name: api}', '{name: api, namespace: other}')}`,
    );

    assert.match(redirected.err, /injected, redirect/);
    assert.match(restricted.err, /injected, takeover.*\n {2}Bypassable: Service api /);
    assert.match(elsewhere.err, /injected, takeover/);
  });

  it('redirects no pod without an image that writes the rules', async () => {
    const service =
      'kind: Service\nmetadata: {name: api}\nspec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}\n';
    const manifest = `${deployment('enabled')}---\n${service}`;
    const without = { redirectImage: undefined };

    const chosen = await inject(manifest, without);
    const told = await inject(manifest, { ...without, mode: 'redirect' });

    assert.match(chosen.err, /injected, takeover.*\n {2}Bypassable: Service api /);
    assert.match(told.err, /not injected, NoRedirectImage: .*--redirect-image/);
    assert.equal(told.code, 1);
  });

  it('ends with 1 when a pod that asked cannot be injected, and prints nothing that requires it', async () => {
    const impossible = (inject: string): string => `${deployment(inject)}      hostNetwork: true\n`;

    const asked = await inject(impossible('enabled'));
    const required = await inject(impossible('required'));

    assert.equal(asked.code, 1);
    assert.equal(asked.out, impossible('enabled'));
    assert.match(asked.err, /not injected, HostNetwork/);
    assert.equal(required.code, 1);
    assert.equal(required.out, '');
  });

  it('keeps JSON JSON, and gives one List when asked for it', async () => {
    const json = JSON.stringify({
      kind: 'Pod',
      metadata: { annotations: { 'weir.dev/inject': 'enabled' } },
      spec: { containers: [{ name: 'app', ports: [{ containerPort: 80, name: 'http' }] }] },
    });

    const same = await inject(json);
    const list = await inject(deployment('enabled'), { output: 'json' });

    assert.equal(at(JSON.parse(same.out), 'spec', 'initContainers', '0', 'name'), 'weir');
    assert.equal(at(JSON.parse(list.out), 'items', '0', 'kind'), 'Deployment');
  });

  it('does not change what an anchor names elsewhere', async () => {
    const anchored = `kind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    metadata: {annotations: {weir.dev/inject: enabled}}\n    spec: &spec\n      containers: [{name: app, ports: [{name: http, containerPort: 80}]}]\nbackup: *spec\n`;

    const { out } = await inject(anchored);

    const [document] = read(out);
    assert.equal(at(document, 'spec', 'template', 'spec', 'initContainers', '0', 'name'), 'weir');
    assert.equal(at(document, 'backup', 'initContainers'), undefined);
  });

  it('prints nothing when a text cannot be read, and says where and what would be right', async () => {
    const { code, out, err } = await inject('a: [1\nb: 2\n');

    assert.equal(code, 1);
    assert.equal(out, '');
    assert.equal(
      err,
      `weir: standard input:2:1: Flow sequence in block collection must be sufficiently indented and end with a ]
  check quotes, brackets and indentation
  2 | b: 2
    | ^
`,
    );
  });

  it('says the same way of every file that is not in order, all at once', async () => {
    await using folder = await openFolder({ 'broken.yaml': '- a\nb', 'fine.yaml': 'a: 1' });
    await mkdir(path.join(folder.path, 'empty'));
    await mkdir(path.join(folder.path, 'odd.yaml'));
    const filename = ['empty', 'none.yaml'].map((name) => path.join(folder.path, name));

    const { code, out, err } = await inject('', { filename: [folder.path, ...filename] });

    assert.equal(code, 1);
    assert.equal(out, '');
    const headings = err.split('\n').filter((line) => line.startsWith('weir: '));
    const told = headings.map((line) => line.replaceAll(folder.path, ''));
    assert.match(told[0] ?? '', /^weir: \/broken\.yaml:2:1: \S/);
    assert.match(told[1] ?? '', /^weir: \/odd\.yaml: cannot be read: EISDIR/);
    assert.equal(told[2], 'weir: /empty: is a folder that holds no manifest');
    assert.match(told[3] ?? '', /^weir: \/none\.yaml: cannot be read: ENOENT/);
    assert.equal(told.length, 4);
    assert.doesNotMatch(err, /\n\n/);
  });

  it('refuses aliases that lead nowhere, in a circle, or without end', async () => {
    const ten = (name: string): string => `[${Array(10).fill(name).join(', ')}]`;
    const wide = `a: &a ${ten('x')}\nb: &b ${ten('*a')}\nc: &c ${ten('*b')}\nd: ${ten('*c')}\n`;

    for (const text of ['a: *x\n', 'a: &x [*x]\n', wide]) {
      const { code, err } = await inject(`kind: A\n---\n${text}`);
      assert.equal(code, 1);
      assert.match(err, /^weir: standard input:\d:\d: \S.*\n {2}define an anchor before its alias/);
    }
  });

  it('says of an annotation that is no string to put it in quotes', async () => {
    const { code, err } = await inject(
      deployment('enabled').replace('enabled}', 'enabled, weir.dev/workers: 1}'),
    );

    assert.equal(code, 1);
    assert.equal(
      err,
      'Deployment/api in default: not injected, Unreadable: metadata.annotations[weir.dev/workers]: got 1; expected a string: put it in quotes, "1"\n',
    );
  });

  it('reads folders, and refuses flags that cannot be', async () => {
    await using folder = await openFolder({
      'a.yaml': deployment('enabled'),
      'b.json': '{"kind": "ConfigMap"}',
      'ca.crt': '-----BEGIN CERTIFICATE-----\n',
      'no.crt': 'no\n',
    });
    const ca = path.join(folder.path, 'ca.crt');

    const { code, out } = await injectWith(ca, '', { filename: [folder.path] });

    assert.equal(code, 0);
    assert.deepEqual(
      read(out).map(({ kind }) => kind),
      ['Deployment', 'ConfigMap'],
    );
    const wrong: readonly Partial<InjectOptions>[] = [
      { serverVersion: '2.0' },
      { operator: 'http://weir:8443' },
      { operatorCa: path.join(folder.path, 'none') },
      { operatorCa: path.join(folder.path, 'no.crt') },
      { image: '' },
      { image: 'a b' },
      { redirectImage: `weir:${'1'.repeat(255)}` },
    ];
    for (const changes of wrong) {
      await assert.rejects(injectWith(ca, '', changes), { code: 'CONFIG_INVALID' });
    }
  });
});
