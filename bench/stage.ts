// What every contender needs around it: an application behind it, a Redis beside it, a folder for its files.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { openRedisServer } from '../test/support/redis.ts';
import type { Limit } from './contender.ts';
import { NO_LIMIT } from './contender.ts';
import { freePort } from './free-port.ts';
import { writeUpstream } from './nginx-text.ts';
import { LOAD_CORE, PinnedProcess } from './pinned-process.ts';

export interface Stage {
  /** Everything started goes here. */
  readonly stack: AsyncDisposableStack;
  /** The run's temporary folder. */
  readonly folder: string;
  readonly upstream: number;
  /** The same application over HTTP/2 without TLS, for who knows beforehand that it is (RFC 9113 §3.3). */
  readonly http2Upstream: number;
  readonly redis: number;
  /** Of each key but `deny`, which is refused after one request an hour. */
  readonly limit: Limit;
}

/** Each process of a run listens for the end of this one, to end with it: more than Node takes for a leak. */
const MOST_PROCESSES = 64;

/** Everything ends with `stack`. */
export async function openStage(stack: AsyncDisposableStack): Promise<Stage> {
  process.setMaxListeners(MOST_PROCESSES);
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [upstream, http2Upstream] = [await freePort(), await freePort()];
  const config = await writeUpstream({ folder, name: 'upstream', port: upstream }, http2Upstream);
  const nginx = stack.use(
    new PinnedProcess('nginx', ['-e', '/dev/null', '-c', config], { core: LOAD_CORE }),
  );
  await nginx.listening(upstream);
  const redis = stack.use(await openRedisServer());
  return { stack, folder, upstream, http2Upstream, redis: redis.port, limit: NO_LIMIT };
}

/** The same surroundings with a folder of its own, for one more instance of a contender. */
export async function besides(stage: Stage, name: string): Promise<Stage> {
  const folder = path.join(stage.folder, name);
  await mkdir(folder, { recursive: true });
  return { ...stage, folder };
}
