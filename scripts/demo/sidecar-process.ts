// A sidecar as a user starts it: `weir run` in a process of its own, known by the line it prints when ready.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

const root = path.join(import.meta.dirname, '..', '..');

export interface SidecarProcess extends AsyncDisposable {
  readonly port: number;
}

/** Starts `weir run` with `flags` and waits for its ready line; a start that fails ends with what it printed. */
export async function startSidecar(flags: readonly string[]): Promise<SidecarProcess> {
  const args = [path.join(root, 'cli', 'main.ts'), 'run', '--log-level', 'warn', ...flags];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    exited.then(() => undefined),
  ]);
  if (first === undefined) throw new Error('the sidecar ended before it was ready');
  const ready = JSON.parse(first) as { listen: string };
  return {
    port: Number(ready.listen.slice(ready.listen.lastIndexOf(':') + 1)),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
