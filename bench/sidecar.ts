// This product as a contender: `weir run` from the bundle that is installed, built anew so that no stale one is measured.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { Limit } from './contender.ts';
import { NO_LIMIT } from './contender.ts';
import { PROXY_CORE, PinnedProcess } from './pinned-process.ts';

const root = path.join(import.meta.dirname, '..');
const bundle = path.join(root, 'dist', 'weir.mjs');

/** Builds the program that `startSidecar` starts. */
export async function buildSidecar(): Promise<void> {
  const build = path.join(root, 'scripts', 'build.ts');
  await promisify(execFile)(process.execPath, [build], { timeout: 60_000 });
}

export interface SidecarOptions {
  readonly policy: string;
  readonly upstream: number;
  readonly redis?: number;
  readonly flags?: readonly string[];
  /** The bundle that is installed unless given. */
  readonly program?: string;
  /** More flags of Node's own. */
  readonly node?: readonly string[];
}

export interface Sidecar extends AsyncDisposable {
  readonly process: PinnedProcess;
  readonly port: number;
  readonly adminPort: number;
  /** From the start of the process to the line that says it listens. */
  readonly readyMs: number;
}

export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const { policy, upstream, redis, flags = [], program = bundle, node = [] } = options;
  const startedAt = performance.now();
  const sidecar = new PinnedProcess(
    process.execPath,
    [
      ...(await nodeFlags()),
      ...node,
      ...[program, 'run', '--policy', policy, '--upstream', `127.0.0.1:${String(upstream)}`],
      ...['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
      ...(redis === undefined ? [] : ['--redis', `redis://127.0.0.1:${String(redis)}`]),
      ...flags,
    ],
    { core: PROXY_CORE },
  );
  try {
    const ready: unknown = JSON.parse(await sidecar.firstLine());
    return {
      process: sidecar,
      port: portOf(ready, 'listen'),
      adminPort: portOf(ready, 'admin'),
      readyMs: performance.now() - startedAt,
      [Symbol.asyncDispose]: () => sidecar[Symbol.asyncDispose](),
    };
  } catch (error) {
    await sidecar[Symbol.asyncDispose]();
    throw error;
  }
}

/** What the bundle's first line hands to Node when it is started by its name. */
async function nodeFlags(): Promise<readonly string[]> {
  const [first = ''] = (await readFile(bundle, 'utf8')).split('\n', 1);
  return first.split(' ').filter((word) => word.startsWith('--'));
}

function portOf(ready: unknown, field: 'listen' | 'admin'): number {
  const lines: ReadonlyMap<string, unknown> = new Map(
    typeof ready === 'object' && ready !== null ? Object.entries(ready) : [],
  );
  const address = lines.get(field);
  const text = typeof address === 'string' ? address : '';
  const port = Number(text.slice(text.lastIndexOf(':') + 1));
  if (!Number.isInteger(port) || port === 0) throw new Error(`not ready: ${JSON.stringify(ready)}`);
  return port;
}

/** What a policy says beside the limits of single keys. */
export interface PolicyOptions {
  /** Rules that look at other paths, so that one rule of one more applies. */
  readonly otherRules?: number;
  /** Of each key but `deny` and `exact`; none unless given. */
  readonly limit?: Limit;
}

/** A policy that refuses the key `deny` after one request. Returns its path. */
export async function writePolicy(
  folder: string,
  name: string,
  { otherRules = 0, limit = NO_LIMIT }: PolicyOptions = {},
): Promise<string> {
  const file = path.join(folder, `${name}.yaml`);
  const rules = Array.from({ length: otherRules }, (_, i) => [
    `    - name: other-${String(i)}`,
    `      match: [{methods: [POST], path: {type: Prefix, value: /other-${String(i)}/}}]`,
    '      key: [{header: {name: X-Api-Key}}]',
    '      buckets: [{capacity: 100, refill: {tokens: 100, every: 1s}}]',
  ]);
  const text = [
    'apiVersion: weir.dev/v1alpha1',
    'kind: RateLimitPolicy',
    `metadata: {name: ${name}, namespace: bench}`,
    'spec:',
    '  selector: {}',
    '  rules:',
    '    - name: per-key',
    '      key: [{header: {name: X-Api-Key}}]',
    '      tiers:',
    '        - name: refused',
    '          match: [{headers: [{name: X-Api-Key, value: deny}]}]',
    '          buckets: [{capacity: 1, refill: {tokens: 1, every: 1h}}]',
    '        - name: exact',
    '          match: [{headers: [{name: X-Api-Key, value: exact}]}]',
    `          buckets: [{capacity: ${String(EXACT_CAPACITY)}, refill: {tokens: ${String(EXACT_CAPACITY)}, every: 300d}}]`,
    '        - name: allowed',
    `          buckets: [{capacity: ${String(limit.capacity)}, refill: {tokens: ${String(limit.perSecond)}, every: 1s}}]`,
    ...rules.flat(),
  ];
  await writeFile(file, `${text.join('\n')}\n`);
  return file;
}

/** The bucket of the key `exact`: used up within a second, and its next token is 86 minutes away. */
export const EXACT_CAPACITY = 5_000;
