// Requests to sidecars, one connection each: what a test counts must not depend on who kept which connection.
import { once } from 'node:events';
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

const TIMEOUT_MS = 10_000;

export interface SidecarAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export async function askSidecar(
  port: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<SidecarAnswer> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = request({ host: '127.0.0.1', port, path: '/', agent: false, headers, signal });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: await text(response),
  };
}

/** Asks `count` times, in turn over the ports, and gives the statuses. */
export async function askInTurn(
  ports: readonly number[],
  count: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const { status } = await askSidecar(ports[i % ports.length] ?? 0, headers);
    statuses.push(status);
  }
  return statuses;
}

/** How often each status was answered. */
export function tallyOf(statuses: readonly number[]): Readonly<Record<number, number>> {
  const tally: Record<number, number> = {};
  for (const status of statuses) tally[status] = (tally[status] ?? 0) + 1;
  return tally;
}
