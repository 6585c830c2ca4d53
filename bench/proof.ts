// Before a contender is measured it must do what it is measured for: answer 200 to an allowed key and 429 to a refused
// one. A limiter that is misconfigured is fast.
import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from './contender.ts';

/** Traefik listens before it knows its routes and answers 404 until then. */
const SETTLE_MS = 15_000;
const POLL_MS = 50;
/** The first request with the key `deny` is within its limit. */
const ASKED_AT_MOST = 5;

/** Resolves once both verdicts were seen; rejects with what was seen instead. */
export async function proveVerdicts(contender: Contender): Promise<void> {
  const { title, port, refusingPort } = contender;
  const allowed = await settled(port, 'proof');
  if (allowed !== 200) throw new Error(`${title} answers ${String(allowed)} to an allowed key`);
  if (refusingPort === undefined) return;
  await settled(refusingPort, 'proof');
  const seen: number[] = [];
  while (seen.length < ASKED_AT_MOST) {
    const status = await statusOf(refusingPort, 'deny');
    if (status === 429) return;
    seen.push(status);
  }
  throw new Error(`${title} refuses nothing: it answers ${seen.join(', ')} to the key "deny"`);
}

/** The first status that is not one of somebody still starting, or the last one. */
async function settled(port: number, key: string): Promise<number> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const status = await statusOf(port, key);
    const isStarting = status === 404 || status >= 500;
    if (!isStarting || performance.now() > deadline) return status;
    await delay(POLL_MS);
  }
}

async function statusOf(port: number, key: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${String(port)}/`, {
    headers: { 'x-api-key': key, connection: 'close' },
    signal: AbortSignal.timeout(SETTLE_MS),
  });
  await response.text();
  return response.status;
}
