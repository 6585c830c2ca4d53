// Three clients with their habits. Requests are real; when each is sent is decided beforehand, so that the picture
// of every run tells the same story.
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export interface Client {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** When to send, in ms from the start, ascending. */
  readonly sendAtMs: readonly number[];
}

export interface Observation {
  readonly client: string;
  readonly atMs: number;
  readonly status: number;
  /** The tightest bucket, as the response's RateLimit field said; undefined where it said nothing. */
  readonly bucket: Level | undefined;
}

export interface Level {
  readonly name: string;
  /** Whole tokens left. */
  readonly tokens: number;
}

export const LENGTH_MS = 10_000;
/** The edge of the fixed window that the greedy client's burst is placed around. */
export const EDGE_MS = 5_000;

export const clients: readonly Client[] = [
  {
    name: 'premium',
    headers: { 'x-api-key': 'demo-premium', 'x-plan': 'premium' },
    sendAtMs: every(50, 0, LENGTH_MS),
  },
  {
    name: 'free, patient',
    headers: { 'x-api-key': 'demo-patient' },
    sendAtMs: every(650, 0, LENGTH_MS),
  },
  {
    name: 'free, greedy',
    headers: { 'x-api-key': 'demo-greedy' },
    // Twelve requests just before the edge, twelve just after, then six a second.
    sendAtMs: [
      ...every(50, EDGE_MS - 600, EDGE_MS),
      ...every(50, EDGE_MS + 1, EDGE_MS + 600),
      ...every(160, EDGE_MS + 1_000, LENGTH_MS),
    ],
  },
];

function every(stepMs: number, fromMs: number, toMs: number): number[] {
  const count = Math.ceil((toMs - fromMs) / stepMs);
  return Array.from({ length: count }, (_, i) => fromMs + i * stepMs);
}

/** Sends one client's requests to the sidecars in turn; `see` is called for each answer. */
export async function drive(
  client: Client,
  ports: readonly number[],
  see: (observation: Observation) => void,
): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const start = performance.now();
  const pending: Promise<void>[] = [];
  for (const [i, atMs] of client.sendAtMs.entries()) {
    const wait = start + atMs - performance.now();
    if (wait > 0) await pause(wait);
    const port = ports[i % ports.length] ?? 0;
    const sentMs = performance.now() - start;
    pending.push(
      send({ agent, port, headers: client.headers }).then(({ status, rateLimit }) => {
        see({ client: client.name, atMs: sentMs, status, bucket: readLevel(rateLimit) });
      }),
    );
  }
  await Promise.all(pending);
  agent.destroy();
}

interface Sending {
  readonly agent: Agent;
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}

function send({ agent, port, headers }: Sending): Promise<{ status: number; rateLimit: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    rateLimit: string;
  }>();
  const sent = request(
    { agent, host: '127.0.0.1', port, path: '/v1/items', headers },
    (response) => {
      response.resume();
      response.once('end', () => {
        const field = response.headers['ratelimit'];
        resolve({
          status: response.statusCode ?? 0,
          rateLimit: typeof field === 'string' ? field : '',
        });
      });
    },
  );
  sent.once('error', reject);
  sent.end();
  return promise;
}

function readLevel(rateLimit: string): Level | undefined {
  const [, name, tokens] = /^"[^"]*\/([^"/]+)";r=([0-9]+)/.exec(rateLimit) ?? [];
  return name === undefined ? undefined : { name, tokens: Number(tokens) };
}
