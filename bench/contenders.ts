// Contenders that need nothing but what is installed, in the order of the report.
import path from 'node:path';
import process from 'node:process';
import type { Contender, Start } from './contender.ts';
import { contender } from './contender.ts';
import { freePort } from './free-port.ts';
import { writeLuaLimiter, writePlainProxy } from './nginx-text.ts';
import { PROXY_CORE, PinnedProcess } from './pinned-process.ts';
import { startSidecar, writePolicy } from './sidecar.ts';
import type { Stage } from './stage.ts';

export const startNoProxy: Start = (stage) =>
  Promise.resolve(contender('direct', stage.upstream, []));

export const startRelay: Start = async (stage) => {
  const port = await freePort();
  const relay = path.join(import.meta.dirname, 'tcp-relay.ts');
  const args = [relay, String(port), String(stage.upstream)];
  const child = stage.stack.use(new PinnedProcess(process.execPath, args, { core: PROXY_CORE }));
  await child.listening(port);
  return contender('relay', port, [child]);
};

export const startNginx: Start = async (stage) => {
  const port = await freePort();
  const options = { folder: stage.folder, name: 'nginx', port };
  const config = await writePlainProxy(options, stage.upstream);
  return contender('nginx', port, [await startNginxWith(config, port, stage)]);
};

export const startNginxLua: Start = async (stage) => {
  const port = await freePort();
  const options = { folder: stage.folder, name: 'nginx-lua', port };
  const config = await writeLuaLimiter(options, stage);
  const child = await startNginxWith(config, port, stage);
  return { ...contender('nginx-lua', port, [child]), usesRedis: true, refusingPort: port };
};

async function startNginxWith(config: string, port: number, stage: Stage): Promise<PinnedProcess> {
  const child = stage.stack.use(
    new PinnedProcess('nginx', ['-e', '/dev/null', '-c', config], { core: PROXY_CORE }),
  );
  await child.listening(port);
  return child;
}

export const startWeir: Start = (stage) => startWeirAs('weir', 0, stage);

export const startWeirWith32Rules: Start = (stage) => startWeirAs('weir-32', 31, stage);

/** The same sidecar before an application that speaks HTTP/2. */
export const startWeirHttp2: Start = (stage) =>
  startWeirAs('weir-http2', 0, { ...stage, upstream: stage.http2Upstream });

async function startWeirAs(
  name: 'weir' | 'weir-32' | 'weir-http2',
  otherRules: number,
  stage: Stage,
): Promise<Contender> {
  const { folder, upstream, redis, limit } = stage;
  const policy = await writePolicy(folder, name, { otherRules, limit });
  const sidecar = stage.stack.use(await startSidecar({ policy, upstream, redis }));
  const { port } = sidecar;
  return { ...contender(name, port, [sidecar.process]), usesRedis: true, refusingPort: port };
}
