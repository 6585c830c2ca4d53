// A process of a measurement: held to one core, its processor time and memory counted over all of its threads and
// children, ended by its own id.
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** The proxy under test and Redis share this core, as a pod's containers would; the load has the other one. */
export const PROXY_CORE = 0;
export const LOAD_CORE = 1;

const STOP_TIMEOUT_MS = 5_000;
const LISTEN_TIMEOUT_MS = 15_000;
const POLL_MS = 5;
/** What a process prints is kept for the message of a failure only. */
const KEPT_CHARS = 65_536;

/** Root may put a run ahead of what else the machine does; figures then say more on a machine that is not quiet. */
export const NICENESS: number = process.getuid?.() === 0 ? -10 : 0;

/** The words before a command that runs on `core`. */
export function pinned(core: number): [file: string, ...args: string[]] {
  const onCore = ['taskset', '-c', String(core)] as const;
  return NICENESS === 0 ? [...onCore] : ['nice', '-n', String(NICENESS), ...onCore];
}

/** Holds a process that runs already to `core`, and puts it ahead as far as allowed. */
export async function pinRunning(id: number, core: number): Promise<void> {
  const run = promisify(execFile);
  await run('taskset', ['-apc', String(core), String(id)]);
  if (NICENESS === 0) return;
  const threads = await listed(`/proc/${String(id)}/task`);
  await run('renice', ['-n', String(NICENESS), '-p', ...threads]);
}

export interface PinnedOptions {
  readonly core: number;
  readonly environment?: Readonly<Record<string, string>>;
}

export class PinnedProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly name: string;
  #errors = '';
  #printed = '';
  readonly #killAtExit = (): void => {
    this.child.kill('SIGKILL');
  };

  constructor(command: string, args: readonly string[], options: PinnedOptions) {
    this.name = command;
    const [file, ...before] = pinned(options.core);
    this.child = spawn(file, [...before, command, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.environment },
    });
    this.child.stdout?.on('data', (data: Buffer) => {
      this.#printed = (this.#printed + data.toString('utf8')).slice(-KEPT_CHARS);
    });
    this.child.stderr?.on('data', (data: Buffer) => {
      this.#errors = (this.#errors + data.toString('utf8')).slice(-KEPT_CHARS);
    });
    process.on('exit', this.#killAtExit);
  }

  get id(): number {
    const { pid } = this.child;
    if (pid === undefined) throw new Error(`${this.name} could not be started`);
    return pid;
  }

  /** The last of what it printed on stderr. */
  get errors(): string {
    return this.#errors;
  }

  /** The first line on stdout; rejects when the process ends before it printed one. */
  async firstLine(): Promise<string> {
    const deadline = performance.now() + LISTEN_TIMEOUT_MS;
    while (performance.now() < deadline) {
      const end = this.#printed.indexOf('\n');
      if (end >= 0) return this.#printed.slice(0, end);
      if (this.child.exitCode !== null) break;
      await delay(1);
    }
    throw new Error(`${this.name} is not ready: ${this.#errors}`);
  }

  /** Resolves once something accepts connections on `port`; rejects when the process ends before. */
  async listening(port: number): Promise<void> {
    const deadline = performance.now() + LISTEN_TIMEOUT_MS;
    while (performance.now() < deadline) {
      if (this.child.exitCode !== null) break;
      if (await accepts(port)) return;
      await delay(POLL_MS);
    }
    throw new Error(`${this.name} does not listen on ${String(port)}: ${this.#errors}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off('exit', this.#killAtExit);
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    const hard = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(hard);
  }
}

/** Microseconds on a processor of a process, its threads and its children, precise to the scheduler's nanoseconds. */
export async function processorTimeUs(id: number): Promise<number> {
  let nanoseconds = 0;
  for (const one of await family(id)) {
    for (const thread of await listed(`/proc/${String(one)}/task`)) {
      const text = await content(`/proc/${String(one)}/task/${thread}/schedstat`);
      nanoseconds += Number(text.split(' ')[0]);
    }
  }
  return nanoseconds / 1_000;
}

/** Milliseconds that a process was ready to run and no processor was free for it. */
export async function starvedMs(id: number): Promise<number> {
  const [, waited] = (await content(`/proc/${String(id)}/schedstat`)).split(' ');
  return Number(waited) / 1e6;
}

/** Resident memory of a process and its children in MB (10^6 bytes). */
export async function residentMb(id: number): Promise<number> {
  let kilobytes = 0;
  for (const one of await family(id)) {
    const status = await content(`/proc/${String(one)}/status`);
    kilobytes += Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0);
  }
  return (kilobytes * 1_024) / 1e6;
}

/** Lets `highWaterMb` begin anew with what is resident now. */
export async function resetHighWater(id: number): Promise<void> {
  // proc(5), clear_refs: 5 sets the peak resident set size to the current one.
  await writeFile(`/proc/${String(id)}/clear_refs`, '5');
}

/** The most that was resident of one process since `resetHighWater`, in MB (10^6 bytes). */
export async function highWaterMb(id: number): Promise<number> {
  const status = await content(`/proc/${String(id)}/status`);
  return (Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? NaN) * 1_024) / 1e6;
}

async function family(id: number): Promise<number[]> {
  const all = [id];
  for (const thread of await listed(`/proc/${String(id)}/task`)) {
    const children = await content(`/proc/${String(id)}/task/${thread}/children`);
    for (const child of children.split(' ').filter((text) => text !== '')) {
      all.push(...(await family(Number(child))));
    }
  }
  return all;
}

// A thread may end between the listing and the reading: then it counts for nothing.
async function listed(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function content(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '0');
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
