// `weir drain`: asks the sidecar of this pod to drain, and returns; the listeners stay open.
import { WeirError } from '../contract/errors.ts';
import { findAdmin } from './admin-address.ts';

/** The admin listener answers from memory; a pod's preStop must not hang on one that does not. */
const ANSWER_WITHIN_MS = 2_000;

/** Throws ADMIN_UNREACHABLE when nothing answers as a sidecar does. */
export async function runDrain(options: { readonly admin?: string }): Promise<void> {
  const { host, port } = findAdmin(options.admin);
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/drain`;
  const answer = await fetch(url, {
    method: 'POST',
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  }).catch((cause: unknown) => {
    throw new WeirError('ADMIN_UNREACHABLE', { url, advice: ADVICE }, { cause });
  });
  await answer.arrayBuffer();
  if (!answer.ok) {
    throw new WeirError('ADMIN_UNREACHABLE', { url, status: answer.status, advice: ADVICE });
  }
}

const ADVICE = 'is a sidecar running here? name its admin listener with --admin ADDR:PORT';
