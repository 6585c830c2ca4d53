// What bench:profile found, as it is kept in bench/results, and how it is made of what V8 writes.
import type { MachineFacts } from './machine.ts';

export interface Share {
  readonly name: string;
  /** Of the processor time that was spent, 0..1. */
  readonly share: number;
}

export interface ProfileResult {
  readonly at: string;
  readonly machine: MachineFacts;
  readonly requests: number;
  /** By folder of the sources, package, or part of Node; the largest first. */
  readonly parts: readonly Share[];
  /** Where most time was spent, callees not counted; the largest first. */
  readonly functions: readonly Share[];
}

/** A .cpuprofile of V8 (DevTools protocol, `Profiler.Profile`). */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  /** Monotonic µs. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** µs since the sample before. */
  readonly timeDeltas: readonly number[];
}

type Frame = CpuProfile['nodes'][number]['callFrame'];

const FUNCTIONS = 20;

/** The shares between two instants (monotonic µs), time without work left out. `root` is where the sources are. */
export function sharesOf(
  { nodes, startTime, samples, timeDeltas }: CpuProfile,
  {
    fromUs,
    untilUs,
    root,
  }: { readonly fromUs: number; readonly untilUs: number; readonly root: string },
): Pick<ProfileResult, 'parts' | 'functions'> {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  let nowUs = startTime;
  for (const [i, sample] of samples.entries()) {
    const us = timeDeltas[i] ?? 0;
    nowUs += us;
    const frame = frames.get(sample);
    if (frame === undefined || nowUs < fromUs || nowUs > untilUs) continue;
    if (frame.functionName === '(idle)') continue;
    add(parts, partOf(frame, root), us);
    add(functions, nameOf(frame, root), us);
  }
  return { parts: sharesIn(parts), functions: sharesIn(functions).slice(0, FUNCTIONS) };
}

function add(times: Map<string, number>, name: string, us: number): void {
  times.set(name, (times.get(name) ?? 0) + us);
}

function sharesIn(times: ReadonlyMap<string, number>): Share[] {
  const total = times.values().reduce((sum, us) => sum + us, 0);
  return [...times]
    .map(([name, us]) => ({ name, share: us / total }))
    .sort((a, b) => b.share - a.share);
}

function partOf(frame: Frame, root: string): string {
  const file = fileOf(frame, root);
  if (file === '') return NATIVE.get(frame.functionName) ?? 'native code called from JavaScript';
  const [, name] = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file) ?? [];
  if (name !== undefined) return name;
  return file.startsWith('node:') ? 'node, JavaScript' : file.slice(0, file.lastIndexOf('/'));
}

/** What V8 names in brackets. */
const NATIVE: ReadonlyMap<string, string> = new Map([
  ['(garbage collector)', 'garbage collection'],
  ['(program)', 'native code: event loop, reads'],
]);

function nameOf(frame: Frame, root: string): string {
  const { functionName } = frame;
  const file = fileOf(frame, root);
  const name = functionName === '' ? '(anonymous)' : functionName;
  return file === '' ? name : `${name}, ${file}`;
}

/** Below `root`, such as `sidecar/proxy/exchange.ts`; '' for native code. */
function fileOf({ url }: Frame, root: string): string {
  return url.replace('file://', '').replace(`${root}/`, '');
}
