// What every contender needs around it: an application behind it, a Redis beside it, a folder for its files.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openRedisServer } from '../test/support/redis.ts';
import type { Stage } from './contenders.ts';
import { freePort } from './free-port.ts';
import { writeUpstream } from './nginx-text.ts';
import { LOAD_CORE, PinnedProcess } from './pinned-process.ts';

/** Everything ends with `stack`. */
export async function openStage(stack: AsyncDisposableStack): Promise<Stage> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-bench-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const upstream = await freePort();
  const config = await writeUpstream({ folder, name: 'upstream', port: upstream });
  const nginx = stack.use(
    new PinnedProcess('nginx', ['-e', '/dev/null', '-c', config], { core: LOAD_CORE }),
  );
  await nginx.listening(upstream);
  const redis = stack.use(await openRedisServer());
  return { stack, folder, upstream, redis: redis.port };
}
