// One worker as the parent sees it: a child process with a channel, until it exits.
import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import process from 'node:process';
import type { SidecarReport } from '../policy/pushed-config.ts';
import { type FromWorker, type Inherited, type ToWorker, WORKER_VARIABLE } from './message.ts';

/** What a worker says of itself; the others are settled where they were asked for. */
export type Unasked = Exclude<FromWorker, Settled>;
type Settled = Extract<FromWorker, { kind: 'took' | 'metrics' | 'description' }>;

export interface WorkerEvents {
  readonly onMessage: (worker: WorkerProcess, message: Unasked) => void;
  /** Once, after the last message; with the connections that it had not taken yet. */
  readonly onExit: (worker: WorkerProcess, how: string, untaken: readonly Socket[]) => void;
}

export class WorkerProcess {
  isReady = false;
  report: SidecarReport | undefined = undefined;
  readonly #child: ChildProcess;
  #nextId = 0;
  readonly #offered = new Map<number, Socket>();
  readonly #questions = new Map<number, (answer: FromWorker | undefined) => void>();

  constructor(events: WorkerEvents, inherited: Inherited) {
    const script = process.argv[1] ?? '';
    this.#child = fork(script, process.argv.slice(2), {
      env: { ...process.env, [WORKER_VARIABLE]: '1' },
      // The ready line on stdout is the parent's to print.
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child.on('message', (message: FromWorker) => {
      if (!this.#settle(message)) events.onMessage(this, message);
    });
    this.#child.once('exit', (code, signal) => {
      for (const resolve of this.#questions.values()) resolve(undefined);
      this.#questions.clear();
      events.onExit(this, signal ?? `code ${code ?? 'unknown'}`, [...this.#offered.values()]);
    });
    // A channel that breaks ends with the process; `exit` says so.
    this.#child.on('error', () => undefined);
    this.send({ kind: 'start', inherited });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  /** Hands a connection over; it stays open here until the worker says that it took it. False when the worker has gone. */
  handOver(socket: Socket, route: number): boolean {
    if (!this.#child.connected) return false;
    this.#nextId += 1;
    this.#offered.set(this.#nextId, socket);
    const message: ToWorker = { kind: 'connection', id: this.#nextId, route };
    this.#child.send(message, socket, { keepOpen: true }, () => undefined);
    return true;
  }

  /** Undefined when the worker ends, or does not answer within `withinMs`. */
  ask(what: 'metrics' | 'describe', withinMs: number): Promise<FromWorker | undefined> {
    const { promise, resolve } = Promise.withResolvers<FromWorker | undefined>();
    this.#nextId += 1;
    const id = this.#nextId;
    const giveUp = setTimeout(() => {
      this.#questions.delete(id);
      resolve(undefined);
    }, withinMs);
    this.#questions.set(id, (answer) => {
      clearTimeout(giveUp);
      resolve(answer);
    });
    this.send({ kind: 'ask', id, what });
    return promise;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Whether the message was about something this object keeps track of. */
  #settle(message: FromWorker): message is Settled {
    if (message.kind === 'took') {
      // Closes this process' copy of the connection; the worker has its own.
      this.#offered.get(message.id)?.destroy();
      this.#offered.delete(message.id);
      return true;
    }
    if (message.kind !== 'metrics' && message.kind !== 'description') return false;
    const resolve = this.#questions.get(message.id);
    this.#questions.delete(message.id);
    resolve?.(message);
    return true;
  }
}
