// Which Kubernetes this is: native sidecars and named ports of theirs depend on it.
import * as z from 'zod';
import { WeirError } from '../contract/errors.ts';
import { pause, type Clock } from './clock.ts';
import type { KubeApi } from './kube/api.ts';
import type { Log } from './log.ts';

/** The CEL libraries of the CRD and of the webhook's conditions came with it. */
export const LOWEST_MINOR = 32;
/** An API server that restarts is back within seconds; a cluster that is being built takes longer. */
const AGAIN_MS = 2_000;

const versionSchema = z.object({ major: z.string(), minor: z.string() });

export interface ServerVersionOptions {
  readonly client: Pick<KubeApi, 'read'> & { readonly server: string };
  readonly clock: Clock;
  readonly log: Log;
}

/** 36 for Kubernetes 1.36. Waits for the server as long as it takes. Throws CLUSTER_TOO_OLD. */
export async function serverMinor(
  { client, clock, log }: ServerVersionOptions,
  signal: AbortSignal,
): Promise<number> {
  for (;;) {
    signal.throwIfAborted();
    const found = await client.read<unknown>('/version', signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      log.warn({ server: client.server, err: error }, 'the API server does not answer; waiting');
      return undefined;
    });
    if (found !== undefined) return minorOf(found, client.server);
    await pause(clock, AGAIN_MS, signal);
  }
}

// Vendors write minors such as `33+`.
function minorOf(found: unknown, server: string): number {
  const parsed = versionSchema.safeParse(found);
  const minor = Number(/^\d+/.exec(parsed.success ? parsed.data.minor : '')?.[0] ?? NaN);
  if (parsed.success && parsed.data.major === '1' && minor >= LOWEST_MINOR) return minor;
  throw new WeirError('CLUSTER_TOO_OLD', {
    server,
    found: parsed.success
      ? `${parsed.data.major}.${parsed.data.minor}`
      : 'no version: no Kubernetes answers there',
    right: `Kubernetes 1.${LOWEST_MINOR} or newer`,
  });
}
