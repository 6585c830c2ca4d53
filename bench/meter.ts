// Puts a load on a contender and tells what it cost: processor time of all its processes and of Redis, from the
// scheduler's own accounts, per request that was answered.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Contender } from './contender.ts';
import { PROXY_CORE, pinRunning, processorTimeUs, residentMb } from './pinned-process.ts';
import { loadWithWrk } from './wrk.ts';
import type { LoadOptions, LoadResult } from './wrk.ts';

const run = promisify(execFile);

/** Per request that was answered, but for the memory. */
export interface Cost {
  /** Microseconds on a processor: the contender's processes, and Redis. */
  readonly proxyUs: number;
  readonly redisUs: number;
  /** Script calls. */
  readonly redisCalls: number;
  /** Of the contender's processes, after the load, in MB (10^6 bytes). */
  readonly residentMb: number;
}

/** Whose cost is told. */
export type Metered = Pick<Contender, 'processes' | 'usesRedis'>;

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

  /** wrk's load. */
  async load(contender: Metered, options: LoadOptions): Promise<LoadResult & Cost> {
    return this.measure(contender, () => loadWithWrk(options));
  }

  /** Any load that tells how many requests were answered. */
  async measure<T extends { readonly requests: number }>(
    contender: Metered,
    load: () => Promise<T>,
  ): Promise<T & Cost> {
    const before = await this.#spent(contender);
    const result = await load();
    const after = await this.#spent(contender);
    const perRequest = (of: 'proxyUs' | 'redisUs' | 'calls'): number =>
      (after[of] - before[of]) / result.requests;
    const memory = await Promise.all(contender.processes.map((one) => residentMb(one.id)));
    return {
      ...result,
      proxyUs: perRequest('proxyUs'),
      redisUs: contender.usesRedis ? perRequest('redisUs') : 0,
      redisCalls: contender.usesRedis ? perRequest('calls') : 0,
      residentMb: memory.reduce((sum, one) => sum + one, 0),
    };
  }

  async #spent(
    contender: Metered,
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
