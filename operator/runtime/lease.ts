// Leader election on a coordination.k8s.io Lease. Promises: two replicas never lead at once as long as their clocks run
// at the same rate; a clean stop gives the Lease away; a holder that cannot renew stops leading by its own clock, before
// anybody else may take over. It does not go on after a loss: the process ends and starts clean (`onLost`).
import prometheus, { type Registry } from 'prom-client';
import { afterReading, pause, type Clock, type Random } from '../clock.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeApi, ObjectName } from '../kube/api.ts';
import { microTime } from '../kube/micro-time.ts';
import type { Resource } from '../kube/object.ts';
import type { Log } from '../log.ts';
import {
  isSameLease,
  leaseTimes,
  planLease,
  releasedSpec,
  type Candidate,
  type Lease,
  type LeaseSpec,
  type LeaseTimes,
  type Observation,
} from './lease-plan.ts';

const leaseResource: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  isNamespaced: true,
};

/** As client-go: candidates spread out, the holder renews on time. */
const JITTER = 1.2;

export interface LeaderElectionOptions {
  readonly api: Pick<KubeApi, 'get' | 'create' | 'replace'>;
  readonly lease: Required<ObjectName>;
  /** Of this process alone, e.g. `host_uuid`: a restarted one must not take itself for the old one. */
  readonly identity: string;
  /** Called once, when leading begins; the signal ends with it. */
  readonly onLeading: (signal: AbortSignal) => void;
  /** Called once, when leading ended against our will: the process should end. */
  readonly onLost: () => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly times?: LeaseTimes;
}

/** Use once per registry. */
export function openLeaderMetrics(registry: Registry): prometheus.Gauge {
  return new prometheus.Gauge({
    name: 'leader_election_master_status',
    help: '1 while this process leads.',
    labelNames: ['name'],
    registers: [registry],
  });
}

