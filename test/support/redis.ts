// A real Redis (or Valkey) for a test: REDIS_URL, else a server binary started privately, else a container.
// Servers of their own listen on a free port, keep nothing on disk that outlives them, and end with the fixture.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { accessSync, constants } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { closed, listenOnLoopback } from './loopback.ts';

/** A server under slow emulation and two busy cores has taken 3 s to start. */
const START_TIMEOUT_MS = 15_000;
const POLL_MS = 20;
const HOW_TO_GET_ONE =
  'no Redis for tests: set REDIS_URL, or install redis-server, valkey-server or (Debian) redis-tools, or start Docker';

export interface RedisFixture extends AsyncDisposable {
  /** `redis://…`, as `weir run --redis` takes it. */
  readonly url: string;
  /** A client of the fixture; closed with it. */
  client(): Redis;
}

export interface RedisOptions {
  /** More server arguments, e.g. `['--maxmemory', '2mb']`. */
  readonly args?: readonly string[];
}

/** A Redis from REDIS_URL, a local binary or a container. Rejects with how to get one when there is none. */
export async function openRedis(options: RedisOptions = {}): Promise<RedisFixture> {
  const { REDIS_URL } = process.env;
  if (REDIS_URL && options.args === undefined) return new ExternalRedis(REDIS_URL);
  if (findBinary() !== undefined) return openRedisServer(options);
  return openContainer();
}

/** A server of the test's own, which it may freeze, stop and start. Needs a local binary. */
export async function openRedisServer(options: RedisOptions = {}): Promise<RedisServer> {
  return startOnFreePort(options.args ?? [], []);
}

class ExternalRedis implements RedisFixture {
  readonly url: string;
  readonly #clients = new Clients();

  constructor(url: string) {
    this.url = url;
  }

  client(): Redis {
    return this.#clients.open(this.url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clients[Symbol.asyncDispose]();
  }
}

/** Closes every client with the fixture. */
class Clients implements AsyncDisposable {
  readonly #open: Redis[] = [];

  open(url: string): Redis {
    const redis = new Redis(url, { protocol: 2, retryStrategy: () => 50 });
    redis.on('error', () => undefined);
    this.#open.push(redis);
    return redis;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const redis of this.#open) redis.disconnect();
    await Promise.resolve();
  }
}

interface Binary {
  readonly path: string;
  /** Debian's redis-tools ships the server as redis-check-rdb: it is one binary that goes by its name. */
  readonly argv0: string;
}

function findBinary(): Binary | undefined {
  const candidates = [
    ['redis-server', 'redis-server'],
    ['valkey-server', 'valkey-server'],
    ['redis-check-rdb', 'redis-server'],
  ] as const;
  for (const [file, argv0] of candidates) {
    for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
      const full = path.join(folder, file);
      if (isExecutable(full)) return { path: full, argv0 };
    }
  }
  return undefined;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** One server process of the test's own. */
