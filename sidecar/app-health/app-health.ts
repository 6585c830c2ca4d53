// Answers the kubelet's probes in the app's place (`weir.dev/probes: sidecar`): each is one question to the admin
// listener, for which the app is asked as the kubelet would have asked it. Nothing here is limited, waits for rules or
// for the store, or ends with draining. Whoever reaches the pod may ask as well, so that of each probe one check runs at
// a time and all who ask meanwhile share its outcome: the app is never asked more than one question more.
import {
  APP_HEALTH_PATH,
  appHealthPath,
  type AppCheck,
  type AppProbe,
} from '../../contract/app-probe.ts';
import type { Metric } from '../admin/metric.ts';
import { SUCCEEDED, outcomeOf, type CheckOutcome } from './check-outcome.ts';
import type { Asker } from './http-check.ts';
import { connectLoopback } from './loopback-connection.ts';

export interface AppHealthAnswer {
  readonly status: number;
  readonly body: string;
}

interface Watched {
  readonly probe: AppProbe;
  readonly counts: Record<CheckOutcome['kind'], number>;
  /** The check under way. */
  running: Promise<CheckOutcome> | undefined;
}

export class AppHealth {
  readonly #watched: ReadonlyMap<string, Watched>;

  constructor(probes: readonly AppProbe[]) {
    this.#watched = new Map(
      probes.map((probe) => [
        appHealthPath(probe),
        { probe, counts: noCounts(), running: undefined },
      ]),
    );
  }

  /** `text` is the setting; undefined = no probes. Throws CONFIG_INVALID. */
  static async open(text: string | undefined): Promise<AppHealth> {
    if (text === undefined) return new AppHealth([]);
    const { parseAppProbes } = await import('../../contract/app-probe-schema.ts');
    return new AppHealth(parseAppProbes(text));
  }

  /** 200 for an app that is well; its own status or 503 for one that is not; 504 when its time is over; 404. */
  async answer(path: string, asker: Asker): Promise<AppHealthAnswer> {
    const watched = this.#watched.get(path);
    if (watched === undefined) return this.#unknown();
    watched.running ??= this.#check(watched, asker).finally(() => {
      watched.running = undefined;
    });
    return answerOf(watched.probe, await watched.running);
  }

  get metric(): Metric {
    return {
      definition: {
        name: 'weir_app_probes_total',
        help: 'Probes of the app that were done for the kubelet (weir.dev/probes: sidecar), by what became of them.',
        kind: 'counter',
        labels: ['container', 'probe', 'outcome'],
        across: 'sum',
      },
      read: () =>
        [...this.#watched.values()].flatMap(({ probe: { container, probe }, counts }) =>
          Object.entries(counts).map(([outcome, value]) => ({
            labels: { container, probe, outcome },
            value,
          })),
        ),
    };
  }

  async #check({ probe, counts }: Watched, asker: Asker): Promise<CheckOutcome> {
    const signal = AbortSignal.timeout(probe.timeoutSeconds * 1_000);
    const outcome = await checkApp(probe.check, asker, signal);
    counts[outcome.kind] += 1;
    return outcome;
  }

  #unknown(): AppHealthAnswer {
    const known = [...this.#watched.keys()].join(', ');
    return {
      status: 404,
      body: `known under ${APP_HEALTH_PATH}: ${known === '' ? 'none' : known}\n`,
    };
  }
}

function noCounts(): Watched['counts'] {
  return { succeeded: 0, failed: 0, 'timed-out': 0 };
}

/** What one kind of check needs is loaded when it is first done. */
async function checkApp(check: AppCheck, asker: Asker, signal: AbortSignal): Promise<CheckOutcome> {
  switch (check.kind) {
    case 'http':
      return (await import('./http-check.ts')).checkHttp(check, asker, signal);
    case 'grpc':
      return (await import('./grpc-check.ts')).checkGrpc(check, asker, signal);
    case 'tcp':
      return checkTcp(check.port, signal);
  }
}

async function checkTcp(port: number, signal: AbortSignal): Promise<CheckOutcome> {
  try {
    (await connectLoopback(port, signal)).destroy();
    return SUCCEEDED;
  } catch (error) {
    return outcomeOf(error, signal);
  }
}

function answerOf(
  { container, probe, check, timeoutSeconds }: AppProbe,
  outcome: CheckOutcome,
): AppHealthAnswer {
  const what = `${probe} of container ${container} (${check.kind} on port ${check.port})`;
  switch (outcome.kind) {
    case 'succeeded':
      return { status: 200, body: 'ok\n' };
    case 'timed-out':
      return { status: 504, body: `${what}: no answer within ${timeoutSeconds} s\n` };
    case 'failed':
      return { status: statusOf(outcome.status), body: `${what}: ${outcome.why}\n` };
  }
}

/** The kubelet's Event names the status: the app's own says most. */
function statusOf(status = 0): number {
  return status >= 400 && status <= 599 ? status : 503;
}
