// All simulated sidecars, spread over some processes: one could not decrypt for a thousand without being what is measured.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { eventually } from '../../test/support/redis.ts';
import type { FleetAnswer, FleetRequest, SimulatedPod } from './fleet-message.ts';

const PROCESSES = 2;
const program = path.join(import.meta.dirname, '..', 'control-sidecars.ts');

export class Fleet implements AsyncDisposable {
  readonly size: number;
  readonly #workers: readonly Worker[];

  private constructor(workers: readonly Worker[], size: number) {
    this.#workers = workers;
    this.size = size;
  }

  /** Every sidecar starts to connect at once. `ca` is PEM text. */
  static async open(
    { url, ca }: { readonly url: string; readonly ca: string },
    pods: readonly SimulatedPod[],
  ): Promise<Fleet> {
    const workers = Array.from({ length: PROCESSES }, () => new Worker());
    const fleet = new Fleet(workers, pods.length);
    await Promise.all(
      workers.map((worker, index) => {
        const share = pods.filter((_, i) => i % PROCESSES === index);
        return worker.ask({ kind: 'open', url, ca, pods: share });
      }),
    );
    return fleet;
  }

  /** Resolves with the times of all `count` sidecars that a version of a policy is about. */
  async inForce(key: string, count: number, withinMs: number): Promise<readonly number[]> {
    return this.#all({ kind: 'times', key }, count, withinMs);
  }

  /** From now on `programmed` speaks of what comes. */
  async mark(): Promise<void> {
    await this.#ask({ kind: 'mark' });
  }

  /** Resolves with the times at which each sidecar obeyed the operator for the first time since the mark. */
  async programmed(withinMs: number): Promise<readonly number[]> {
    return this.#all({ kind: 'programmed' }, this.size, withinMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker[Symbol.asyncDispose]()));
  }

  async #all(request: FleetRequest, count: number, withinMs: number): Promise<readonly number[]> {
    let times: readonly number[] = [];
    const what = `${String(count)} sidecars: ${JSON.stringify(request)}`;
    const isComplete = async (): Promise<boolean> => {
      times = await this.#ask(request);
      return times.length >= count;
    };
    await eventually(what, isComplete, withinMs).catch((error: unknown) => {
      throw new Error(`${String(times.length)} of ${what}`, { cause: error });
    });
    return times;
  }

  async #ask(request: FleetRequest): Promise<readonly number[]> {
    return (await Promise.all(this.#workers.map((worker) => worker.ask(request)))).flat();
  }
}

class Worker implements AsyncDisposable {
  readonly #child: ChildProcess = fork(program);
  readonly #asked = new Map<number, (times: readonly number[]) => void>();
  readonly #ended: Promise<never>;
  #id = 0;

  constructor() {
    this.#ended = once(this.#child, 'exit').then(() => {
      throw new Error('a process of simulated sidecars has ended');
    });
    this.#ended.catch(() => undefined);
    this.#child.on('message', (message) => {
      // The other end is bench/control-sidecars.ts.
      const { id, times } = message as FleetAnswer;
      this.#asked.get(id)?.(times);
      this.#asked.delete(id);
    });
  }

  async ask(request: FleetRequest): Promise<readonly number[]> {
    const { promise, resolve } = Promise.withResolvers<readonly number[]>();
    this.#id += 1;
    this.#asked.set(this.#id, resolve);
    if (this.#child.connected) this.#child.send({ id: this.#id, ...request });
    return Promise.race([promise, this.#ended]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
