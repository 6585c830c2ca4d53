import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCheck } from './check.ts';
import type { CheckOptions } from './check.ts';

interface Folder extends AsyncDisposable {
  readonly path: string;
  /** Writes a file and gives its path. */
  readonly file: (name: string, text: string) => Promise<string>;
}

async function openFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'weir-check-'));
  return {
    path,
    file: async (name, text) => {
      const file = join(path, name);
      await writeFile(file, text);
      return file;
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function check(files: string[], options: Partial<CheckOptions> = {}): Promise<Outcome> {
  let out = '';
  let err = '';
  const code = await runCheck(files, {
    output: 'text',
    colour: false,
    write: (text) => {
      out += text;
    },
    writeError: (text) => {
      err += text;
    },
    ...options,
  });
  return { code, out, err };
}

function document(name: string, rule = 'name: all'): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: ${name}}
spec:
  selector: {}
  rules:
  - ${rule}
    buckets: [{capacity: 100, refill: {tokens: 100, every: 1m}}]
`;
}

describe('weir check', () => {
  it('says each policy in words, in the order of the files', async () => {
    await using folder = await openFolder();
    const b = await folder.file('b.yaml', document('b'));
    const a = await folder.file('a.yaml', document('a'));

    const { code, out, err } = await check([b, a]);

    assert.equal(code, 0);
    assert.equal(err, '');
    assert.match(out, /^Policy default\/b\n {2}Applies to [^]*\n\nPolicy default\/a\n/);
  });

  it('reads the YAML and JSON files of a folder', async () => {
    await using folder = await openFolder();
    await folder.file('a.yaml', document('a', 'name: r1'));
    await folder.file('b.yml', document('b', 'name: r2\n    match: [{methods: [GET]}]'));
    await folder.file(
      'c.json',
      JSON.stringify({
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'RateLimitPolicy',
        metadata: { name: 'c' },
        spec: {
          selector: {},
          rules: [
            {
              name: 'r3',
              match: [{ methods: ['PUT'] }],
              buckets: [{ capacity: 1, refill: { tokens: 1, every: '1s' } }],
            },
          ],
        },
      }),
    );
    await folder.file('README.md', 'not a policy');

    const { code, out } = await check([folder.path]);

    assert.equal(code, 0);
    assert.deepEqual(out.match(/^Policy .*/gm), [
      'Policy default/a',
      'Policy default/b',
      'Policy default/c',
    ]);
  });

  it('shows where each mistake is, and what would be right', async () => {
    await using folder = await openFolder();
    const file = await folder.file('p.yaml', document('x', 'name: all\n    onMisingKey: Skip'));

    const { code, out, err } = await check([file]);

    assert.equal(code, 1);
    assert.equal(out, '');
    assert.equal(
      err,
      `${file}:8:5: spec.rules[0].onMisingKey: is not a field
  did you mean onMissingKey?
  8 |     onMisingKey: Skip
    |     ^
`,
    );
  });

  it('shows where an expression is wrong', async () => {
    await using folder = await openFolder();
    const file = await folder.file(
      'p.yaml',
      document('x', 'name: all\n    match: [{cel: {expression: "request.nope"}}]'),
    );

    const { code, err } = await check([file]);

    assert.equal(code, 1);
    assert.equal(
      err,
      `${file}:8:20: spec.rules[0].match[0].cel.expression: No such key: nope
  write an expression that gives true or false
  8 |     match: [{cel: {expression: "request.nope"}}]
    |                    ^
    request.nope
            ^
`,
    );
  });

  it('keeps the caret in sight on a long line, and under tabs', async () => {
    await using folder = await openFolder();
    const long = await folder.file(
      'long.json',
      `{"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy", "metadata": {"name": "x"}, "spec": {${' '.repeat(200)}"mod": 1}}`,
    );
    const tabs = await folder.file('tabs.json', '{\n\t"kind": "Deployment"}');

    const { err } = await check([long, tabs]);

    const [row = '', caret = ''] = err.split('\n').filter((line) => /^ +(1 )?\| /.test(line));
    assert(row.length < 110);
    assert.equal(row[caret.indexOf('^')], '"');
    assert.match(err, /\n {2}2 \| \t"kind": "Deployment"\}\n {4}\| \t\^\n/);
  });

  it('shows the policies that are in order beside the mistakes of others', async () => {
    await using folder = await openFolder();
    const good = await folder.file('good.yaml', document('good'));
    const bad = await folder.file('bad.yaml', document('BAD'));

    const { code, out, err } = await check([bad, good]);

    assert.equal(code, 1);
    assert.match(out, /^Policy default\/good\n/);
    assert.match(err, /metadata\.name: "BAD" does not have the form/);
  });

  it('takes policies whose key set or workload only a cluster knows', async () => {
    await using folder = await openFolder();
    const file = await folder.file(
      'p.yaml',
      `${document('x')}  scope: Workload\n  jwt: {issuer: i, jwks: {uri: "https://a/j"}}\n`,
    );

    assert.equal((await check([file])).code, 0);
  });

  it('refuses what cannot be read, by name', async () => {
    await using folder = await openFolder();
    const missing = join(folder.path, 'missing.yaml');
    await mkdir(join(folder.path, 'empty'));
    await mkdir(join(folder.path, 'odd.yaml'));

    const { code, err } = await check([missing, join(folder.path, 'empty'), folder.path]);

    assert.equal(code, 1);
    assert.deepEqual(
      err.split('\n').filter((line) => line.startsWith('/')),
      [
        `${missing}: cannot be read: ENOENT: no such file or directory, stat '${missing}'`,
        `${join(folder.path, 'empty')}: is a folder that holds no policy file`,
        `${join(folder.path, 'odd.yaml')}: is not a file`,
      ],
    );
  });

  it('does not read files that are far too large', async () => {
    await using folder = await openFolder();
    const file = await folder.file('huge.yaml', ' '.repeat(4 * 1_048_576 + 1));

    const { code, err } = await check([file]);

    assert.equal(code, 1);
    assert.match(err, /: is \d+ bytes; a policy file has at most 2097152\n/);
  });

  it('refuses one policy in two files', async () => {
    await using folder = await openFolder();
    const a = await folder.file('a.yaml', document('x'));
    const b = await folder.file('b.yaml', document('x', 'name: other'));

    const { code, err } = await check([a, b]);

    assert.equal(code, 1);
    assert.match(err, new RegExp(`b\\.yaml:3:12: metadata\\.name: default/x is already in ${a}\n`));
  });

  it('notes rules that limit the same requests', async () => {
    await using folder = await openFolder();
    const a = await folder.file('a.yaml', document('a'));
    const b = await folder.file('b.yaml', document('b'));

    const { code, out } = await check([a, b]);

    assert.equal(code, 0);
    assert.match(
      out,
      /\nNote: default\/a\/all and default\/b\/all are equal: every request pays both\.\n$/,
    );
  });
});

describe('weir check --against', () => {
  it('says which clients start afresh, and why', async () => {
    await using folder = await openFolder();
    const old = await folder.file('old.yaml', `${document('x')}---\n${document('w')}`);
    const now = await folder.file(
      'new.yaml',
      `${document('x', 'name: all\n    key: [{path: {}}]')}---\n${document('w')}---\n${document('z', 'name: zz\n    match: [{methods: [GET]}]')}`,
    );

    const { code, out } = await check([now], { against: old });

    assert.equal(code, 0);
    assert.match(
      out,
      /Policy default\/x\n[^]*\n\n {2}Every client starts with a full bucket in:\n {4}default\/x\/all\/-\/main \(key has changed\)\n/,
    );
    assert.match(out, /Policy default\/w\n[^]*\n\n {2}Every client keeps its level\.\n/);
    assert.match(out, /default\/z\/zz\/-\/main \(the policy is new\)\n/);
  });

  it('fails when the old version is not in order', async () => {
    await using folder = await openFolder();
    const now = await folder.file('new.yaml', document('x'));

    assert.equal((await check([now], { against: join(folder.path, 'old.yaml') })).code, 1);
  });
});

describe('the output of weir check', () => {
  it('is one JSON document on request', async () => {
    await using folder = await openFolder();
    const good = await folder.file('good.yaml', document('good'));
    const bad = await folder.file('bad.yaml', document('BAD'));

    const { code, out, err } = await check([good, bad], { output: 'json', against: good });

    assert.equal(code, 1);
    assert.equal(err, '');
    const report: unknown = JSON.parse(out);
    assert(
      typeof report === 'object' && report !== null && 'policies' in report && 'problems' in report,
    );
    assert.deepEqual(Reflect.get(report, 'valid'), false);
    assert(Array.isArray(report.policies) && Array.isArray(report.problems));
    assert.deepEqual(Reflect.get(Object(report.policies[0]), 'name'), 'default/good');
    assert.deepEqual(Reflect.get(Object(report.policies[0]), 'freshStarts'), []);
    assert.deepEqual(Reflect.get(Object(report.problems[0]), 'line'), 3);
  });

  it('has colour only when wanted', async () => {
    await using folder = await openFolder();
    const good = await folder.file('good.yaml', document('good'));
    const bad = await folder.file('bad.yaml', document('BAD'));

    const plain = await check([good, bad]);
    const painted = await check([good, bad], { colour: true });

    assert(!`${plain.out}${plain.err}`.includes('\u001b'));
    assert(painted.out.startsWith('\u001b[1mPolicy default/good\u001b[0m\n'));
    assert(painted.err.includes('\u001b[31m"BAD" does not have the form\u001b[0m'));
  });
});
