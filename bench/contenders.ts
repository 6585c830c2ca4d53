// Starts the contenders of a run.
import path from 'node:path';
import process from 'node:process';
import type { Contender, ContenderName } from './contender.ts';
import { TITLES } from './contender.ts';
import { freePort } from './free-port.ts';
import { writeLuaLimiter, writePlainProxy } from './nginx-text.ts';
import { PROXY_CORE, PinnedProcess } from './pinned-process.ts';
import { startSidecar, writePolicy } from './sidecar.ts';

export interface Stage {
  /** Everything started goes here. */
  readonly stack: AsyncDisposableStack;
  /** The run's temporary folder. */
  readonly folder: string;
  readonly upstream: number;
  readonly redis: number;
}

type Start = (stage: Stage) => Promise<Contender>;

/** Every contender that needs nothing but what is installed, in the order of the report. */
export const starts: Readonly<Partial<Record<ContenderName, Start>>> = {
  direct: (stage) => Promise.resolve(contender('direct', stage.upstream, [])),
  relay: startRelay,
  nginx: startNginx,
  'nginx-lua': startNginxLua,
  weir: (stage) => startWeir('weir', 0, stage),
  'weir-32': (stage) => startWeir('weir-32', 31, stage),
};

async function startRelay(stage: Stage): Promise<Contender> {
  const port = await freePort();
  const relay = path.join(import.meta.dirname, 'tcp-relay.ts');
  const args = [relay, String(port), String(stage.upstream)];
  const child = stage.stack.use(new PinnedProcess(process.execPath, args, { core: PROXY_CORE }));
  await child.listening(port);
  return contender('relay', port, [child]);
}

async function startNginx(stage: Stage): Promise<Contender> {
  const port = await freePort();
  const options = { folder: stage.folder, name: 'nginx', port };
  const config = await writePlainProxy(options, stage.upstream);
  return contender('nginx', port, [await startNginxWith(config, port, stage)]);
}

async function startNginxLua(stage: Stage): Promise<Contender> {
  const port = await freePort();
  const options = { folder: stage.folder, name: 'nginx-lua', port };
  const config = await writeLuaLimiter(options, stage);
  const child = await startNginxWith(config, port, stage);
  return { ...contender('nginx-lua', port, [child]), usesRedis: true, refusingPort: port };
}

async function startNginxWith(config: string, port: number, stage: Stage): Promise<PinnedProcess> {
  const child = stage.stack.use(
    new PinnedProcess('nginx', ['-e', '/dev/null', '-c', config], { core: PROXY_CORE }),
  );
  await child.listening(port);
  return child;
}

async function startWeir(
  name: 'weir' | 'weir-32',
  otherRules: number,
  stage: Stage,
): Promise<Contender> {
  const policy = await writePolicy(stage.folder, name, otherRules);
  const { upstream, redis } = stage;
  const sidecar = stage.stack.use(await startSidecar({ policy, upstream, redis }));
  const { port } = sidecar;
  return { ...contender(name, port, [sidecar.process]), usesRedis: true, refusingPort: port };
}

export function contender(
  name: ContenderName,
  port: number,
  processes: readonly PinnedProcess[],
): Contender {
  return { name, title: TITLES[name], processes, usesRedis: false, port };
}