export class RedisServer implements RedisFixture {
  readonly port: number;
  readonly url: string;
  readonly #folder: string;
  readonly #args: readonly string[];
  readonly #clients = new Clients();
  #child: ChildProcess | undefined = undefined;
  readonly #killAtExit = (): void => {
    this.#child?.kill('SIGKILL');
  };

  constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
    this.#folder = folder;
    this.#args = args;
    process.on('exit', this.#killAtExit);
  }

  /** Starts the process; resolves once it answers. False when the port was taken meanwhile. */
  async start(): Promise<boolean> {
    const binary = findBinary();
    if (binary === undefined) throw new Error(HOW_TO_GET_ONE);
    const child = spawn(binary.path, this.#args, {
      argv0: binary.argv0,
      stdio: 'ignore',
      cwd: this.#folder,
    });
    this.#child = child;
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (performance.now() < deadline) {
      if (child.exitCode !== null || child.signalCode !== null) return false;
      if (await answersPing(this.port)) return true;
      await delay(POLL_MS);
    }
    throw new Error(`the server on port ${this.port} did not answer: ${await this.log()}`);
  }

  /** Ends the process at once, as a crash would; `start` brings up an empty one on the same port. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** The process keeps its sockets and answers nothing. */
  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }

  client(): Redis {
    return this.#clients.open(this.url);
  }

  async log(): Promise<string> {
    return readFile(path.join(this.#folder, 'server.log'), 'utf8').catch(() => 'no log');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clients[Symbol.asyncDispose]();
    await this.stop();
    process.off('exit', this.#killAtExit);
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** `lead` comes before the port: a configuration file, for a sentinel. */
async function startOnFreePort(
  args: readonly string[],
  lead: readonly string[],
): Promise<RedisServer> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const port = await freePort();
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-redis-'));
    const server = new RedisServer(port, folder, [
      ...lead,
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ...['--logfile', path.join(folder, 'server.log'), '--save', '', '--appendonly', 'no'],
      ...args,
    ]);
    if (await server.start()) return server;
    await server[Symbol.asyncDispose]();
  }
  throw new Error('no free port for a Redis server');
}

/** A port nobody listens on. A Cluster’s bus listens 10 000 above its port, so one above 55 535 would have none. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    const port = await listenOnLoopback(server);
    await closed(server);
    if (port < 55_535) return port;
  }
}

async function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('connect', () => socket.write('PING\r\n'));
    // A loading server or one that wants a password answers too; only silence is not an answer.
    socket.on('data', (data) => {
      resolve(!data.toString('latin1').startsWith('-LOADING'));
      socket.destroy();
    });
    socket.on('close', () => {
      resolve(false);
    });
  });
}

async function openContainer(): Promise<RedisFixture> {
  if (spawnSync('docker', ['info'], { stdio: 'ignore', timeout: 5_000 }).status !== 0) {
    throw new Error(HOW_TO_GET_ONE);
  }
  const { GenericContainer } = await import('testcontainers');
  const image = process.env['WEIR_REDIS_IMAGE'] ?? 'redis:7';
  const container = await new GenericContainer(image).withExposedPorts(6379).start();
  const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
  const external = new ExternalRedis(url);
  return {
    url,
    client: () => external.client(),
    [Symbol.asyncDispose]: async () => {
      await external[Symbol.asyncDispose]();
      await container.stop();
    },
  };
}

export interface RedisCluster extends AsyncDisposable {
  /** `redis+cluster://…` */
  readonly url: string;
  readonly servers: readonly RedisServer[];
}

/** Three masters without replicas. */
export async function openRedisCluster(): Promise<RedisCluster> {
  await using stack = new AsyncDisposableStack();
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
  const servers: RedisServer[] = [];
  for (let i = 0; i < 3; i += 1) servers.push(stack.use(await startOnFreePort(args, [])));
  const clients = servers.map((server) => server.client());
  const [first] = servers;
  for (const [i, client] of clients.entries()) {
    const from = Math.floor((16_384 * i) / servers.length);
    const to = Math.floor((16_384 * (i + 1)) / servers.length) - 1;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
    if (first !== undefined && i > 0) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port);
    }
  }
  await eventually('the Cluster agrees on its slots', async () => {
    const infos = await Promise.all(clients.map((client) => client.call('CLUSTER', 'INFO')));
    return infos.every(
      (info) => String(info).includes('cluster_state:ok') && String(info).includes('nodes:3'),
    );
  });
  const owned = stack.move();
  return {
    url: `redis+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    servers,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export interface RedisSentinel extends AsyncDisposable {
  /** `redis+sentinel://…/weir` */
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
  /** Asks the sentinel for a failover; resolves when it names the other server. */
  failover(): Promise<void>;
}

/** A master, its replica, and one sentinel that may decide alone. */
export async function openRedisSentinel(): Promise<RedisSentinel> {
  await using stack = new AsyncDisposableStack();
  const master = stack.use(await startOnFreePort(['--repl-diskless-sync-delay', '0'], []));
  const replicaOf = ['--replicaof', `127.0.0.1 ${master.port}`];
  const replica = stack.use(await startOnFreePort(replicaOf, []));
  await eventually('the replica is in step', async () =>
    (await replica.client().info('replication')).includes('master_link_status:up'),
  );
  const sentinel = stack.use(await startSentinel());
  const commander = sentinel.client();
  await commander.call('SENTINEL', 'MONITOR', 'weir', '127.0.0.1', master.port, '1');
  await commander.call('SENTINEL', 'SET', 'weir', 'down-after-milliseconds', '1000');
  await commander.call('SENTINEL', 'SET', 'weir', 'failover-timeout', '3000');
  const replicasKnown = async (): Promise<boolean> => {
    const replicas = await commander.call('SENTINEL', 'REPLICAS', 'weir');
    return Array.isArray(replicas) && replicas.length > 0;
  };
  await eventually('the sentinel knows the replica', replicasKnown);
  const owned = stack.move();
  return {
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/weir`,
    master,
    replica,
    sentinel,
    failover: async () => {
      const before = await masterPort(commander);
      // Refused (NOGOODSLAVE) until the sentinel has heard from the replica that it is well.
      await eventually('the sentinel agrees to a failover', async () =>
        commander.call('SENTINEL', 'FAILOVER', 'weir').then(
          () => true,
          () => false,
        ),
      );
      await eventually('the sentinel names the other server', async () => {
        return (await masterPort(commander)) !== before;
      });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function masterPort(commander: Redis): Promise<string> {
  const address = await commander.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'weir');
  return Array.isArray(address) ? String(address[1]) : '';
}

async function startSentinel(): Promise<RedisServer> {
  // A sentinel rewrites its configuration, so it needs a file of its own.
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-sentinel-'));
  const file = path.join(folder, 'sentinel.conf');
  await writeFile(file, '');
  return startOnFreePort(['--sentinel'], [file]);
}

/** Polls until `condition` holds. Rejects, naming it, after 15 s or `timeoutMs`. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number = START_TIMEOUT_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    if (await condition()) return;
    await delay(POLL_MS);
  }
  throw new Error(`not within ${timeoutMs} ms: ${what}`);
}
