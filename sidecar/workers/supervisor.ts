// The parent of one or several workers. It holds the listening socket and accepts, so that no connection is refused
// while a worker restarts: connections wait here and are handed over when one is ready. Limits and metrics stay those
// of one sidecar: the embedded store lives here, and numbers are added up here.
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Bundle } from '../../contract/bundle.ts';
import { WeirError, type ErrorCode } from '../../contract/errors.ts';
import type { PolicyRefusal } from '../../contract/stream.ts';
import { dumpMetrics, renderMetrics, type MetricDump } from '../admin/metric.ts';
import { openAdmin } from '../admin/server.ts';
import { AppHealth } from '../app-health/app-health.ts';
import type { Log } from '../log.ts';
import { CLOSING_MS, describeReady, type RunDependencies } from '../run.ts';
import type { ConfigTarget, PushedConfig, SidecarReport } from '../policy/pushed-config.ts';
import { listenAt } from '../proxy/listening.ts';
import { maxQuietMs } from '../proxy/proxy-options.ts';
import type { RunConfig } from '../run-config.ts';
import type { HostPort } from '../../contract/setting.ts';
import type { CertificateTexts } from '../tls/certificate-files.ts';
import { Arrivals } from './arrivals.ts';
import type { FromWorker, Inherited } from './message.ts';
import { Rollout } from './rollout.ts';
import { WaitingSockets } from './waiting-sockets.ts';
import { type Unasked, type WorkerEvents, WorkerProcess } from './worker-process.ts';
import { WorkerStores } from './worker-stores.ts';

/** A worker that answers no question for this long is left out of a scrape. */
const ANSWER_WITHIN_MS = 2_000;
/** Restarts without a pause, so that two crashes in a minute go unnoticed. */
const QUICK_RESTARTS = 5;
const RESTARTS_FORGOTTEN_MS = 60_000;
/** A worker that cannot stay up must not eat the machine. */
const SLOW_RESTART_MS = 1_000;

/** Serves with `config.workers` workers until `signal` aborts. Throws what a worker's first start failed with. */
export async function runSupervisor(
  config: RunConfig,
  dependencies: RunDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { log, announce } = dependencies;
  await using stack = new AsyncDisposableStack();
  const health = await AppHealth.open(config.appProbes);
  const team = stack.use(new Team(config, log));
  await team.start();
  if (config.operator !== undefined) {
    const { openOperatorSource } = await import('../policy/operator-source.ts');
    stack.use(await openOperatorSource({ config, target: team, ...dependencies }));
  }
  const listening: Listening[] = [];
  const arrivals = new Arrivals();
  const stopListening = (): void => {
    for (const { server } of listening) server.close();
  };
  stack.defer(stopListening);
  for (const [route, listen] of config.listen.entries()) {
    const onConnection = (socket: Socket): void => {
      arrivals.note();
      team.take(socket, route);
    };
    listening.push(await listenOn(listen, onConnection));
  }
  const admin = stack.use(
    await openAdmin(config.admin, {
      whyNotReady: () => team.whyNotReady(),
      metrics: () => team.renderMetrics(dumpMetrics([health.metric])),
      describe: () => team.describe(),
      startDraining: () => {
        team.startDraining();
      },
      appHealth: (path, asker) => health.answer(path, asker),
    }),
  );
  announce(
    describeReady(
      listening.map(({ address }) => address),
      admin.address,
    ),
  );
  if (!signal.aborted) await once(signal, 'abort');
  const cutAtMs = performance.now() + Math.max(0, config.grace - CLOSING_MS);
  team.startDraining();
  await arrivals.untilQuiet(Math.min((config.grace - CLOSING_MS) / 2, maxQuietMs));
  stopListening();
  await team.stop(Math.max(0, cutAtMs - performance.now()));
  log.info({ event: 'stopped' }, 'stopped');
}

