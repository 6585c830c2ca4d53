// Traffic for a time of outage: an open loop over keep-alive connections that tells, per answer, when it was asked for,
// how long it took and whether the store spoke in it.
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

export interface Answer {
  /** When the request left, by `performance.now`. */
  readonly atMs: number;
  readonly latencyMs: number;
  readonly status: number;
  /** The answer carries quota fields: the store was asked. */
  readonly isFromStore: boolean;
}

export interface TrafficOptions {
  readonly port: number;
  readonly perSecond: number;
  /** Sent in turns. */
  readonly keys: readonly string[];
}

export class Traffic implements AsyncDisposable {
  readonly #options: TrafficOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #pending = new Set<Promise<void>>();
  #sent = 0;

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  /** Sends for `ms` and waits for the answers. A request without an answer rejects. */
  async run(ms: number): Promise<Answer[]> {
    const answers: Answer[] = [];
    const start = performance.now();
    const total = Math.floor((ms * this.#options.perSecond) / 1_000);
    for (let i = 0; i < total; i += 1) {
      const dueIn = start + (i * 1_000) / this.#options.perSecond - performance.now();
      if (dueIn > 0) await delay(dueIn);
      const asked = this.#ask().then((answer) => {
        answers.push(answer);
      });
      this.#pending.add(asked);
      asked.finally(() => this.#pending.delete(asked)).catch(() => undefined);
    }
    await Promise.all(this.#pending);
    return answers.sort((a, b) => a.atMs - b.atMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await Promise.allSettled(this.#pending);
  }

  #ask(): Promise<Answer> {
    const { keys, port } = this.#options;
    const key = keys[this.#sent % keys.length] ?? '';
    this.#sent += 1;
    const atMs = performance.now();
    return new Promise((resolve, reject) => {
      const headers = { 'X-Api-Key': key };
      const asked = request({ host: '127.0.0.1', port, agent: this.#agent, headers }, (answer) => {
        answer.resume();
        answer.on('end', () => {
          resolve({
            atMs,
            latencyMs: performance.now() - atMs,
            status: answer.statusCode ?? 0,
            isFromStore: answer.headers['ratelimit'] !== undefined,
          });
        });
      });
      asked.on('error', reject);
      asked.end();
    });
  }
}
