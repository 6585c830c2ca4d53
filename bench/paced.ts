// One turn of the open loop, in a process of its own on the load's core.
import { execFile } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { Contender } from './contender.ts';
import type { OpenLoopResult } from './open-loop.ts';
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
  const program = path.join(import.meta.dirname, 'open-loop.ts');
  const args = [program, String(contender.port), String(rate), String(seconds), 'paced'];
  const [file, ...before] = pinned(LOAD_CORE);
  const { stdout } = await run(file, [...before, process.execPath, ...args], {
    timeout: (seconds + 20) * 1_000,
  });
  const result = JSON.parse(stdout) as OpenLoopResult;
  return { contender: contender.name, round, perSecond: rate, ...result };
}
