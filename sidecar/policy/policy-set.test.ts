import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyFile } from './file-tree.ts';
import { PolicySet, type Surroundings } from './policy-set.ts';

const anywhere: Surroundings = {
  namespace: undefined,
  labels: undefined,
  ports: [3000],
  workload: undefined,
  replicas: 1,
};

function policy(name: string, capacity = 5, spec = ''): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: ${name} }
spec:
  selector: { matchLabels: { app: api } }
  ${spec}
  rules: [{ name: all, buckets: [{ capacity: ${capacity}, refill: { tokens: 1, every: 1s } }] }]
`;
}

let saves = 0;

function file(path: string, text: string | undefined, modifiedMs = 1_000): PolicyFile {
  saves += 1;
  const failure = text === undefined ? 'cannot be read: EACCES' : undefined;
  return { path, isNamed: true, identity: String(saves), modifiedMs, text, failure };
}

function names(update: ReturnType<PolicySet['update']>): string[] {
  return (update?.bundle.policies ?? []).map((one) => one.name);
}

function capacities(update: ReturnType<PolicySet['update']>): (number | undefined)[] {
  return (update?.bundle.policies ?? []).map(
    (one) => one.rules[0]?.tiers[0]?.buckets[0]?.limit.capacity,
  );
}

describe('a set of policy files', () => {
  it('compiles every document, with the file’s time as generation', () => {
    const set = new PolicySet(anywhere);

    const update = set.update([file('a', `${policy('one')}---\n${policy('two')}`, 1_234)]);

    assert.deepEqual(names(update), ['one', 'two']);
    assert.deepEqual(
      (update?.bundle.policies ?? []).map((one) => one.generation),
      [1_234, 1_234],
    );
    assert.deepEqual(
      (update?.bundle.policies ?? []).map((one) => one.uid),
      ['file/default/one', 'file/default/two'],
    );
  });

  it('has nothing to say while no file changes', () => {
    const set = new PolicySet(anywhere);
    const files = [file('a', policy('one'))];
    set.update(files);

    assert.equal(set.update(files), undefined);
  });

  it('never lets a generation go back, whatever the clock of the disk does', () => {
    const set = new PolicySet(anywhere);
    const generation = (modifiedMs: number): number | undefined =>
      set.update([file('a', policy('one'), modifiedMs)])?.bundle.policies[0]?.generation;

    assert.deepEqual(
      [generation(2_000), generation(500), generation(500), generation(3_000)],
      [2_000, 2_001, 2_002, 3_000],
    );
  });

  it('keeps the last good version of a file, and reports its problems once', () => {
    const set = new PolicySet(anywhere);
    const good = file('b', policy('other'));
    set.update([file('a', policy('one', 7)), good]);
    const broken = file('a', policy('one', 0));

    const update = set.update([broken, good]);
    const again = set.update([broken, good]);

    assert.deepEqual(names(update), ['one', 'other']);
    assert.ok(update);
    assert.equal(update.bundle.policies[0]?.rules[0]?.tiers[0]?.buckets[0]?.limit.capacity, 7);
    assert.deepEqual(
      update.problems.map((one) => [one.file, one.path]),
      [['a', 'spec.rules[0].buckets[0].capacity']],
    );
    assert.equal(again, undefined);
  });

  it('keeps a file that has become unreadable, and drops one that is no longer listed', () => {
    const set = new PolicySet(anywhere);
    const good = file('b', policy('other'));
    set.update([file('a', policy('one')), good]);

    const unreadable = set.update([file('a', undefined), good]);
    const dropped = set.update([good]);

    assert.deepEqual(names(unreadable), ['one', 'other']);
    assert.match(unreadable?.problems[0]?.message ?? '', /EACCES/);
    assert.deepEqual(names(dropped), ['other']);
  });

  it('refuses a policy that another file already holds', () => {
    const set = new PolicySet(anywhere);

    const update = set.update([file('a', policy('one')), file('b', policy('one'))]);

    assert.deepEqual(names(update), ['one']);
    assert.match(update?.problems[0]?.message ?? '', /default\/one is defined in a too/);
  });

  it('refuses a policy that an unchanged file holds, whichever sorts first', () => {
    const set = new PolicySet(anywhere);
    const holder = file('m', policy('one', 7));
    set.update([holder]);

    const update = set.update([file('a', policy('one', 9)), holder]);

    assert.deepEqual([names(update), capacities(update)], [['one'], [7]]);
    assert.match(update?.problems[0]?.message ?? '', /default\/one is defined in m too/);
  });

  it('leaves a policy to the file that held it when both files are saved', () => {
    const set = new PolicySet(anywhere);
    set.update([file('m', policy('one', 7))]);

    const update = set.update([file('a', policy('one', 9)), file('m', policy('one', 8))]);

    assert.deepEqual(capacities(update), [8]);
    assert.equal(update?.problems[0]?.file, 'a');
  });

  for (const [from, to] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    const sorted = (...files: PolicyFile[]): PolicyFile[] =>
      files.toSorted((one, other) => (one.path < other.path ? -1 : 1));

    it(`lets a document move from ${from} to ${to} in one save`, () => {
      const set = new PolicySet(anywhere);
      set.update(
        sorted(file(from, `${policy('keep')}---\n${policy('one')}`), file(to, policy('other'))),
      );

      const update = set.update(
        sorted(file(from, policy('keep')), file(to, `${policy('other')}---\n${policy('one')}`)),
      );

      assert.deepEqual([names(update), update?.problems], [['keep', 'one', 'other'], []]);
    });

    it(`lets a document move from ${from} to ${to} when ${to} is saved first`, () => {
      const set = new PolicySet(anywhere);
      const before = file(from, `${policy('keep')}---\n${policy('one')}`);
      set.update(sorted(before, file(to, policy('other'))));
      const target = file(to, `${policy('other')}---\n${policy('one', 9)}`);

      const early = set.update(sorted(before, target));
      const late = set.update(sorted(file(from, policy('keep')), target));

      assert.deepEqual([early?.problems.length, late?.problems], [1, []]);
      assert.deepEqual(capacities(late), [5, 9, 5]);
    });
  }

  it('accepts a refused copy as soon as the original is gone', () => {
    const set = new PolicySet(anywhere);
    const [original, copy] = [file('a', policy('one')), file('b', policy('one'))];
    set.update([original]);
    const refused = set.update([original, copy]);

    const update = set.update([copy]);

    assert.deepEqual([refused?.problems.length, update?.problems], [1, []]);
    assert.deepEqual(names(update), ['one']);
    assert.equal(set.update([copy]), undefined);
  });

  it('reports a refused file again when its reason is another, not when other files change', () => {
    const set = new PolicySet(anywhere);
    const [original, copy] = [file('a', policy('one')), file('b', policy('one'))];
    set.update([original, copy]);

    const unrelated = set.update([original, copy, file('c', policy('two'))]);
    const moved = set.update([copy, file('d', policy('two'))]);
    const saved = set.update([file('a', policy('one')), copy]);

    assert.deepEqual([unrelated?.problems, moved?.problems], [[], []]);
    assert.match(saved?.problems[0]?.message ?? '', /defined in b too/);
  });

  it('brings a file’s last good version back ahead of what another file takes from it', () => {
    const set = new PolicySet(anywhere);
    const [other, third] = [file('b', policy('other')), file('c', policy('third'))];
    set.update([file('a', policy('one', 7)), other, third]);

    // a cannot have third, so it keeps one, so b cannot have it either.
    const update = set.update([file('a', policy('third')), file('b', policy('one', 9)), third]);

    assert.deepEqual(names(update), ['one', 'other', 'third']);
    assert.deepEqual(capacities(update), [7, 5, 5]);
    assert.deepEqual(update?.problems.map((one) => one.file).sort(), ['a', 'b']);
  });

  it('keeps every policy while what stands in for its file is not in order', () => {
    const set = new PolicySet(anywhere);
    set.update([file('d/a', policy('one')), file('d/b', policy('two'))]);

    const vanished = set.update([file('d', undefined)]);
    const stillGone = set.update([file('d', undefined)]);
    const back = set.update([file('d/b', policy('two'))]);

    assert.deepEqual(
      [names(vanished), names(stillGone)],
      [
        ['one', 'two'],
        ['one', 'two'],
      ],
    );
    assert.equal(vanished?.problems.length, 1);
    assert.deepEqual(names(back), ['two']);
  });

  it('starts with what it inherits for files that are not in order, until they are', () => {
    const inherited = new PolicySet(anywhere).update([
      file('a', policy('one', 7), 2_000),
      file('b', policy('two'), 2_000),
    ])?.bundle;
    const set = new PolicySet(anywhere, inherited);
    const good = file('b', policy('two'), 2_000);

    const first = set.update([file('a', policy('one', 0)), good]);
    const repaired = set.update([file('a', policy('three'), 3_000), good]);

    assert.deepEqual(first?.bundle, inherited);
    assert.equal(first?.problems.length, 1);
    assert.deepEqual(names(repaired), ['three', 'two']);
  });

  it('puts what only the compiler can judge at its line', () => {
    const set = new PolicySet(anywhere);

    const update = set.update([file('a', policy('one', 5, 'scope: Workload'))]);

    const [problem] = update?.problems ?? [];
    assert.deepEqual([problem?.path, problem?.line], ['spec.scope', 6]);
    assert.match(problem?.advice ?? '', /--workload/);
  });

  it('compiles scope Workload with the workload it is told', () => {
    const set = new PolicySet({ ...anywhere, workload: 'deployment.api', replicas: 4 });

    const update = set.update([file('a', policy('one', 5, 'scope: Workload'))]);

    const [compiled] = update?.bundle.policies ?? [];
    assert.deepEqual([compiled?.workload, compiled?.replicas], ['deployment.api', 4]);
  });

  it('restricts a policy to its ports where the application has others', () => {
    const set = new PolicySet({ ...anywhere, ports: [3000, 3001] });
    const files = [
      file('a', policy('some', 5, 'ports: [3001, 9]')),
      file('b', policy('every')),
      file('c', policy('both', 5, 'ports: [3000, 3001]')),
    ];

    const update = set.update(files);

    const ports = update?.bundle.policies.map((one) => [one.name, one.ports]);
    assert.deepEqual(Object.fromEntries(ports ?? []), {
      some: [3001],
      every: undefined,
      both: undefined,
    });
  });

  const elsewhere: Readonly<Record<string, readonly [Partial<Surroundings>, string, boolean]>> = {
    'another namespace': [{ namespace: 'bank' }, '', false],
    'the namespace of a document without one': [{ namespace: 'default' }, '', true],
    'other labels': [{ labels: { app: 'web' } }, '', false],
    'its labels': [{ labels: { app: 'api', more: 'x' } }, '', true],
    'another port': [{ ports: [3001] }, 'ports: [3000]', false],
    'its port': [{ ports: [3000] }, 'ports: [3000]', true],
  };
  for (const [what, [surroundings, spec, applies]] of Object.entries(elsewhere)) {
    it(`${applies ? 'applies' : 'does not apply'} a policy to a pod with ${what}`, () => {
      const set = new PolicySet({ ...anywhere, ...surroundings });

      const update = set.update([file('a', policy('one', 5, spec))]);

      assert.deepEqual(names(update), applies ? ['one'] : []);
      assert.deepEqual(update?.elsewhere, applies ? [] : ['default/one']);
    });
  }
});