class Team implements ConfigTarget, AsyncDisposable {
  readonly #config: RunConfig;
  readonly #log: Log;
  readonly #stores = new WorkerStores();
  readonly #workers = new Set<WorkerProcess>();
  readonly #waiting: WaitingSockets;
  readonly #restarts: number[] = [];
  readonly #routeOf = new WeakMap<Socket, number>();
  /** What a worker last put into force: the next one starts from it. */
  #inForce: Bundle | undefined;
  #certificate: CertificateTexts | undefined;
  /** What the operator gave last and all workers run. */
  #pushed: PushedConfig | undefined;
  #rollout: Rollout<WorkerProcess> | undefined;
  #rollouts = 0;
  readonly #started = Promise.withResolvers<undefined>();
  #gone = Promise.withResolvers<undefined>();
  #isDraining = false;
  #isStopping = false;
  #hasStarted = false;
  #turn = 0;

  constructor(config: RunConfig, log: Log) {
    this.#config = config;
    this.#log = log;
    // Bounded like the connections of a proxy, and in time like a client that sends nothing.
    this.#waiting = new WaitingSockets(config.maxConnections, config.headerTimeout);
  }

  async start(): Promise<void> {
    for (let i = 0; i < this.#config.workers; i += 1) this.#open();
    await this.#started.promise;
    this.#hasStarted = true;
  }

  whyNotReady(): string | undefined {
    if (this.#isDraining) return 'draining';
    if (this.#config.operator !== undefined && this.#pushed === undefined) return 'no policies yet';
    return this.#ready().length === 0 ? 'no worker is ready' : undefined;
  }

  async apply(config: PushedConfig): Promise<readonly PolicyRefusal[]> {
    this.#rollouts += 1;
    const { workers } = this.#config;
    const rollout = new Rollout<WorkerProcess>({
      ...{ id: this.#rollouts, config, before: this.#pushed, workers },
    });
    this.#rollout = rollout;
    for (const worker of this.#ready()) this.#askToApply(worker);
    const refusals = await rollout.outcome;
    if (refusals.length === 0) this.#pushed = config;
    return refusals;
  }

  /** Of all workers together: one that has lost the store is enough to say so. */
  report(): SidecarReport {
    const reports = [...this.#workers].flatMap(({ report }) => report ?? []);
    const clientIpIsProxy = [...new Set(reports.flatMap((one) => one.clientIpIsProxy))].toSorted();
    const worst = reports.find(({ store }) => store === 'down') ?? reports[0];
    const problem = reports.find(({ storeProblem }) => storeProblem !== undefined);
    return {
      ...worst,
      ...problem,
      ...(worst?.store === undefined ? {} : { store: worst.store }),
      clientIpIsProxy,
    };
  }

  take(socket: Socket, route: number): void {
    this.#routeOf.set(socket, route);
    this.#give(socket);
  }

  /** In turn over the ready workers. */
  #give(socket: Socket): void {
    if (this.#isStopping) {
      socket.destroy();
      return;
    }
    const ready = this.#ready();
    this.#turn += 1;
    const worker = ready[this.#turn % Math.max(1, ready.length)];
    if (worker?.handOver(socket, this.#routeOf.get(socket) ?? 0) === true) return;
    this.#waiting.add(socket);
  }

  /** `own` are of the parent, beside those of the workers. */
  async renderMetrics(own: readonly MetricDump[]): Promise<string> {
    const answers = await this.#askAll('metrics');
    const dumps = answers.flatMap((one) => (one.kind === 'metrics' ? [one.metrics] : []));
    return renderMetrics([...dumps, own]);
  }

  async describe(): Promise<unknown> {
    const [first] = await this.#askAll('describe');
    return first?.kind === 'description' ? first.description : undefined;
  }

  startDraining(): void {
    this.#isDraining = true;
    for (const worker of this.#workers) worker.send({ kind: 'drain' });
  }

  async stop(graceMs: number): Promise<void> {
    this.startDraining();
    this.#isStopping = true;
    for (const socket of this.#waiting.takeAll()) socket.destroy();
    for (const worker of this.#workers) worker.send({ kind: 'stop', graceMs });
    this.#checkGone();
    await this.#gone.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    for (const worker of this.#workers) worker.kill();
    this.#checkGone();
    await this.#gone.promise;
  }

  #open(): void {
    const events: WorkerEvents = {
      onMessage: (from, message) => {
        this.#receive(from, message);
      },
      onExit: (from, how, untaken) => {
        this.#onExit(from, how);
        for (const socket of untaken) this.#give(socket);
      },
    };
    this.#workers.add(new WorkerProcess(events, this.#handed()));
  }

  #handed(): Inherited {
    return { files: this.#inForce, pushed: this.#pushed, certificate: this.#certificate };
  }

  #receive(worker: WorkerProcess, message: Unasked): void {
    switch (message.kind) {
      case 'ready':
        this.#onReady(worker);
        break;
      case 'decide':
        this.#stores.decide(message, (answer) => {
          worker.send(answer);
        });
        break;
      case 'failed':
        this.#onFailed(worker, message);
        break;
      case 'in-force':
        this.#inForce = message.bundle;
        break;
      case 'certificate':
        this.#certificate = message.texts;
        break;
      case 'applied':
        this.#onApplied(worker, message);
        break;
      case 'report':
        worker.report = message.report;
        break;
    }
  }

  #onReady(worker: WorkerProcess): void {
    worker.isReady = true;
    if (this.#isDraining) worker.send({ kind: 'drain' });
    for (const socket of this.#waiting.takeAll()) this.#give(socket);
    this.#askToApply(worker);
    if (this.#ready().length === this.#config.workers) this.#started.resolve(undefined);
  }

  #onApplied(worker: WorkerProcess, { id, refusals }: Applied): void {
    if (id === this.#rollout?.id) this.#rollout.onAnswer(worker, refusals);
  }

  /** A worker that came up while a configuration is on its way began with the one before. */
  #askToApply(worker: WorkerProcess): void {
    const rollout = this.#rollout;
    if (rollout?.ask(worker) !== true) return;
    worker.send({ kind: 'config', id: rollout.id, config: rollout.config });
  }

  #onFailed({ pid }: WorkerProcess, failed: Failed): void {
    this.#started.reject(restoreError(failed));
    if (!this.#hasStarted) return;
    const { code, details, cause } = failed;
    this.#log.error(
      { event: 'worker-failed', pid, code, details, cause },
      'a worker cannot start; trying again',
    );
  }

  #onExit(worker: WorkerProcess, how: string): void {
    this.#workers.delete(worker);
    this.#rollout?.onExit(worker);
    if (this.#isStopping) {
      this.#checkGone();
      return;
    }
    if (!this.#hasStarted) {
      const right = 'a worker that starts; its own message is above';
      this.#started.reject(
        new WeirError('CONFIG_INVALID', {
          where: '--workers',
          given: `a worker ended: ${how}`,
          right,
        }),
      );
      return;
    }
    this.#log.error(
      { event: 'worker-crashed', how, pid: worker.pid },
      'a worker ended; restarting',
    );
    this.#restart();
  }

  #restart(): void {
    const now = performance.now();
    while ((this.#restarts[0] ?? Infinity) < now - RESTARTS_FORGOTTEN_MS) this.#restarts.shift();
    this.#restarts.push(now);
    if (this.#restarts.length <= QUICK_RESTARTS) this.#open();
    else {
      setTimeout(() => {
        if (!this.#isStopping) this.#open();
      }, SLOW_RESTART_MS);
    }
  }

  #checkGone(): void {
    if (this.#workers.size === 0) this.#gone.resolve(undefined);
  }

  #ready(): WorkerProcess[] {
    return [...this.#workers].filter((worker) => worker.isReady);
  }

  async #askAll(what: 'metrics' | 'describe'): Promise<FromWorker[]> {
    const asked = this.#ready().map((worker) => worker.ask(what, ANSWER_WITHIN_MS));
    return (await Promise.all(asked)).filter((answer) => answer !== undefined);
  }
}

type Failed = Extract<FromWorker, { kind: 'failed' }>;
type Applied = Extract<FromWorker, { kind: 'applied' }>;

function restoreError(failed: Failed): WeirError {
  const options = failed.cause === undefined ? {} : { cause: new Error(failed.cause) };
  // The code came from a WeirError of this same program.
  return new WeirError(failed.code as ErrorCode, failed.details, options);
}

interface Listening {
  readonly server: Server;
  readonly address: HostPort;
}

/** Connections come paused: not a byte is read here. */
async function listenOn(
  { host, port }: HostPort,
  onConnection: (socket: Socket) => void,
): Promise<Listening> {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, onConnection);
  await listenAt(server, { host, port, ipv4Fallback: true });
  const { address, port: bound } = server.address() as AddressInfo;
  return { server, address: { host: address, port: bound } };
}
