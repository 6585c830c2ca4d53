// A process that cannot outlive this one. Beside each stands a tiny shell whose standard input is a pipe from us:
// however we end, SIGKILL included, the kernel closes that pipe, and the shell ends the process. Both are in
// sessions of their own, so that Ctrl-C reaches us alone and we decide in which order they go.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

/** etcd and the API server end within 2 s of SIGTERM; what does not is killed. */
const STOP_TIMEOUT_MS = 10_000;
const LOG_TAIL = 4_096;

export interface ProcessOptions {
  readonly name: string;
  readonly logFile: string;
  /** The command only starts the program, and waits for it: signals are for that one. */
  readonly isWrapper?: boolean;
}

export type StartProcess = (
  command: string,
  args: readonly string[],
  options: ProcessOptions,
) => Promise<GuardedProcess>;

export class GuardedProcess implements AsyncDisposable {
  readonly name: string;
  readonly #logFile: string;
  readonly #isWrapper: boolean;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, { name, logFile, isWrapper }: ProcessOptions) {
    this.name = name;
    this.#logFile = logFile;
    this.#isWrapper = isWrapper === true;
    this.#child = child;
  }

  /** Starts `command`; its output is appended to the log file. Rejects when it cannot be started. */
  static async start(
    command: string,
    args: readonly string[],
    options: ProcessOptions,
  ): Promise<GuardedProcess> {
    const log = openSync(options.logFile, 'a');
    try {
      const child = spawn(command, args, { stdio: ['ignore', log, log], detached: true });
      await once(child, 'spawn');
      const guard = startGuard('kill -9 "$1"', [String(child.pid)]);
      child.once('exit', () => guard.kill('SIGKILL'));
      return new GuardedProcess(child, options);
    } finally {
      closeSync(log);
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The end of what it wrote. */
  async log(): Promise<string> {
    return (await readFile(this.#logFile, 'utf8').catch(() => '')).slice(-LOG_TAIL);
  }

  /** Sends the signal and waits for the end; SIGKILL follows where SIGTERM is not enough. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, 'exit');
    const abort = new AbortController();
    this.#signal(signal);
    const timeout = delay(STOP_TIMEOUT_MS, undefined, { signal: abort.signal }).then(
      () => {
        this.#signal('SIGKILL');
      },
      () => undefined,
    );
    await ended;
    abort.abort();
    await timeout;
  }

  #signal(signal: NodeJS.Signals): void {
    const programs = this.#isWrapper ? childrenOf(this.#child.pid ?? 0) : [];
    for (const pid of programs) process.kill(pid, signal);
    if (programs.length === 0) this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
  }
}

/** Of Linux only; none where they cannot be told. */
export function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8');
    return text
      .split(' ')
      .filter((one) => one !== '')
      .map(Number);
  } catch {
    return [];
  }
}

/** Removes the folder when this process ends without having done it; disposing calls that off. */
export function guardFolder(folder: string): Disposable {
  return guardWith('sleep 1; rm -rf "$1"', [folder]);
}

/**
 * Runs the script of /bin/sh when this process ends without having disposed of it. With a `lockFile` the guard holds it,
 * shared, as long as it lives: whoever must not meet what it removes waits with `untilUnlocked`.
 */
export function guardWith(script: string, args: readonly string[], lockFile?: string): Disposable {
  const before = lockFile === undefined ? '' : `exec 9>>'${lockFile}'; flock --shared 9;`;
  const guard = startGuard(script, args, before);
  return { [Symbol.dispose]: () => guard.kill('SIGKILL') };
}

/** Resolves when no guard holds `lockFile`; rejects when one still does after `timeoutS`. */
export async function untilUnlocked(lockFile: string, timeoutS: number): Promise<void> {
  const args = ['--exclusive', '--timeout', String(timeoutS), lockFile, 'true'];
  const waiting = spawn('flock', args, { stdio: 'ignore' });
  const [code] = (await once(waiting, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`somebody still holds ${lockFile} after ${timeoutS} s`);
}

/** Runs `script` once our end of its standard input closes. */
function startGuard(script: string, args: readonly string[], before = ''): ChildProcess {
  const guard = spawn(
    '/bin/sh',
    ['-c', `${before} read -r _; { ${script}\n} 2>/dev/null`, 'guard', ...args],
    {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    },
  );
  guard.on('error', () => undefined);
  guard.unref();
  return guard;
}
