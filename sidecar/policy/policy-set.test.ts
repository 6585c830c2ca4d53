import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyFile } from './file-tree.ts';
import { PolicySet, type Surroundings } from './policy-set.ts';

const anywhere: Surroundings = {
  namespace: undefined,
  labels: undefined,
  port: 3000,
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

  const elsewhere: Readonly<Record<string, readonly [Partial<Surroundings>, string, boolean]>> = {
    'another namespace': [{ namespace: 'bank' }, '', false],
    'the namespace of a document without one': [{ namespace: 'default' }, '', true],
    'other labels': [{ labels: { app: 'web' } }, '', false],
    'its labels': [{ labels: { app: 'api', more: 'x' } }, '', true],
    'another port': [{ port: 3001 }, 'ports: [3000]', false],
    'its port': [{ port: 3000 }, 'ports: [3000]', true],
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
