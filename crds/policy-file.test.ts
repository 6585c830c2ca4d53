import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DOCUMENTS_MAX, FILE_MAX, parsePolicyFile, PROBLEMS_MAX } from './policy-file.ts';
import type { Problem } from './problem.ts';
import { DEPTH_MAX, VALUES_MAX } from './yaml-document.ts';

function document(name: string, extra = ''): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: ${name}}
spec:
  selector: {}
  rules:
  - name: all
    buckets: [{capacity: 100, refill: {tokens: 100, every: 1m}}]
${extra}`;
}

function problemsOf(text: string): readonly Problem[] {
  const outcome = parsePolicyFile(text, 'p.yaml');
  return outcome.kind === 'problems' ? outcome.problems : [];
}

function told(text: string): string[] {
  return problemsOf(text).map((problem) => {
    const { file, line, column, path, message } = problem;
    return [file, line, column, path && ` ${path}`, ` ${message}`]
      .filter((part) => part !== '')
      .join(':');
  });
}

describe('a policy file', () => {
  it('gives its policies in order, empty documents passed over', () => {
    const text = `# a comment\n---\n${document('a')}---\n---\n# nothing\n---\n${document('b')}`;

    const outcome = parsePolicyFile(text, 'p.yaml');

    assert(outcome.kind === 'policies');
    assert.deepEqual(
      outcome.documents.map(({ policy, document: number }) => [policy.metadata.name, number]),
      [
        ['a', 1],
        ['b', 4],
      ],
    );
  });

  it('knows where each field is written', () => {
    const outcome = parsePolicyFile(`${document('a')}---\n${document('b')}`, 'p.yaml');

    assert(outcome.kind === 'policies');
    const [first, second] = outcome.documents;
    assert(first !== undefined && second !== undefined);
    assert.deepEqual(first.placeOf(['spec', 'rules', 0, 'buckets', 0, 'capacity']), {
      file: 'p.yaml',
      document: 1,
      line: 8,
      column: 16,
    });
    assert.deepEqual(second.placeOf(['metadata', 'name']), {
      file: 'p.yaml',
      document: 2,
      line: 12,
      column: 12,
    });
    // What is not there is where its nearest ancestor is.
    assert.deepEqual(first.placeOf(['spec', 'rules', 0, 'mode']), {
      file: 'p.yaml',
      document: 1,
      line: 7,
      column: 5,
    });
  });

  it('points at what is wrong, in the order of the text', () => {
    const text = document('A_b', '  mode: off\n  scop: Pod\n');

    assert.deepEqual(told(text), [
      'p.yaml:3:12: metadata.name: "A_b" does not have the form',
      'p.yaml:9:3: spec.mode: false is not one of Enforce, Shadow, Disabled',
      'p.yaml:10:3: spec.scop: is not a field',
    ]);
  });

  it('reports the problems of every document', () => {
    const found = problemsOf(`${document('A')}---\n${document('b')}---\n${document('C')}`);

    assert.deepEqual(
      found.map(({ document: number }) => number),
      [1, 3],
    );
  });

  it('takes JSON, tabs and a byte order mark', () => {
    const json =
      '\ufeff{\n\t"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy",\n\t"metadata": {"name": "x"},\n\t"spec": {"selector": {}, "rules": [{"name": "a", "buckets": [{"capacity": 1, "refill": {"tokens": 1, "every": "1s"}}]}]}\n}\n';

    assert.deepEqual(told(json), []);
  });

  it('takes CRLF line ends, and counts its lines', () => {
    assert.deepEqual(told(document('a').replaceAll('\n', '\r\n')), []);
    assert.deepEqual(told(document('A').replaceAll('\n', '\r\n')), [
      'p.yaml:3:12: metadata.name: "A" does not have the form',
    ]);
  });

  it('refuses a name twice in one namespace', () => {
    const other = document('a').replace('{name: a}', '{name: a, namespace: shop}');
    const same = document('a').replace('{name: a}', '{name: a, namespace: default}');

    assert.deepEqual(told(`${document('a')}---\n${other}`), []);
    assert.deepEqual(told(`${document('a')}---\n${same}`), [
      'p.yaml:12:12: metadata.name: default/a is there twice, first at line 3',
    ]);
  });

  it('refuses a file without a policy', () => {
    for (const text of ['', '\n', '# a comment\n', '---\n---\n', '--- # nothing\n...\n']) {
      assert.deepEqual(told(text), ['p.yaml:1:1: holds no policy'], JSON.stringify(text));
    }
  });

  it('takes a name without a value for null', () => {
    assert.deepEqual(told(document('a', '  except:\n')), []);
    assert.deepEqual(told('{kind, ? }'), ['p.yaml:1:1: has a field whose name is no word']);
  });

  it('refuses other kinds by name', () => {
    assert.deepEqual(told('apiVersion: v1\nkind: List\nitems: []\n'), [
      'p.yaml:2:1: kind: "List" is not a kind that is read here',
    ]);
    assert.deepEqual(told('- a\n'), ['p.yaml:1:1: is a list, not a policy']);
    assert.deepEqual(told('just words\n'), ['p.yaml:1:1: is a string, not a policy']);
  });

  it('refuses what is not text', () => {
    assert.match(
      told('\u0000\u0001').join(),
      /^p\.yaml:1:1: holds the character "\\u0000" at offset 0/,
    );
    assert.match(told('a: \ufffd').join(), /at offset 3, which is not text$/);
    assert.match(told('\u007fELF').join(), /which is not text/);
  });

  it('says the first fault of YAML that is none', () => {
    assert.deepEqual(told('a: "b\nc: d\n: :\n').length, 1);
    assert.deepEqual(told('a: b: c\n'), [
      'p.yaml:1:4: Nested mappings are not allowed in compact mappings',
    ]);
    assert.deepEqual(told('\ta: b\n').length, 1);
  });
});

