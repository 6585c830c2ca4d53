import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';

/** An API server under build load has taken 4 s for a dry run with CEL. */
const TIMEOUT_MS = 30_000;

export interface JsonAnswer {
  readonly status: number;
  /** Parsed where it is JSON, else the text. */
  readonly body: unknown;
}

/** One HTTPS request and its answer. Rejects only when no answer comes. */
export async function exchangeJson(
  url: string,
  options: RequestOptions,
  body?: string,
): Promise<JsonAnswer> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const sent = request(new URL(url), { ...options, signal });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: parse(await text(response)) };
}

function parse(answer: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    return answer;
  }
}
