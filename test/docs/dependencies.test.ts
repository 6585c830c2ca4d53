import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

type Packages = Readonly<Record<string, string>>;
interface Manifest {
  readonly dependencies: Packages;
  readonly devDependencies: Packages;
  readonly optionalDependencies: Packages;
}

async function read(name: string): Promise<string> {
  return readFile(new URL(`../../${name}`, import.meta.url), 'utf8');
}

describe('docs/dependencies.md', () => {
  it('has a line for every package, and for no other', async () => {
    const manifest = JSON.parse(await read('package.json')) as Manifest;
    const page = await read('docs/dependencies.md');
    const first = page.split('\n').map((line) => /^\| (`[^|]+`) +\|/.exec(line)?.[1] ?? '');
    const named = first.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    const { dependencies, devDependencies, optionalDependencies } = manifest;

    assert.deepEqual(
      named.toSorted(),
      Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies }).toSorted(),
    );
  });

  it('are pinned exactly', async () => {
    const manifest = JSON.parse(await read('package.json')) as Manifest;
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    const all = { ...dependencies, ...devDependencies, ...optionalDependencies };

    assert.deepEqual(
      Object.entries(all).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
      [],
    );
  });
});