describe('keys and aliases of a policy file', () => {
  it('refuses a key that is there twice, at its second place', () => {
    assert.deepEqual(told('spec: {a: 1, b: 2, a: 3}\n'), [
      'p.yaml:1:20: spec.a: "a" is there twice',
    ]);
    assert.deepEqual(told('on: 1\n"true": 2\n'), ['p.yaml:2:1: true: "true" is there twice']);
  });

  it('reads names of fields as kubectl does', () => {
    const text = document('a', '').replace(
      'selector: {}',
      'selector: {matchLabels: {on: a, 010: b, 1.5: c}}',
    );
    const outcome = parsePolicyFile(text, 'p.yaml');

    assert(outcome.kind === 'policies');
    assert.deepEqual(outcome.documents[0]?.policy.spec.selector, {
      matchLabels: { true: 'a', '8': 'b', '1.5': 'c' },
    });
  });

  it('refuses a name that is no word', () => {
    assert.deepEqual(told('? [a]\n: b\n'), ['p.yaml:1:1: has a field whose name is no word']);
    assert.deepEqual(told('~: b\n'), ['p.yaml:1:1: has a field whose name is no word']);
  });

  it('merges maps, where its own fields are stronger', () => {
    const rules =
      '  rules:\n  - &a {name: a, mode: Shadow, buckets: &b [{capacity: 1, refill: {tokens: 1, every: 1s}}]}\n  - {<<: *a, name: b}\n  - {name: c, <<: [{mode: Disabled}, *a]}\n';
    const text = `apiVersion: weir.dev/v1alpha1\nkind: RateLimitPolicy\nmetadata: {name: x}\nspec:\n  selector: {}\n${rules}`;
    const outcome = parsePolicyFile(text, 'p.yaml');

    assert(outcome.kind === 'policies');
    assert.deepEqual(
      outcome.documents[0]?.policy.spec.rules.map(({ name, mode }) => [name, mode]),
      [
        ['a', 'Shadow'],
        ['b', 'Shadow'],
        ['c', 'Disabled'],
      ],
    );
  });

  it('refuses to merge what is no map', () => {
    assert.deepEqual(told('a: {<<: 3}\n'), ['p.yaml:1:1: a: merges (<<) something that is no map']);
    assert.deepEqual(told('a: {<<: [[b]]}\n'), [
      'p.yaml:1:1: a: merges (<<) something that is no map',
    ]);
  });

  it('takes a quoted << for a name', () => {
    assert.deepEqual(told(document('a', '  "<<": {}\n')), [
      'p.yaml:9:3: spec["<<"]: is not a field',
    ]);
  });

  it('refuses an alias of nothing, and of what contains it', () => {
    assert.deepEqual(told('a: *b\n'), ['p.yaml:1:4: a: refers to &b, which is not there']);
    assert.deepEqual(told('a: &a [*a]\n'), ['p.yaml:1:8: a[0]: refers to &a, which contains it']);
    assert.deepEqual(told('&a {b: {c: *a}}\n'), [
      'p.yaml:1:12: b.c: refers to &a, which contains it',
    ]);
  });

  it('takes an anchor that is there twice for the last one before', () => {
    const text = document('a').replace('{name: a}', '{namespace: &n shop, name: *n}');
    assert.deepEqual(told(text), []);
  });

  it('reads tags that say what it reads anyway, and refuses others', () => {
    assert.deepEqual(told(document('!!str a')), []);
    assert.deepEqual(told(document('a').replace('capacity: 100', 'capacity: !!int "100"')), []);
    assert.deepEqual(told(document('!!binary aGk=')), [
      'p.yaml:3:12: metadata.name: has the tag tag:yaml.org,2002:binary',
    ]);
  });
});

