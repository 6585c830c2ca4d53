// An open loop: requests leave at a fixed rate whether or not earlier ones were answered, as users do. A process of its
// own; prints one JSON line. Latency runs from the write to the last byte of the answer.
// usage: node bench/open-loop.ts PORT RATE SECONDS KEY
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import process from 'node:process';

/** Enough that a request finds a free connection although answers take 250 ms at 2 000 a second. */
const CONNECTIONS = 512;
/** A rate is kept by sending what is due every millisecond. */
const TICK_MS = 1;
/** The first second warms the path and is not counted. */
const WARM_UP_MS = 1_000;

export interface OpenLoopResult {
  readonly sent: number;
  readonly answered: number;
  /** Requests that found every connection busy. */
  readonly dropped: number;
  readonly refused: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Answered {
  readonly latencyMs: number;
  readonly status: number;
  readonly sentAt: number;
}

/** A connection that has at most one request under way. */
class Lane {
  readonly #socket: Socket;
  #received = '';
  #sentAt = 0;

  constructor(port: number, onAnswer: (lane: Lane, answer: Answered) => void) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (data) => {
      this.#received += data.toString('latin1');
      if (!isComplete(this.#received)) return;
      const status = Number(this.#received.slice(9, 12));
      this.#received = '';
      const sentAt = this.#sentAt;
      onAnswer(this, { latencyMs: performance.now() - sentAt, status, sentAt });
    });
  }

  send(request: string): void {
    this.#sentAt = performance.now();
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#socket.destroy();
  }
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
  return text.length >= end + 4 + length;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

async function run(
  port: number,
  rate: number,
  seconds: number,
  key: string,
): Promise<OpenLoopResult> {
  const latencies: number[] = [];
  let [sent, dropped, refused] = [0, 0, 0];
  const start = performance.now();
  const counted = (at: number): boolean => at - start >= WARM_UP_MS;
  // The last to become free is the next to be used: the others stay cold, as in a pool.
  const idle: Lane[] = [];
  const onAnswer = (lane: Lane, { latencyMs, status, sentAt }: Answered): void => {
    idle.push(lane);
    if (!counted(sentAt)) return;
    latencies.push(latencyMs);
    if (status === 429) refused += 1;
  };
  const lanes = Array.from({ length: CONNECTIONS }, () => new Lane(port, onAnswer));
  idle.push(...lanes);
  const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${String(port)}\r\nX-Api-Key: ${key}\r\n\r\n`;
  let due = 0;
  const total = rate * (seconds + WARM_UP_MS / 1_000);
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = performance.now();
      const target = Math.min(total, Math.floor(((now - start) * rate) / 1_000));
      for (; due < target; due += 1) {
        const lane = idle.pop();
        if (counted(now)) sent += 1;
        if (lane !== undefined) lane.send(request);
        else if (counted(now)) dropped += 1;
      }
      if (due < total) return;
      clearInterval(timer);
      setTimeout(resolve, 500);
    }, TICK_MS);
  });
  for (const lane of lanes) lane.close();
  const answered = latencies.length;
  // What never left or never came back took at least the whole run: leaving it out would flatter.
  while (latencies.length < sent) latencies.push(seconds * 1_000);
  latencies.sort((a, b) => a - b);
  return {
    sent,
    answered,
    dropped,
    refused,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

if (import.meta.main) {
  const [port, rate, seconds, key] = process.argv.slice(2);
  const result = await run(Number(port), Number(rate), Number(seconds), String(key));
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
