// `npm run demo`: a policy file, a sidecar, traffic of three clients, and a picture of what was admitted.
// With `-- --redis` the same traffic goes through one sidecar and then through two that share one Redis: the limit
// is one limit, however many enforce it.
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { readArguments } from './arguments.ts';
import { busiestStretch, countInFixedWindows } from './demo/fixed-window.ts';
import { drawPage, drawSvg } from './demo/picture.ts';
import { startSidecar } from './demo/sidecar-process.ts';
import { clients, drive, LENGTH_MS, type Observation } from './demo/traffic.ts';

const root = path.join(import.meta.dirname, '..');
const POLICY = path.join('examples', 'free-and-premium.yaml');
/** The burst bucket's sustained rate (2 a second) as a counter would be set up: 10 in 5 seconds. */
const COUNTER = { limit: 10, windowMs: 5_000 };

const { values } = readArguments({
  command: 'npm run demo',
  about: 'A policy, a sidecar, traffic of three clients, and a picture of what was admitted.',
  lines: [
    '--redis     one sidecar, then two that share one Redis',
    '--out DIR   where to write the picture (demo-out)',
  ],
  config: { options: { redis: { type: 'boolean', default: false }, out: { type: 'string' } } },
});
const out = values.out ?? path.join(root, 'demo-out');

await using upstream = await openUpstream();
if (values.redis) await demoWithRedis();
else await demo('embedded store, one sidecar', { sidecars: 1, flags: [], name: 'demo' });

async function demoWithRedis(): Promise<void> {
  const { openRedis } = await import('../test/support/redis.ts');
  for (const sidecars of [1, 2]) {
    await using redis = await openRedis();
    const what = `one Redis, ${sidecars === 1 ? 'one sidecar' : `${sidecars} sidecars`}`;
    await demo(what, { sidecars, flags: ['--redis', redis.url], name: `demo-redis-${sidecars}` });
  }
}

interface Stage {
  readonly sidecars: number;
  readonly flags: readonly string[];
  readonly name: string;
}

async function demo(what: string, { sidecars, flags, name }: Stage): Promise<void> {
  say(`\nWeir: ${POLICY}, ${what}\n`);
  await using stack = new AsyncDisposableStack();
  const ports: number[] = [];
  for (let i = 0; i < sidecars; i += 1) {
    const sidecar = stack.use(
      await startSidecar([
        ...['--policy', path.join(root, POLICY), '--upstream', `127.0.0.1:${upstream.port}`],
        ...['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', ...flags],
      ]),
    );
    ports.push(sidecar.port);
  }
  const observations = await observe(ports);
  await tell(name, observations);
}

/** Sends all clients' requests, with live progress on a terminal. */
async function observe(ports: readonly number[]): Promise<Observation[]> {
  const observations: Observation[] = [];
  const start = performance.now();
  const progress = setInterval(() => {
    showProgress(observations, performance.now() - start);
  }, 200);
  try {
    await Promise.all(
      clients.map((client) =>
        drive(client, ports, (observation) => {
          observations.push(observation);
        }),
      ),
    );
  } finally {
    clearInterval(progress);
    if (process.stdout.isTTY) say('\r\x1b[K');
  }
  return observations.sort((a, b) => a.atMs - b.atMs);
}

function showProgress(observations: readonly Observation[], elapsedMs: number): void {
  if (!process.stdout.isTTY) return;
  const done = Math.min(1, elapsedMs / LENGTH_MS);
  const bar = '█'.repeat(Math.round(done * 24)).padEnd(24, '░');
  const refused = observations.filter((one) => one.status === 429).length;
  say(`\r\x1b[K${bar}  ${observations.length} requests, ${refused} refused`);
}

async function tell(name: string, observations: readonly Observation[]): Promise<void> {
  const greedy = observations.filter((one) => one.client === 'free, greedy');
  const fixedWindow = countInFixedWindows(
    greedy.map((one) => one.atMs),
    COUNTER,
  );
  const admitted = greedy.map(({ atMs, status }) => ({ atMs, isAdmitted: status < 400 }));
  const summary = [
    table(observations),
    '',
    'Around the edge of a window, in the busiest 1.2 seconds of "free, greedy":',
    `  token bucket (Weir)            ${busiestStretch(admitted, 1_200)} admitted (10 at once, then 2 a second)`,
    `  fixed window, 10 per 5 seconds ${busiestStretch(fixedWindow, 1_200)} admitted`,
  ].join('\n');
  const svg = drawSvg({ observations, fixedWindow, clients: clients.map((one) => one.name) });
  await mkdir(out, { recursive: true });
  await writeFile(path.join(out, `${name}.svg`), svg);
  await writeFile(path.join(out, `${name}.html`), drawPage(svg, summary));
  say(`${summary}\n\nPicture: ${path.relative(process.cwd(), path.join(out, `${name}.html`))}\n`);
}

function table(observations: readonly Observation[]): string {
  const rows = clients.map(({ name }) => {
    const own = observations.filter((one) => one.client === name);
    const refused = own.filter((one) => one.status === 429).length;
    const other = own.filter((one) => one.status >= 400 && one.status !== 429).length;
    return [name, own.length, own.length - refused - other, refused, other].map(String);
  });
  const all = [['client', 'sent', 'admitted', 'refused', 'failed'], ...rows];
  const widths = [0, 1, 2, 3, 4].map((i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  return all
    .map((row) =>
      row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))),
    )
    .map((row) => `  ${row.join('  ')}`)
    .join('\n');
}

async function openUpstream(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end('{"items":[]}\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function say(text: string): void {
  process.stdout.write(text);
}
