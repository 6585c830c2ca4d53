// Who can be measured on this machine. What no registry carries as a program is named by WEIR_BENCH_<PEER>; whoever
// cannot be started is told by name, with what would bring it.
import { access } from 'node:fs/promises';
import process from 'node:process';
import type { Candidate } from './contender.ts';
import { TITLES } from './contender.ts';
import {
  startNginx,
  startNginxLua,
  startNoProxy,
  startRelay,
  startWeir,
  startWeirWith32Rules,
} from './contenders.ts';
import { LUA_MODULES, LUA_REDIS_CLIENT } from './nginx-text.ts';
import { startEnvoyLocal, startEnvoyRatelimit } from './rivals/envoy.ts';
import { startTraefik } from './rivals/traefik.ts';
import { envoyVersion, nginxVersion, ratelimitVersion, traefikVersion } from './versions.ts';

export interface LineUp {
  readonly present: readonly Candidate[];
  /** Title, and what would bring it. */
  readonly absent: readonly string[];
}

export async function lineUp(): Promise<LineUp> {
  const parts = [
    await installed(),
    ...[await luaRival(), await traefikRival(), await envoyRivals(), await ratelimitRival()],
  ];
  return {
    present: parts.flatMap(({ present }) => present),
    absent: parts.flatMap(({ absent }) => absent),
  };
}

async function installed(): Promise<LineUp> {
  const nginx: Candidate = { name: 'nginx', start: startNginx, version: await nginxVersion() };
  return here(
    { name: 'direct', start: startNoProxy },
    { name: 'relay', start: startRelay },
    nginx,
    { name: 'weir', start: startWeir },
    { name: 'weir-32', start: startWeirWith32Rules },
  );
}

async function luaRival(): Promise<LineUp> {
  for (const file of [...LUA_MODULES, LUA_REDIS_CLIENT]) {
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (!isThere) return away('nginx-lua', 'Debian packages nginx-extras and lua-nginx-redis');
  }
  return here({ name: 'nginx-lua', start: startNginxLua, version: await nginxVersion() });
}

async function traefikRival(): Promise<LineUp> {
  const binary = process.env['WEIR_BENCH_TRAEFIK'];
  if (binary === undefined) return away('traefik', 'WEIR_BENCH_TRAEFIK');
  return here({
    name: 'traefik',
    start: (stage) => startTraefik(binary, stage),
    version: await traefikVersion(binary),
  });
}

async function envoyRivals(): Promise<LineUp> {
  const binary = process.env['WEIR_BENCH_ENVOY'];
  if (binary === undefined) return away('envoy-local', 'WEIR_BENCH_ENVOY');
  return here({
    name: 'envoy-local',
    start: (stage) => startEnvoyLocal(binary, stage),
    version: await envoyVersion(binary),
  });
}

async function ratelimitRival(): Promise<LineUp> {
  const envoy = process.env['WEIR_BENCH_ENVOY'];
  const ratelimit = process.env['WEIR_BENCH_RATELIMIT'];
  if (envoy === undefined || ratelimit === undefined) {
    return away('envoy-ratelimit', 'WEIR_BENCH_ENVOY and WEIR_BENCH_RATELIMIT');
  }
  return here({
    name: 'envoy-ratelimit',
    start: (stage) => startEnvoyRatelimit({ envoy, ratelimit }, stage),
    version: `${await envoyVersion(envoy)}, ${await ratelimitVersion(ratelimit)}`,
  });
}

function here(...present: readonly Candidate[]): LineUp {
  return { present, absent: [] };
}

function away(name: Candidate['name'], needs: string): LineUp {
  return { present: [], absent: [`${TITLES[name]} (${needs})`] };
}
