// One turn of the open loop, in a process of its own on the load's core.
import { execFile } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { Contender } from './contender.ts';
import type { OpenLoopOptions, OpenLoopResult } from './open-loop.ts';
import type { PacedCell } from './peers-result.ts';
import { LOAD_CORE, pinned } from './pinned-process.ts';

const run = promisify(execFile);

export async function measurePaced(
  contender: Contender,
  {
    rate,
    round,
    seconds,
  }: { readonly rate: number; readonly round: number; readonly seconds: number },
): Promise<PacedCell> {
  const load = { ports: [contender.port], perSecond: rate, seconds, keys: ['paced'] };
  return { contender: contender.name, round, ...(await loadPaced(load)), perSecond: rate };
}

/** Takes `seconds` and one more that is not counted. */
export async function loadPaced(options: OpenLoopOptions): Promise<OpenLoopResult> {
  const program = path.join(import.meta.dirname, 'open-loop.ts');
  const [file, ...before] = pinned(LOAD_CORE);
  const args = [...before, process.execPath, program, JSON.stringify(options)];
  const { stdout } = await run(file, args, { timeout: (options.seconds + 20) * 1_000 });
  return JSON.parse(stdout) as OpenLoopResult;
}
