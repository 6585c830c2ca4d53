// `weir drain`: asks the sidecar of this pod to drain, and returns; the listeners stay open. With --hold it returns later:
// an ordinary sidecar gets its SIGTERM when this hook has returned, and must not end before the app.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
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
  const { statusCode: status } = await post(host, port).catch((cause: unknown) => {
    throw new WeirError('ADMIN_UNREACHABLE', { url, advice: ADVICE }, { cause });
  });
  if (status !== 200) throw new WeirError('ADMIN_UNREACHABLE', { url, status, advice: ADVICE });
}

/** Not by `fetch`: that refuses some ports (6000, 6667, …) on which a sidecar may well listen. */
async function post(host: string, port: number): Promise<IncomingMessage> {
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const asked = request({ host, port, path: '/drain', method: 'POST', signal }).end();
  const [answer] = (await once(asked, 'response', { signal })) as [IncomingMessage];
  answer.resume();
  return answer;
}

const ADVICE = 'is a sidecar running here? name its admin listener with --admin ADDR:PORT';
