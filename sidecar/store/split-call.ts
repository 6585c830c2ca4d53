// While a slot of a Cluster migrates, a call over several keys is refused (TRYAGAIN) whenever one of them is
// not on this side; a missing key is our normal full bucket, so that is nearly always. Each decision then goes out
// one bucket a call, and what earlier buckets granted in excess is refunded. The only place where a decision
// is not atomic, for as long as the migration lasts.
import type { StoredLimit } from '../limiter/stored-limit.ts';
import { ACQUIRE, PEEK, REFUND, type Reply } from '../limiter/token-bucket.ts';
import { Attempt, type Router } from './attempt.ts';
import type { FailureKind, StoreCall } from './store.ts';

/** Decides every decision of `call`, one key at a time, and answers it as if it had been one call. */
export function decideOneByOne(call: StoreCall, router: Router): void {
  new SplitCall(call, router).run().then(
    (reply) => {
      call.onReply(reply);
    },
    (error: unknown) => {
      const kind = error instanceof SplitFailure ? error.kind : 'script';
      call.onFailure(kind, error instanceof Error ? error.message : String(error));
    },
  );
}

class SplitFailure extends Error {
  override readonly name = 'SplitFailure';
  readonly kind: FailureKind;

  constructor(kind: FailureKind, detail: string) {
    super(detail);
    this.kind = kind;
  }
}

interface Pair {
  readonly position: number;
  readonly weight: number;
}

class SplitCall {
  readonly #call: StoreCall;
  readonly #router: Router;
  #now = 0;
  readonly #levels: number[];
  readonly #texts: string[];
  readonly #outcomes: number[] = [];

  constructor(call: StoreCall, router: Router) {
    this.#call = call;
    this.#router = router;
    this.#levels = call.keys.map(() => 0);
    this.#texts = call.limits.map(({ text }) => text);
  }

  async run(): Promise<Reply> {
    const { operations, limits } = this.#call;
    for (let at = 0; at < operations.length; at += 4 + 2 * (operations[at + 3] ?? 0)) {
      await this.#decide(at);
    }
    const reply: Reply = [this.#now, ...this.#outcomes, ...this.#levels];
    for (let i = 0; i < limits.length; i += 1) {
      const text = this.#texts[i];
      if (text !== undefined && text !== limits[i]?.text) reply.push(i + 1, text);
    }
    return reply;
  }

  async #decide(at: number): Promise<void> {
    const { operations } = this.#call;
    const operation = operations[at] ?? PEEK;
    const charged: Pair[] = [];
    let want = operations[at + 1] ?? 0;
    let waitUs = 0;
    for (const pair of pairsAt(operations, at)) {
      const [granted, wait] = await this.#one(operation, want, pair);
      waitUs = longerWait(waitUs, wait);
      if (operation === ACQUIRE) await this.#giveBack(charged, want - Math.max(0, granted));
      charged.push(pair);
      want = granted;
      if (want <= 0) break;
    }
    this.#outcomes.push(want, waitUs);
  }

  async #giveBack(pairs: readonly Pair[], times: number): Promise<void> {
    if (times <= 0) return;
    for (const pair of pairs) await this.#one(REFUND, times, pair);
  }

  /** Granted and wait of one operation on one key. */
  async #one(operation: number, want: number, pair: Pair): Promise<readonly [number, number]> {
    const { keys, limits } = this.#call;
    const key = keys[pair.position - 1] ?? '';
    const limit = limits[pair.position - 1];
    if (limit === undefined)
      throw new RangeError('an operation names a key the call does not have');
    const operations = [operation, want, 0, 1, 1, pair.weight];
    const reply = await new Promise<Reply>((resolve, reject) => {
      const single = new SingleKeyCall({ key, limit, operations }, this.#call, resolve, reject);
      new Attempt(single, this.#router).start();
    });
    this.#now = Number(reply[0]);
    this.#levels[pair.position - 1] = Number(reply[3]);
    this.#texts[pair.position - 1] = reply.length > 4 ? String(reply[5]) : limit.text;
    return [Number(reply[1]), Number(reply[2])];
  }
}

function pairsAt(operations: readonly number[], at: number): Pair[] {
  return Array.from({ length: operations[at + 3] ?? 0 }, (_, n) => ({
    position: operations[at + 4 + 2 * n] ?? 0,
    weight: operations[at + 5 + 2 * n] ?? 0,
  }));
}

/** −1 = never outlasts every number. */
function longerWait(a: number, b: number): number {
  return a < 0 || b < 0 ? -1 : Math.max(a, b);
}

class SingleKeyCall implements StoreCall {
  readonly keys: readonly string[];
  readonly limits: readonly StoredLimit[];
  readonly operations: readonly number[];
  readonly #parent: StoreCall;
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (failure: Error) => void;

  constructor(
    work: {
      readonly key: string;
      readonly limit: StoredLimit;
      readonly operations: readonly number[];
    },
    parent: StoreCall,
    resolve: (reply: Reply) => void,
    reject: (failure: Error) => void,
  ) {
    this.keys = [work.key];
    this.limits = [work.limit];
    this.operations = work.operations;
    this.#parent = parent;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get settled(): boolean {
    return this.#parent.settled;
  }

  onReply(reply: Reply): void {
    this.#resolve(reply);
  }

  onFailure(kind: FailureKind, detail: string): void {
    this.#reject(new SplitFailure(kind, detail));
  }
}
