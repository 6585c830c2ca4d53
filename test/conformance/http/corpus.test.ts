// No difference for a client behind the sidecar: each recorded exchange is played against the application alone and
// through a real `weir run`, and compared byte for byte in both directions. What may differ stands in differences.ts.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SidecarProcess } from '../../support/sidecar.ts';
import { escapedBlock, parseCases } from './case-file.ts';
import type { CorpusCase } from './case-file.ts';
import { compare } from './comparison.ts';
import { differences, MOST_REMAINING } from './differences.ts';
import { play, refusalOf, ReplayUpstream } from './replay.ts';

const folder = path.join(import.meta.dirname, 'corpus');
const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: all }
spec:
  selector: {}
  rules: [{ name: all, buckets: [{ capacity: ${String(MOST_REMAINING)}, refill: { tokens: 1, every: 1s } }] }]
`;

async function corpus(): Promise<Map<string, CorpusCase[]>> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.cases')).sort();
  const read = async (name: string): Promise<[string, CorpusCase[]]> => [
    name,
    parseCases(await readFile(path.join(folder, name), 'utf8')),
  ];
  return new Map(await Promise.all(files.map(read)));
}

const themes = await corpus();
const used = new Set<string>();
let upstream: ReplayUpstream;
let sidecar: SidecarProcess;

before(async () => {
  upstream = await ReplayUpstream.open();
  sidecar = await SidecarProcess.open({
    files: { 'all.yaml': POLICY },
    upstreamPort: upstream.port,
  });
});

after(async () => {
  await sidecar[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

for (const [theme, cases] of themes) {
  describe(`the same through the sidecar: ${theme}`, () => {
    for (const one of cases) {
      it(one.name, async () => {
        if (one.refusedWith === undefined) await assertSame(one);
        else await assertRefused(one, one.refusedWith);
      });
    }
  });
}

async function assertSame(one: CorpusCase): Promise<void> {
  const direct = await play(one, upstream, upstream.port);
  const through = await play(one, upstream, sidecar.port);

  for (const name of compare(direct, through)) used.add(name);
}

async function assertRefused(one: CorpusCase, status: number): Promise<void> {
  const startLine = await refusalOf(one, upstream, sidecar.port);

  assert.equal(startLine.slice(9, 12), String(status));
  used.add('refusal');
}

describe('the corpus', () => {
  it('holds at least 300 exchanges with names of their own', () => {
    const names = [...themes.values()].flat().map(({ name }) => name);

    assert(names.length >= 300, `only ${String(names.length)}`);
    assert.equal(new Set(names).size, names.length);
  });

  it('shows every difference that is allowed', () => {
    assert.deepEqual([...used].sort(), Object.keys(differences).sort());
  });

  it('left no fault and no connection behind', async () => {
    assert.equal(await sidecar.metric('weir_faults_total'), 0);
    assert.equal(await sidecar.metric('weir_upstream_retries_total'), 0);
  });
});

describe('the format of the corpus', () => {
  it('writes a block that it reads back', () => {
    const bytes = 'GET / HTTP/1.1\r\nA: \x80\\\t\0\r\n\r\nbody\nwith\rends';

    const [read] = parseCases(['=== x', ...escapedBlock('>', bytes)].join('\n'));

    assert.deepEqual(read?.steps, [{ kind: 'client', bytes }]);
  });

  it('repeats text, and refuses what it does not know', () => {
    const [read] = parseCases('=== x\n> \\{ab*3}\\\n! close\n! refused 431');

    assert.deepEqual(read?.steps, [{ kind: 'client', bytes: 'ababab' }, { kind: 'close' }]);
    assert.equal(read.refusedWith, 431);
    assert.throws(() => parseCases('=== x\n> \\q'), /unknown escape/);
    assert.throws(() => parseCases('=== x\n? y'), /line 2/);
    assert.throws(() => parseCases('> early'), /line 1/);
  });
});
