// A worker: the data path of a sidecar whose parent holds the listener, the admin listener and the embedded store.
import type { Socket } from 'node:net';
import process from 'node:process';
import { WeirError } from '../../contract/errors.ts';
import { openConfiguredStore } from '../configured-store.ts';
import type { Log } from '../log.ts';
import { filePolicies } from '../policy/file-policies.ts';
import type { ConfigTarget, PushedConfig } from '../policy/pushed-config.ts';
import type { RunConfig } from '../run-config.ts';
import { settleHeap } from '../settled-heap.ts';
import { openSidecar, type Sidecar, type SidecarParts } from '../sidecar.ts';
import type { Store } from '../store/store.ts';
import type { CertificateTexts } from '../tls/certificate-files.ts';
import { type FromWorker, type Inherited, type ToWorker, WORKER_VARIABLE } from './message.ts';
import { ParentStore } from './parent-store.ts';

/**
 * Serves until the parent says stop or goes away. Returns when the last request is done.
 * A start that fails is told to the parent, which knows where to print it.
 * Throws CONFIG_INVALID without a parent.
 */
export async function runWorker(config: RunConfig, log: Log): Promise<void> {
  if (process.send === undefined) throw withoutParent();
  const done = Promise.withResolvers<undefined>();
  const inherited = Promise.withResolvers<Inherited>();
  let lastId = 0;
  const nextId = (): number => (lastId += 1);
  const stores = {
    shared: new ParentStore('shared', send, nextId),
    pod: new ParentStore('pod', send, nextId),
  };
  const early: { message: Order; socket: Socket | undefined }[] = [];
  let opened: Opened | undefined;
  const endIfOver = (isOver: boolean): void => {
    if (isOver) done.resolve(undefined);
  };
  const receive = (message: ToWorker, socket: Socket | undefined): void => {
    if (message.kind === 'start') inherited.resolve(message.inherited);
    else if (opened === undefined) early.push({ message, socket });
    else void handle({ message, socket, stores, ...opened }).then(endIfOver);
  };
  process.on('message', receive);
  // A terminal's Ctrl-C reaches the whole group; the parent says when to end.
  process.on('SIGINT', ignoreSignal);
  process.on('SIGTERM', ignoreSignal);
  // Without its parent nothing can reach a worker any more.
  process.once('disconnect', () => {
    done.resolve(undefined);
    inherited.resolve({});
  });
  try {
    await using stack = new AsyncDisposableStack();
    const handed = await inherited.promise;
    const source = await openSource(config, { log, shared: stores.shared, inherited: handed });
    stack.use(source.store);
    const certificate = { inherited: handed.certificate, onInForce: tellCertificate };
    const parts = { log, podStore: stores.pod, listens: false, certificate, ...source };
    const sidecar = stack.use(await openSidecar(shareAmongWorkers(config), parts));
    opened = { sidecar, target: source.target };
    settleHeap();
    send({ kind: 'ready' });
    for (const { message, socket } of early.splice(0)) receive(message, socket);
    await done.promise;
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    send(describeFailure(error));
  } finally {
    process.off('message', receive);
    process.disconnect?.();
  }
}

interface Opened {
  readonly sidecar: Sidecar;
  /** What the operator's configurations are put into; undefined with policies from files. */
  readonly target: () => ConfigTarget | undefined;
}

interface Source extends Pick<SidecarParts, 'store' | 'openPolicies'>, Pick<Opened, 'target'> {}

interface SourceOptions {
  readonly log: Log;
  readonly shared: Store;
  readonly inherited: Inherited;
}

async function openSource(config: RunConfig, options: SourceOptions): Promise<Source> {
  const { log, shared, inherited } = options;
  if (config.operator !== undefined) return openPushedSource(config, options);
  const store = config.redis === undefined ? shared : await openConfiguredStore(config, log);
  const openPolicies = filePolicies(config, {
    log,
    inherited: inherited.files,
    onInForce: (bundle) => {
      send({ kind: 'in-force', bundle });
    },
  });
  return { store, openPolicies, target: () => undefined };
}

/** How often a worker looks whether it has something to report. */
const REPORT_EVERY_MS = 1_000;

