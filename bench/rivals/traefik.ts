// Traefik with its rate limit in Redis, from files of its own format.
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Contender, Limit } from '../contender.ts';
import { contender } from '../contender.ts';
import { freePort } from '../free-port.ts';
import { PROXY_CORE, PinnedProcess } from '../pinned-process.ts';
import type { Stage } from '../stage.ts';

/** As many as there are requests at once: with go-redis' own ten a processor they would wait for each other. */
const REDIS_CONNECTIONS = 64;
/** Kept idle to the upstream, for as many requests as any load has under way. */
const UPSTREAM_CONNECTIONS = 512;

export async function startTraefik(binary: string, stage: Stage): Promise<Contender> {
  const [port, refusingPort] = [await freePort(), await freePort()];
  const dynamic = path.join(stage.folder, 'traefik-dynamic.yaml');
  const fixed = path.join(stage.folder, 'traefik.yaml');
  await writeFile(dynamic, dynamicText(stage));
  await writeFile(
    fixed,
    `global: {checkNewVersion: false, sendAnonymousUsage: false}
log: {level: ERROR}
serversTransport: {maxIdleConnsPerHost: ${String(UPSTREAM_CONNECTIONS)}}
entryPoints:
  allowed: {address: "127.0.0.1:${String(port)}"}
  refused: {address: "127.0.0.1:${String(refusingPort)}"}
providers: {file: {filename: ${dynamic}, watch: false}}
`,
  );
  const child = stage.stack.use(
    new PinnedProcess(binary, [`--configFile=${fixed}`], { core: PROXY_CORE }),
  );
  await child.listening(port);
  await child.listening(refusingPort);
  return { ...contender('traefik', port, [child]), usesRedis: true, refusingPort };
}

// Traefik's limit hangs on a router, not on the key: one entry point per limit.
function dynamicText({ upstream, redis, limit }: Stage): string {
  const store = `{endpoints: ["127.0.0.1:${String(redis)}"], poolSize: ${String(REDIS_CONNECTIONS)}}`;
  const middleware = ({ capacity, perSecond }: Limit, period: string): string =>
    `{rateLimit: {average: ${String(perSecond)}, period: ${period}, burst: ${String(capacity)}, sourceCriterion: {requestHeaderName: X-Api-Key}, redis: ${store}}}`;
  return `http:
  routers:
    allowed: {rule: "PathPrefix(\`/\`)", entryPoints: [allowed], middlewares: [allowed], service: up}
    refused: {rule: "PathPrefix(\`/\`)", entryPoints: [refused], middlewares: [refused], service: up}
  middlewares:
    allowed: ${middleware(limit, '1s')}
    refused: ${middleware({ capacity: 1, perSecond: 1 }, '1h')}
  services: {up: {loadBalancer: {servers: [{url: "http://127.0.0.1:${String(upstream)}"}]}}}
`;
}
