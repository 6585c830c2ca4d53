// Hot path. One call on its way to a server, and what may be tried when it was certainly not executed.
import { type Reply } from '../limiter/token-bucket.ts';
import { encodeCall } from './script-arguments.ts';
import type { CommandChannel, CommandSink } from './redis-node.ts';
import { remedyFor, type Remedy } from './redis-errors.ts';
import type { StoreCall } from './store.ts';

/** A loading or failing-over server is asked again after this, still well within the deadline. */
const RETRY_MS = 10;

/** Knows the script and which server to ask. */
export interface Router {
  readonly script: string;
  readonly digest: string;
  /** The server that holds the call's keys now. */
  nodeFor(call: StoreCall): CommandChannel | undefined;
  /** A server says that the call's keys live at `address` (`host:port`) from now on. */
  onMoved(call: StoreCall, address: string): CommandChannel | undefined;
  /** The server at `address`, which is taking over the call's slot. */
  nodeAt(address: string): CommandChannel | undefined;
  /** Takes a call over that its slot's migration refuses as a whole. */
  decideOneByOne(call: StoreCall): void;
  /** Servers refuse for a reason that a new look at the Cluster may cure. */
  onDoubt(): void;
}

export class Attempt implements CommandSink {
  readonly #call: StoreCall;
  readonly #router: Router;
  #node: CommandChannel | undefined = undefined;
  /** Remedies tried: each may help once. */
  #tried: readonly Remedy['action'][] = [];

  constructor(call: StoreCall, router: Router) {
    this.#call = call;
    this.#router = router;
  }

  start(): void {
    this.#send(this.#router.nodeFor(this.#call), 'evalsha');
  }

  onReply(reply: unknown): void {
    const answer = toReply(reply);
    if (answer === undefined) this.#call.onFailure('script', 'the reply is not a list');
    else this.#call.onReply(answer);
  }

  onError(error: Error): void {
    this.#remedy(error);
  }

  #send(node: CommandChannel | undefined, command: 'eval' | 'evalsha'): void {
    if (this.#call.settled) return;
    if (node?.isReady !== true) {
      this.#router.onDoubt();
      this.#call.onFailure('down', node?.lastError ?? 'no server is known for the slot');
      return;
    }
    this.#node = node;
    const { script, digest } = this.#router;
    const args = encodeCall(this.#call, command === 'eval' ? script : digest);
    node.send(command, args, this);
  }

  #remedy(error: Error): void {
    const call = this.#call;
    if (call.settled) return;
    const remedy = remedyFor(error);
    if (remedy.action === 'fail' || this.#tried.includes(remedy.action)) {
      if (remedy.kind === 'down' || remedy.kind === 'busy') this.#router.onDoubt();
      call.onFailure(remedy.kind, error.message);
      return;
    }
    this.#tried = [...this.#tried, remedy.action];
    this.#tryAgain(remedy);
  }

  #tryAgain(remedy: Remedy): void {
    switch (remedy.action) {
      case 'load-script':
        this.#send(this.#node, 'eval');
        return;
      case 'moved':
        this.#send(this.#router.onMoved(this.#call, remedy.address), 'evalsha');
        return;
      case 'ask':
        this.#ask(this.#router.nodeAt(remedy.address));
        return;
      case 'one-by-one':
        this.#router.decideOneByOne(this.#call);
        return;
      case 'reconnect':
        this.#node?.reconnect();
        this.#later();
        return;
      case 'retry':
        this.#router.onDoubt();
        this.#later();
        return;
      case 'fail':
    }
  }

  #ask(node: CommandChannel | undefined): void {
    // Written right before the call on the same connection, so nothing can come between.
    if (node?.isReady === true) node.send('asking', [], unheard);
    // The server taking over may not have the script yet; its text goes along rather than a second ASKING.
    this.#send(node, 'eval');
  }

  #later(): void {
    setTimeout(() => {
      this.#send(this.#router.nodeFor(this.#call), 'evalsha');
    }, RETRY_MS).unref();
  }
}

/** Integers stay, texts become strings. undefined = not the script's reply. */
export function toReply(reply: unknown): Reply | undefined {
  if (!Array.isArray(reply)) return undefined;
  const items: readonly unknown[] = reply;
  return items.map((item) => (typeof item === 'number' ? item : String(item)));
}

/** ASKING only marks the next command. */
const unheard: CommandSink = {
  onReply: () => undefined,
  onError: () => undefined,
};