async function openPushedSource(
  config: RunConfig,
  { log, inherited }: SourceOptions,
): Promise<Source> {
  const [{ LocalTarget }, { AbsentStore }] = await Promise.all([
    import('../policy/local-target.ts'),
    import('../store/absent-store.ts'),
  ]);
  const absent = new AbsentStore();
  let target: ConfigTarget | undefined;
  return {
    store: absent,
    target: () => target,
    async openPolicies(policyTarget) {
      await using stack = new AsyncDisposableStack();
      const local = stack.use(new LocalTarget(policyTarget, config, { log, absent }));
      if (inherited.pushed !== undefined) await local.apply(inherited.pushed);
      target = local;
      const reporting = setInterval(reportOf(local), REPORT_EVERY_MS).unref();
      stack.defer(() => {
        clearInterval(reporting);
      });
      return stack.move();
    },
  };
}

function reportOf(target: ConfigTarget): () => void {
  let told = '';
  return () => {
    const report = target.report();
    const text = JSON.stringify(report);
    if (text === told) return;
    told = text;
    send({ kind: 'report', report });
  };
}

function withoutParent(): WeirError {
  return new WeirError('CONFIG_INVALID', {
    where: WORKER_VARIABLE,
    given: 'a start without a parent process',
    right: 'nothing: the parent of --workers sets it',
  });
}

/** While the store is away each worker stands in alone: together they may admit the pod's share, no more. */
function shareAmongWorkers(config: RunConfig): RunConfig {
  return { ...config, replicas: config.replicas * config.workers };
}

/** What comes after the first message. */
type Order = Exclude<ToWorker, { kind: 'start' }>;

interface Delivery extends Opened {
  readonly message: Order;
  readonly socket: Socket | undefined;
  readonly stores: Readonly<Record<'shared' | 'pod', ParentStore>>;
}

/** Settles to true when the worker is over. */
async function handle({ message, socket, sidecar, target, stores }: Delivery): Promise<boolean> {
  switch (message.kind) {
    case 'connection':
      // The client may be gone by now: then there is no handle.
      // Not a byte has been read before the parent knows.
      send({ kind: 'took', id: message.id });
      if (socket !== undefined) sidecar.routes.proxy(message.route)?.adopt(socket);
      return false;
    case 'config':
      await apply(message.id, message.config, target());
      return false;
    case 'drain':
      sidecar.startDraining();
      return false;
    case 'stop':
      await sidecar.routes.stop(message.graceMs);
      return true;
    case 'ask':
      answer(message.id, message.what, sidecar);
      return false;
    case 'decided':
    case 'undecided':
      settle(message, stores);
      return false;
  }
}

function settle(
  message: Extract<Order, { kind: 'decided' | 'undecided' }>,
  { shared, pod }: Delivery['stores'],
): void {
  const { id } = message;
  if (message.kind === 'decided') {
    if (!shared.onDecided(id, message.reply)) pod.onDecided(id, message.reply);
  } else if (!shared.onUndecided(id, message.failure, message.detail)) {
    pod.onUndecided(id, message.failure, message.detail);
  }
}

async function apply(
  id: number,
  config: PushedConfig,
  target: ConfigTarget | undefined,
): Promise<void> {
  const refusals = (await target?.apply(config)) ?? [];
  send({ kind: 'applied', id, refusals });
}

function answer(id: number, what: 'metrics' | 'describe', sidecar: Sidecar): void {
  if (what === 'metrics') send({ kind: 'metrics', id, metrics: sidecar.dumpMetrics() });
  else send({ kind: 'description', id, description: sidecar.describe() });
}

function tellCertificate(texts: CertificateTexts): void {
  send({ kind: 'certificate', texts });
}

function ignoreSignal(): void {
  // See where it is registered.
}

function send(message: FromWorker): void {
  // A parent that has gone reads nothing; `disconnect` ends the worker.
  process.send?.(message, undefined, undefined, () => undefined);
}

function describeFailure(error: WeirError): FromWorker {
  const cause = error.cause instanceof Error ? error.cause.message : undefined;
  return { kind: 'failed', code: error.code, details: error.details, cause };
}