describe('the bounds of a policy file', () => {
  it('is the size of the file', () => {
    const comment = '#'.repeat(FILE_MAX - document('a').length);

    assert.deepEqual(told(document('a') + comment), []);
    assert.match(
      told(`${document('a')}${comment}#`).join(),
      /^p\.yaml:1:1: has 1048577 characters, more than 1048576$/,
    );
  });

  it('is the number of documents', () => {
    const empty = '---\n'.repeat(DOCUMENTS_MAX - 1);

    assert.deepEqual(told(`${empty}---\n${document('a')}`), []);
    assert.deepEqual(told(`${empty}---\n---\n${document('a')}`), [
      'p.yaml:1:1: holds more than 1000 documents',
    ]);
  });

  it('is the number of problems', () => {
    const many = Array.from(
      { length: PROBLEMS_MAX + 1 },
      (_, index) => `  zz${String(index)}: 1\n`,
    ).join('');

    assert.equal(problemsOf(document('a', many)).length, PROBLEMS_MAX);
  });

  it('is the nesting, of brackets by the hundred thousand as well', () => {
    const nested = (depth: number): string =>
      document('a', `  zz: ${'['.repeat(depth)}${']'.repeat(depth)}\n`);

    assert.deepEqual(told(nested(DEPTH_MAX - 1)), ['p.yaml:9:3: spec.zz: is not a field']);
    assert.match(told(nested(DEPTH_MAX)).join(), /is nested more than 64 deep$/);
    for (const hostile of ['[', '{a: ', '- ']) {
      assert.match(
        told(hostile.repeat(50_000)).join(),
        /^p\.yaml:1:\d+: is nested too deeply to be read$/,
      );
    }
  });

  it('is what aliases unfold to', () => {
    const rows = Array.from('bcdefghij', (name, index) => {
      const tenfold = Array.from({ length: 10 }, () => `*${String('abcdefghi'[index])}`).join(',');
      return `${name}: &${name} [${tenfold}]`;
    });
    const bomb = ['a: &a [1,1,1,1,1,1,1,1,1,1]', ...rows].join('\n');

    assert.match(told(bomb).join(), /unfolds to more than 100000 values$/);
  });

  it('is the number of values', () => {
    const items = (count: number): string => `a: [${'1,'.repeat(count)}]\n`;
    // The document, the name and the list are values as well.
    assert.doesNotMatch(told(items(VALUES_MAX - 3)).join(), /unfolds/);
    assert.match(told(items(VALUES_MAX - 2)).join(), /unfolds/);
  });

  it('costs an alias no walk over the document', () => {
    const anchors = Array.from(
      { length: 10_000 },
      (_, index) => `k${String(index)}: &a${String(index)} 1`,
    );
    const aliases = Array.from(
      { length: 10_000 },
      (_, index) => `l${String(index)}: *a${String(index)}`,
    );

    // Quadratic, it took minutes.
    assert.equal(problemsOf([...anchors, ...aliases].join('\n')).length, PROBLEMS_MAX);
  });
});
