// A worker: the data path of a sidecar whose parent holds the listener, the admin listener and the embedded store.
import type { Socket } from 'node:net';
import process from 'node:process';
import type { Bundle } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import { openConfiguredStore } from '../configured-store.ts';
import type { Log } from '../log.ts';
import type { RunConfig } from '../run-settings.ts';
import { openSidecar, type Sidecar } from '../sidecar.ts';
import { type FromWorker, type ToWorker, WORKER_VARIABLE } from './message.ts';
import { ParentStore } from './parent-store.ts';

/**
 * Serves until the parent says stop or goes away. Returns when the last request is done.
 * A start that fails is told to the parent, which knows where to print it.
 * Throws CONFIG_INVALID without a parent.
 */
export async function runWorker(config: RunConfig, log: Log): Promise<void> {
  if (process.send === undefined) throw withoutParent();
  const done = Promise.withResolvers<undefined>();
  const inherited = Promise.withResolvers<Bundle | undefined>();
  let lastId = 0;
  const nextId = (): number => (lastId += 1);
  const stores = {
    shared: new ParentStore('shared', send, nextId),
    pod: new ParentStore('pod', send, nextId),
  };
  const early: { message: Order; socket: Socket | undefined }[] = [];
  let sidecar: Sidecar | undefined;
  const endIfOver = (isOver: boolean): void => {
    if (isOver) done.resolve(undefined);
  };
  const receive = (message: ToWorker, socket: Socket | undefined): void => {
    if (message.kind === 'start') inherited.resolve(message.inherited);
    else if (sidecar === undefined) early.push({ message, socket });
    else void handle({ message, socket, sidecar, stores }).then(endIfOver);
  };
  process.on('message', receive);
  // A terminal's Ctrl-C reaches the whole group; the parent says when to end.
  process.on('SIGINT', ignoreSignal);
  process.on('SIGTERM', ignoreSignal);
  // Without its parent nothing can reach a worker any more.
  process.once('disconnect', () => {
    done.resolve(undefined);
    inherited.resolve(undefined);
  });
  try {
    await using stack = new AsyncDisposableStack();
    const store =
      config.redis === undefined
        ? stores.shared
        : stack.use(await openConfiguredStore(config, log));
    const opened = await openSidecar(shareAmongWorkers(config), {
      ...{ log, store, podStore: stores.pod, listen: undefined },
      inherited: await inherited.promise,
      onInForce: (bundle) => {
        send({ kind: 'in-force', bundle });
      },
    });
    sidecar = stack.use(opened);
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

interface Delivery {
  readonly message: Order;
  readonly socket: Socket | undefined;
  readonly sidecar: Sidecar;
  readonly stores: Readonly<Record<'shared' | 'pod', ParentStore>>;
}

/** Settles to true when the worker is over. */
async function handle({ message, socket, sidecar, stores }: Delivery): Promise<boolean> {
  switch (message.kind) {
    case 'connection':
      // The client may be gone by now: then there is no handle.
      // Not a byte has been read before the parent knows.
      send({ kind: 'took', id: message.id });
      if (socket !== undefined) sidecar.proxy.adopt(socket);
      return false;
    case 'drain':
      sidecar.startDraining();
      return false;
    case 'stop':
      await sidecar.proxy.stop(message.graceMs);
      return true;
    case 'ask':
      answer(message.id, message.what, sidecar);
      return false;
    case 'decided':
      if (!stores.shared.onDecided(message.id, message.reply)) {
        stores.pod.onDecided(message.id, message.reply);
      }
      return false;
    case 'undecided':
      if (!stores.shared.onUndecided(message.id, message.failure, message.detail)) {
        stores.pod.onUndecided(message.id, message.failure, message.detail);
      }
      return false;
  }
}

function answer(id: number, what: 'metrics' | 'describe', sidecar: Sidecar): void {
  if (what === 'metrics') send({ kind: 'metrics', id, metrics: sidecar.dumpMetrics() });
  else send({ kind: 'description', id, description: sidecar.describe() });
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
