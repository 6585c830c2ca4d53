// A client inside the cluster. Its argument is a plan in JSON; it prints one line of JSON, what came of it, and
// `going` before that when a steady one has its first answer.
//   burst:  so many requests, some at once, as fast as they go
//   steady: so many a second, half of them over kept connections, half over one connection each, until standard input
//           ends or `maxSeconds` have passed
import { Agent, request } from 'node:http';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

export type TrafficPlan =
  | {
      readonly kind: 'burst';
      readonly url: string;
      readonly count: number;
      readonly atOnce: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** Else every request has a connection of its own: a Service spreads connections, not requests. */
      readonly isKept?: boolean;
    }
  | {
      readonly kind: 'steady';
      readonly url: string;
      readonly perSecond: number;
      readonly maxSeconds: number;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface TrafficResult {
  /** How many were answered with each status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** How many were not answered, by what happened. */
  readonly failures: Readonly<Record<string, number>>;
  /** How many 2xx answers each body came in. */
  readonly bodies: Readonly<Record<string, number>>;
  readonly milliseconds: number;
  /** Of the answered requests, the one that took longest. */
  readonly slowestMs: number;
  /** The first few that went wrong, with the time since the start. */
  readonly examples: readonly string[];
}

const TIMEOUT_MS = 10_000;
const EXAMPLES = 20;

class Client {
  readonly #statuses = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  readonly #bodies = new Map<string, number>();
  readonly #examples: string[] = [];
  readonly #started = Date.now();
  #slowestMs = 0;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ url, headers = {} }: Pick<TrafficPlan, 'url' | 'headers'>) {
    this.#url = url;
    this.#headers = headers;
  }

  async ask(agent: Agent, kind: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const begun = Date.now();
    const asked = request(this.#url, { agent, headers: this.#headers, timeout: TIMEOUT_MS });
    asked.on('timeout', () => asked.destroy(new Error('timeout')));
    asked.on('error', (error: NodeJS.ErrnoException) => {
      const reused = asked.reusedSocket ? ' on a reused connection' : '';
      this.#fail(`${error.code ?? error.message}${reused}`, kind);
      resolve(undefined);
    });
    asked.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('error', () => undefined);
      response.on('close', () => {
        const { statusCode = 0, complete } = response;
        if (!complete) this.#fail('the body broke off', kind);
        else this.#answer(statusCode, body.trim(), kind);
        this.#slowestMs = Math.max(this.#slowestMs, Date.now() - begun);
        resolve(undefined);
      });
    });
    asked.end();
    await promise;
  }

  result(): TrafficResult {
    return {
      statuses: Object.fromEntries(this.#statuses),
      failures: Object.fromEntries(this.#failures),
      bodies: Object.fromEntries(this.#bodies),
      milliseconds: Date.now() - this.#started,
      slowestMs: this.#slowestMs,
      examples: this.#examples,
    };
  }

  #answer(status: number, body: string, kind: string): void {
    count(this.#statuses, String(status));
    if (status < 300) count(this.#bodies, body.slice(0, 80));
    if (status >= 500) this.#note(`${status} ${body}`, kind);
  }

  #fail(what: string, kind: string): void {
    count(this.#failures, `${kind}: ${what}`);
    this.#note(what, kind);
  }

  #note(what: string, kind: string): void {
    if (this.#examples.length === EXAMPLES) return;
    this.#examples.push(`${Date.now() - this.#started} ms, ${kind}: ${what}`);
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

async function burst(plan: TrafficPlan & { readonly kind: 'burst' }): Promise<TrafficResult> {
  const client = new Client(plan);
  const agent = new Agent({ keepAlive: plan.isKept === true, maxSockets: plan.atOnce });
  let left = plan.count;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await client.ask(agent, 'burst');
    }
  };
  await Promise.all(Array.from({ length: plan.atOnce }, one));
  agent.destroy();
  return client.result();
}

async function steady(plan: TrafficPlan & { readonly kind: 'steady' }): Promise<TrafficResult> {
  const client = new Client(plan);
  const agents = [
    { agent: new Agent({ keepAlive: true, maxSockets: 20 }), kind: 'kept' },
    { agent: new Agent({ keepAlive: false }), kind: 'single' },
  ] as const;
  const open = new Set<Promise<void>>();
  const started = Date.now();
  const over = new AbortController();
  process.stdin
    .on('data', () => undefined)
    .on('end', () => {
      over.abort();
    });
  let sent = 0;
  let isTold = false;
  const going = (): void => {
    if (!isTold) process.stdout.write('going\n');
    isTold = true;
  };
  for (;;) {
    const elapsed = Date.now() - started;
    if (over.signal.aborted || elapsed > plan.maxSeconds * 1_000) break;
    for (; sent < (elapsed * plan.perSecond) / 1_000; sent += 1) {
      const { agent, kind } = agents[sent % 2] ?? agents[0];
      const asked = client.ask(agent, kind).finally(() => {
        open.delete(asked);
        going();
      });
      open.add(asked);
    }
    await delay(5);
  }
  await Promise.all(open);
  for (const { agent } of agents) agent.destroy();
  return client.result();
}

// The tests read the types of this file; only in a pod does it have a plan.
if (process.argv[2] !== undefined) {
  const plan = JSON.parse(process.argv[2]) as TrafficPlan;
  const result = plan.kind === 'burst' ? await burst(plan) : await steady(plan);
  process.stdout.write(`${JSON.stringify(result)}\n`);
  process.exit(0);
}
