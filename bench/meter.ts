// Puts a load on a contender and tells what it cost: processor time of all its processes and of Redis, from the
// scheduler's own accounts, per request that was answered.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Contender } from './contender.ts';
import { PROXY_CORE, pinRunning, processorTimeUs, residentMb } from './pinned-process.ts';
import { loadWithWrk } from './wrk.ts';
import type { LoadOptions, LoadResult } from './wrk.ts';

const run = promisify(execFile);

export interface Measured extends LoadResult {
  readonly proxyUs: number;
  readonly redisUs: number;
  readonly redisCalls: number;
  readonly residentMb: number;
}

export class Meter {
  readonly #redisPort: number;
  readonly #redisProcess: number;

  /** Use `open`. */
  constructor(redisPort: number, redisProcess: number) {
    this.#redisPort = redisPort;
    this.#redisProcess = redisProcess;
  }

  /** Moves the Redis on `port` to the proxy's core. */
  static async open(port: number): Promise<Meter> {
    const server = await redisInfo(port, 'server');
    const id = Number(/process_id:(\d+)/.exec(server)?.[1]);
    await pinRunning(id, PROXY_CORE);
    return new Meter(port, id);
  }

  async load(contender: Contender, options: LoadOptions): Promise<Measured> {
    const before = await this.#spent(contender);
    const load = await loadWithWrk(options);
    const after = await this.#spent(contender);
    const perRequest = (of: 'proxyUs' | 'redisUs' | 'calls'): number =>
      (after[of] - before[of]) / load.requests;
    const memory = await Promise.all(contender.processes.map((one) => residentMb(one.id)));
    return {
      ...load,
      proxyUs: perRequest('proxyUs'),
      redisUs: contender.usesRedis ? perRequest('redisUs') : 0,
      redisCalls: contender.usesRedis ? perRequest('calls') : 0,
      residentMb: memory.reduce((sum, one) => sum + one, 0),
    };
  }

  async #spent(
    contender: Contender,
  ): Promise<{ readonly proxyUs: number; readonly redisUs: number; readonly calls: number }> {
    const calls = scriptCalls(await redisInfo(this.#redisPort, 'commandstats'));
    const own = await Promise.all(contender.processes.map((one) => processorTimeUs(one.id)));
    return {
      proxyUs: own.reduce((sum, one) => sum + one, 0),
      redisUs: await processorTimeUs(this.#redisProcess),
      calls,
    };
  }
}

async function redisInfo(port: number, section: string): Promise<string> {
  const { stdout } = await run('redis-cli', ['-p', String(port), 'info', section]);
  return stdout;
}

function scriptCalls(commandStats: string): number {
  const calls = commandStats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
  return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
}
