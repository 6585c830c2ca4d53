// The embedded store as a worker sees it: levels live in the parent, so that several workers enforce one limit.
import type { Reply } from '../limiter/token-bucket.ts';
import type {
  FailureKind,
  Store,
  StoreCall,
  StoreLane,
  StoreListener,
  StoreNode,
} from '../store/store.ts';
import type { FromWorker, StoreName } from './message.ts';

/** Calls under way; beyond it the limiter's failure mode decides. Four times what one turn sends at full load. */
const MOST_CALLS = 1_024;

export class ParentStore implements Store, StoreLane {
  readonly partitions = 1;
  readonly node: StoreNode;
  readonly synchronous = false;
  listener: StoreListener | undefined = undefined;
  readonly #name: StoreName;
  readonly #send: (message: FromWorker) => void;
  readonly #calls = new Map<number, StoreCall>();
  readonly #nextId: () => number;

  /** `nextId` gives numbers that no other store of this worker uses. */
  constructor(name: StoreName, send: (message: FromWorker) => void, nextId: () => number) {
    this.#name = name;
    this.node = { name: `parent:${name}` };
    this.#send = send;
    this.#nextId = nextId;
  }

  laneOf(): StoreLane {
    return this;
  }

  decide(call: StoreCall): void {
    if (this.#calls.size >= MOST_CALLS) {
      call.onFailure('overload', `${MOST_CALLS} calls to the parent are under way`);
      return;
    }
    const id = this.#nextId();
    this.#calls.set(id, call);
    this.#send({
      kind: 'decide',
      id,
      store: this.#name,
      keys: call.keys,
      limits: call.limits.map((limit) => limit.text),
      operations: call.operations,
    });
  }

  /** True when the call was this store's. */
  onDecided(id: number, reply: Reply): boolean {
    return this.#take(id, (call) => {
      call.onReply(reply);
    });
  }

  onUndecided(id: number, failure: FailureKind, detail: string): boolean {
    return this.#take(id, (call) => {
      call.onFailure(failure, detail);
    });
  }

  #take(id: number, settle: (call: StoreCall) => void): boolean {
    const call = this.#calls.get(id);
    if (call === undefined) return false;
    this.#calls.delete(id);
    settle(call);
    return true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#calls.clear();
    return Promise.resolve();
  }
}
