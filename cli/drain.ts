// `weir drain`: asks the sidecar of this pod to drain, and returns; the listeners stay open. With --hold it returns later:
// an ordinary sidecar gets its SIGTERM when this hook has returned, and must not end before the app.
import { setTimeout as pause } from 'node:timers/promises';
import { WeirError } from '../contract/errors.ts';
import { parseDuration } from '../contract/setting.ts';
import { findAdmin } from './admin-address.ts';

/** The admin listener answers from memory; a pod's preStop must not hang on one that does not. */
const ANSWER_WITHIN_MS = 2_000;

/** Throws ADMIN_UNREACHABLE when nothing answers as a sidecar does, after the time to hold all the same. */
export async function runDrain(options: {
  readonly admin?: string;
  readonly hold?: string;
}): Promise<void> {
  const holdMs = options.hold === undefined ? 0 : readHold(options.hold);
  const drained = askToDrain(options.admin);
  // Together: the time counts from the pod's deletion.
  const [outcome] = await Promise.allSettled([drained, pause(holdMs)]);
  if (outcome.status === 'rejected') throw outcome.reason;
}

function readHold(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    throw new WeirError('CONFIG_INVALID', { ...error.details, where: '--hold' });
  }
}

async function askToDrain(admin: string | undefined): Promise<void> {
  const { host, port } = findAdmin(admin);
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
