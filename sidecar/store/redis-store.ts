// The store on one Redis: a server of its own, or the master that sentinels name.
import { Attempt, type Router } from './attempt.ts';
import { RedisNode, optionsFor, sentinelOptions } from './redis-node.ts';
import { Readiness, type RemoteStore, type RemoteStoreContext } from './remote-store.ts';
import type { StoreSettings } from '../../contract/store-settings.ts';
import { decideOneByOne } from './split-call.ts';
import type { StoreCall, StoreLane, StoreListener } from './store.ts';

type OneServerSettings = Exclude<StoreSettings, { readonly kind: 'cluster' }>;

export class RedisStore implements RemoteStore, StoreLane, Router {
  readonly partitions = 1;
  readonly synchronous = false;
  readonly node: RedisNode;
  readonly script: string;
  readonly digest: string;
  listener: StoreListener | undefined = undefined;
  readonly #readiness = new Readiness();

  constructor(settings: OneServerSettings, context: RemoteStoreContext) {
    this.script = context.script;
    this.digest = context.digest;
    const isSentinel = settings.kind === 'sentinel';
    const redis = isSentinel
      ? sentinelOptions(settings)
      : optionsFor(settings.address, settings.credentials, settings.tls);
    this.node = new RedisNode({
      name: isSentinel
        ? `sentinel:${settings.masterName}`
        : `${settings.address.host}:${settings.address.port}`,
      redis: { ...redis, db: settings.database },
      script: context.script,
      clock: context.clock,
      onReady: (node) => {
        this.#readiness.onReady();
        this.listener?.onReconnect(node);
      },
      onLost: ignore,
    });
  }

  laneOf(): StoreLane {
    return this;
  }

  decide(call: StoreCall): void {
    new Attempt(call, this).start();
  }

  nodeFor(): RedisNode {
    return this.node;
  }

  /** A server of a Cluster answered: the settings say otherwise, and no other server is known. */
  onMoved(): RedisNode | undefined {
    return undefined;
  }

  nodeAt(): RedisNode | undefined {
    return undefined;
  }

  decideOneByOne(call: StoreCall): void {
    decideOneByOne(call, this);
  }

  onDoubt(): void {
    // The connection looks after itself.
  }

  connected(signal: AbortSignal): Promise<void> {
    return this.#readiness.wait(signal, () => `${this.node.name}: ${this.node.lastError}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.node[Symbol.dispose]();
    return Promise.resolve();
  }
}

function ignore(): void {
  // The circuit breaker notices by itself.
}
