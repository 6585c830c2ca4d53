// Starts two instances of a contender on one Redis and sends both, in turns, four times what the limit of one key allows.
import { execFile } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { AccuracyCell, AccuracyCounts } from './accuracy.ts';
import type { Candidate, Limit } from './contender.ts';
import { LOAD_CORE, pinned } from './pinned-process.ts';
import { proveVerdicts } from './proof.ts';
import type { Stage } from './stage.ts';
import { besides } from './stage.ts';

const LIMIT: Limit = { capacity: 50, perSecond: 50 };
const TIMES_THE_LIMIT = 4;
const SECONDS = 20;

const run = promisify(execFile);

export async function measureAccuracy(
  { name, start }: Candidate,
  stage: Stage,
): Promise<AccuracyCell> {
  await using stack = new AsyncDisposableStack();
  const ports: number[] = [];
  for (const instance of ['first', 'second']) {
    const place = await besides({ ...stage, stack, limit: LIMIT }, instance);
    const contender = await start(place);
    await proveVerdicts(contender);
    ports.push(contender.port);
  }
  const program = path.join(import.meta.dirname, 'accuracy-load.ts');
  const rate = TIMES_THE_LIMIT * LIMIT.perSecond;
  const args = [program, ...ports.map(String), String(rate), String(SECONDS), `shared-by-${name}`];
  const [file, ...before] = pinned(LOAD_CORE);
  const { stdout } = await run(file, [...before, process.execPath, ...args], {
    timeout: (SECONDS + 20) * 1_000,
  });
  return { contender: name, limit: LIMIT, ...(JSON.parse(stdout) as AccuracyCounts) };
}
