// An open loop: requests leave at a fixed rate whether or not earlier ones were answered, as users do. A process of its
// own; prints one JSON line. Latency runs from the write to the last byte of the answer.
// usage: node bench/open-loop.ts OPTIONS, which is JSON
import process from 'node:process';
import type { LaneAnswer } from './lane.ts';
import { Lane, requestText } from './lane.ts';

/** Enough that a request finds a free connection although answers take 250 ms at 2 000 a second. */
const CONNECTIONS = 512;
/** A rate is kept by sending what is due every millisecond. */
const TICK_MS = 1;
/** The first second warms the path and is not counted. */
const WARM_UP_MS = 1_000;
/** For the last answers. */
const PATIENCE_MS = 500;

export interface OpenLoopOptions {
  /** Take turns; each has its share of the connections. */
  readonly ports: readonly number[];
  /** Of all ports together. */
  readonly perSecond: number;
  readonly seconds: number;
  /** Take turns. */
  readonly keys: readonly string[];
  /** `/` unless given. */
  readonly path?: string;
  /** How many leave together for one port; 1 unless given. */
  readonly burst?: number;
}

export interface OpenLoopResult {
  readonly sent: number;
  readonly answered: number;
  /** Requests that found every connection busy. */
  readonly dropped: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Everything that was answered, the first second included. */
  readonly requests: number;
}

/** The connections to one port. The last to become free is the next to be used: the others stay cold, as in a pool. */
interface Target {
  readonly idle: Lane[];
  readonly lanes: readonly Lane[];
  readonly requests: readonly string[];
}

class OpenLoop {
  readonly #options: OpenLoopOptions;
  readonly #targets: readonly Target[];
  readonly #latencies: number[] = [];
  readonly #start: number = performance.now();
  #requests = 0;
  #sent = 0;
  #dropped = 0;
  #refused = 0;

  constructor(options: OpenLoopOptions) {
    this.#options = options;
    this.#targets = options.ports.map((port) => this.#open(port));
  }

  async run(): Promise<OpenLoopResult> {
    const { perSecond, seconds, burst = 1 } = this.#options;
    const total = perSecond * (seconds + WARM_UP_MS / 1_000);
    await new Promise<void>((resolve) => {
      let due = 0;
      const timer = setInterval(() => {
        const now = performance.now();
        const bursts = Math.floor(((now - this.#start) * perSecond) / (1_000 * burst));
        for (const target = Math.min(total, bursts * burst); due < target; due += 1) {
          this.#send(due, now);
        }
        if (due < total) return;
        clearInterval(timer);
        setTimeout(resolve, PATIENCE_MS);
      }, TICK_MS);
    });
    for (const { lanes } of this.#targets) for (const lane of lanes) lane.close();
    return this.#result();
  }

  #open(port: number): Target {
    const { ports, keys, path } = this.#options;
    const idle: Lane[] = [];
    const onAnswer = (lane: Lane, answer: LaneAnswer): void => {
      idle.push(lane);
      this.#note(answer);
    };
    const count = Math.ceil(CONNECTIONS / ports.length);
    const lanes = Array.from({ length: count }, () => new Lane(port, onAnswer));
    idle.push(...lanes);
    return { idle, lanes, requests: keys.map((key) => requestText(port, key, path)) };
  }

  #send(index: number, now: number): void {
    const { burst = 1 } = this.#options;
    const target = this.#targets[Math.floor(index / burst) % this.#targets.length];
    const request = target?.requests[index % target.requests.length];
    const lane = target?.idle.pop();
    if (this.#isCounted(now)) this.#sent += 1;
    if (lane !== undefined && request !== undefined) lane.send(request);
    else if (this.#isCounted(now)) this.#dropped += 1;
  }

  #note({ status, sentAt, answeredAt }: LaneAnswer): void {
    this.#requests += 1;
    if (!this.#isCounted(sentAt)) return;
    this.#latencies.push(answeredAt - sentAt);
    if (status === 429) this.#refused += 1;
  }

  #isCounted(at: number): boolean {
    return at - this.#start >= WARM_UP_MS;
  }

  #result(): OpenLoopResult {
    const latencies = this.#latencies;
    const answered = latencies.length;
    // What never left or never came back took at least the whole run: leaving it out would flatter.
    while (latencies.length < this.#sent) latencies.push(this.#options.seconds * 1_000);
    latencies.sort((a, b) => a - b);
    return {
      sent: this.#sent,
      answered,
      dropped: this.#dropped,
      refused: this.#refused,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      requests: this.#requests,
    };
  }
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

if (import.meta.main) {
  const options = JSON.parse(String(process.argv[2])) as OpenLoopOptions;
  const result = await new OpenLoop(options).run();
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