export class LeaderElection implements AsyncDisposable {
  readonly #options: LeaderElectionOptions;
  readonly #times: LeaseTimes;
  readonly #end = new AbortController();
  readonly #leading = new AbortController();
  readonly #status: { set(labels: Readonly<Record<string, string>>, value: number): void };
  #observation: Observation;
  /** When the request of the last good renewal was sent: what the others saw came later. */
  #renewedAtMs: number | undefined;
  #expiry: Disposable | undefined;
  #running: Promise<void> | undefined;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#times = options.times ?? leaseTimes;
    this.#observation = { changedAtMs: options.clock.nowMs() };
    this.#status = openLeaderMetrics(options.metrics);
    this.#show(0);
  }

  /** Once; more calls do nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** By the clock at this moment, so that it is true after a pause of the process too. */
  get isLeading(): boolean {
    return !this.#leading.signal.aborted && this.#leftMs() > 0;
  }

  /** Who leads, as last observed; undefined when nobody is known to. */
  get leader(): string | undefined {
    const holder = this.#observation.lease?.spec?.holderIdentity;
    return holder === '' ? undefined : holder;
  }

  /** Gives the Lease away when it is ours. Resolves within a renewal deadline. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
    const wasLeading = this.isLeading;
    this.#stopLeading();
    if (wasLeading) await this.#release();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const { signal } = this.#end;
    while (!signal.aborted && !this.#leading.signal.aborted) {
      await this.#round(signal);
      const { retryMs } = this.#times;
      await pause(clock, this.isLeading ? retryMs : retryMs * (1 + JITTER * random()), signal);
    }
  }

  /** One look and, where it is due, one write. Never rejects. */
  async #round(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const bounded = this.#bounded(signal);
    try {
      await this.#observe(bounded.signal);
      const plan = planLease(this.#observation, clock.nowMs(), this.#me());
      if (plan.act === 'wait') {
        this.#lose('another replica holds the Lease');
        return;
      }
      const sentAtMs = clock.nowMs();
      this.#saw(await this.#write(plan.act, plan.spec, bounded.signal));
      this.#renewed(sentAtMs);
    } catch (error) {
      // 409: somebody was faster; the next look says who.
      if (!signal.aborted && !isApiError(error, 409)) log.warn({ err: error }, 'lease call failed');
    } finally {
      bounded[Symbol.dispose]();
    }
  }

  async #observe(signal: AbortSignal): Promise<void> {
    const { api, lease } = this.#options;
    try {
      this.#saw(await api.get<Lease>(leaseResource, lease, signal));
    } catch (error) {
      if (!isApiError(error, 404)) throw error;
      this.#saw(undefined);
    }
  }

  #saw(lease: Lease | undefined): void {
    if (isSameLease(this.#observation.lease, lease)) return;
    const changedAtMs = this.#options.clock.nowMs();
    this.#observation = lease === undefined ? { changedAtMs } : { lease, changedAtMs };
  }

  #write(act: 'create' | 'replace', spec: LeaseSpec, signal: AbortSignal): Promise<Lease> {
    const { api, lease } = this.#options;
    // With the version that was read: a write in between fails with 409.
    const metadata = this.#observation.lease?.metadata ?? lease;
    return api[act]<Lease>(leaseResource, { metadata, spec }, signal);
  }

  /** Leading is counted from the request, not the answer: an answer may be late by all of the deadline. */
  #renewed(sentAtMs: number): void {
    if (this.#leading.signal.aborted) return;
    const isFirst = this.#renewedAtMs === undefined;
    this.#renewedAtMs = sentAtMs;
    this.#expiry?.[Symbol.dispose]();
    if (this.#leftMs() <= 0) {
      this.#lose('the renewal came too late');
      return;
    }
    this.#expiry = afterReading(this.#options.clock, this.#leftMs(), () => {
      this.#lose('the Lease could not be renewed');
    });
    if (!isFirst) return;
    this.#options.log.info({ identity: this.#options.identity }, 'leading');
    this.#show(1);
    this.#options.onLeading(this.#leading.signal);
  }

  #lose(problem: string): void {
    if (this.#renewedAtMs === undefined || this.#leading.signal.aborted) return;
    this.#options.log.error({ identity: this.#options.identity, problem }, 'no longer leading');
    this.#stopLeading();
    this.#options.onLost();
  }

  #stopLeading(): void {
    this.#expiry?.[Symbol.dispose]();
    this.#show(0);
    this.#leading.abort();
  }

  async #release(): Promise<void> {
    const bounded = this.#bounded();
    try {
      // The end may have cut a renewal short that the server has taken.
      await this.#observe(bounded.signal);
      if (this.leader !== this.#options.identity) return;
      const spec = releasedSpec(this.#observation.lease?.spec ?? {}, this.#me());
      await this.#write('replace', spec, bounded.signal);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'lease not released: it runs out by itself');
    } finally {
      bounded[Symbol.dispose]();
    }
  }

  #leftMs(): number {
    if (this.#renewedAtMs === undefined) return 0;
    return this.#renewedAtMs + this.#times.renewDeadlineMs - this.#options.clock.nowMs();
  }

  #me(): Candidate {
    const { identity, clock } = this.#options;
    return {
      identity,
      durationMs: this.#times.durationMs,
      wallTime: microTime(clock.wallMs()),
    };
  }

  /** A call may take half the deadline: a second one must fit in. */
  #bounded(outer?: AbortSignal): { readonly signal: AbortSignal } & Disposable {
    const own = new AbortController();
    const timer = afterReading(this.#options.clock, this.#times.renewDeadlineMs / 2, () => {
      own.abort(new Error('the lease call took too long'));
    });
    return {
      signal: outer === undefined ? own.signal : AbortSignal.any([outer, own.signal]),
      [Symbol.dispose]: () => {
        timer[Symbol.dispose]();
      },
    };
  }

  #show(value: number): void {
    this.#status.set({ name: this.#options.lease.name }, value);
  }
}
