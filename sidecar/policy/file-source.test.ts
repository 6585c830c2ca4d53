import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { Bundle } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import type { Problem } from '../../crds/problem.ts';
import { openFileSource } from './file-source.ts';
import type { Surroundings } from './policy-set.ts';

const surroundings: Surroundings = {
  namespace: undefined,
  labels: undefined,
  ports: [3000],
  workload: undefined,
  replicas: 1,
};

function policy(name: string): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: ${name} }
spec:
  selector: {}
  rules: [{ name: all, buckets: [{ capacity: 1, refill: { tokens: 1, every: 1s } }] }]
`;
}

async function openFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-source-'));
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** In one step, so that no look finds half a file. */
async function save(file: string, text: string): Promise<void> {
  await writeFile(`${file}.part`, text);
  await rename(`${file}.part`, file);
}

describe('policies from files', () => {
  it('stay as they are when a reload fails, and the next change is taken', async () => {
    await using folder = await openFolder();
    const file = path.join(folder.path, 'a.yaml');
    await writeFile(file, policy('one'));
    const inForce: Bundle[] = [];
    const reported = Promise.withResolvers<readonly Problem[]>();
    const third = Promise.withResolvers<undefined>();
    let calls = 0;
    await using stack = new AsyncDisposableStack();
    stack.use(
      await openFileSource({
        paths: [folder.path],
        surroundings,
        onBundle({ bundle }) {
          calls += 1;
          if (calls === 2) throw new Error('no room');
          inForce.push(bundle);
          if (calls === 3) third.resolve(undefined);
        },
        onProblems: reported.resolve,
      }),
    );

    await save(`${file}.new.yaml`, policy('two'));
    const [problem] = await reported.promise;
    await save(`${file}.newer.yaml`, policy('three'));
    await third.promise;

    assert.match(problem?.message ?? '', /cannot be put into force: no room/);
    assert.deepEqual(
      inForce.map((bundle) => bundle.policies.map((one) => one.name)),
      [['one'], ['one', 'three', 'two']],
    );
  });

  it('are refused at the start when there are none, unless some were inherited', async () => {
    await using folder = await openFolder();
    const options = {
      paths: [folder.path],
      surroundings,
      onBundle: () => undefined,
      onProblems: () => undefined,
    };
    const inherited: Bundle = { format: 1, version: 'x', policies: [] };

    await assert.rejects(
      openFileSource(options),
      (error) => error instanceof WeirError && error.code === 'POLICY_UNREADABLE',
    );
    await (await openFileSource({ ...options, inherited }))[Symbol.asyncDispose]();
  });

  it('are refused at the start when one of several folders holds none', async () => {
    await using folder = await openFolder();
    await using other = await openFolder();
    await writeFile(path.join(folder.path, 'a.yaml'), policy('one'));

    await assert.rejects(
      openFileSource({
        paths: [folder.path, other.path],
        surroundings,
        onBundle: () => undefined,
        onProblems: () => undefined,
      }),
      (error) => error instanceof WeirError && error.code === 'POLICY_INVALID',
    );
  });
});
