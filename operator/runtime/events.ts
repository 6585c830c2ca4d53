// Writes events.k8s.io/v1 Events: what people see in `kubectl describe`. Nothing waits for one and nothing fails with
// one: they are queued, written one after another, and dropped with a count when the server will not have them.
import prometheus, { type Registry } from 'prom-client';
import { pause, type Clock, type Random } from '../clock.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeApi } from '../kube/api.ts';
import { microTime } from '../kube/micro-time.ts';
import type { KubeObject, ObjectReference, Resource } from '../kube/object.ts';
import type { Log } from '../log.ts';
import { EventSeries, type Occurrence } from './event-series.ts';

export const eventResource: Resource = {
  group: 'events.k8s.io',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  isNamespaced: true,
};

const CONTROLLER = 'weir.dev/operator';
/** The API's bounds; a note is counted in bytes. */
const MOST_NOTE_BYTES = 1024;
const MOST_INSTANCE_CHARACTERS = 128;
const MOST_NAME_CHARACTERS = 253;
/** Where Events of what has no namespace live. */
const CLUSTER_NAMESPACE = 'default';
/** A burst of every workload of a large cluster; at 1 kB each a few MB. */
const MOST_PENDING = 2_000;
/** An API server that restarts is back within the sum of the waits: 1 + 2 + 4 + 8 s. */
const ATTEMPTS = 5;
const FIRST_WAIT_MS = 1_000;
/** At the end of the process: a part of the grace period that a pod has. */
const FLUSH_MS = 3_000;

export interface EventRecorder extends AsyncDisposable {
  /** Returns at once, never throws. A note longer than 1 024 bytes is cut. */
  record(occurrence: Occurrence): void;
}

export interface EventRecorderOptions {
  readonly api: Pick<KubeApi, 'create' | 'jsonPatch'>;
  /** Which replica says it, e.g. the pod's name. */
  readonly instance: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
}

interface EventObject extends KubeObject {
  readonly eventTime: string;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly action: string;
  readonly reason: string;
  readonly type: string;
  readonly note: string;
  readonly regarding: ObjectReference;
}

/** Use once per registry. */
export function openEventMetrics(registry: Registry): prometheus.Counter {
  return new prometheus.Counter({
    name: 'weir_events_total',
    help: 'Events, by what became of them: written, held back as too many, dropped.',
    labelNames: ['result'],
    registers: [registry],
  });
}

export function openEventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new EventSeries();
  readonly #pending: Occurrence[] = [];
  readonly #end = new AbortController();
  readonly #results: { inc(labels: Readonly<Record<string, string>>): void };
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#results = openEventMetrics(options.metrics);
  }

  record(occurrence: Occurrence): void {
    if (this.#isClosed || this.#pending.length >= MOST_PENDING) {
      this.#results.inc({ result: 'dropped' });
      return;
    }
    this.#pending.push({ ...occurrence, note: cutNote(occurrence.note) });
    this.#writing ??= this.#writeAll();
  }

  /** Writes what is pending, for 3 s at most. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const timer = this.#options.clock.after(FLUSH_MS, () => {
      this.#end.abort();
    });
    await this.#writing;
    timer[Symbol.dispose]();
  }

  async #writeAll(): Promise<void> {
    for (;;) {
      const occurrence = this.#pending.shift();
      if (occurrence === undefined) break;
      this.#results.inc({ result: await this.#write(occurrence) });
    }
    this.#writing = undefined;
  }

  async #write(occurrence: Occurrence): Promise<'written' | 'held' | 'dropped'> {
    if (this.#end.signal.aborted) return 'dropped';
    const plan = this.#series.plan(occurrence, this.#options.clock.nowMs());
    if (plan.act === 'hold') return 'held';
    try {
      await this.#retried(() =>
        plan.act === 'create'
          ? this.#create(occurrence)
          : this.#count(occurrence, plan.eventName, plan.count),
      );
      return 'written';
    } catch (error) {
      this.#series.forget(occurrence);
      this.#options.log.warn({ reason: occurrence.reason, err: error }, 'event dropped');
      return 'dropped';
    }
  }

  async #retried(write: () => Promise<void>): Promise<void> {
    const { signal } = this.#end;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await write();
        return;
      } catch (error) {
        if (attempt >= ATTEMPTS || signal.aborted || !isPassing(error)) throw error;
      }
      await pause(this.#options.clock, FIRST_WAIT_MS * 2 ** (attempt - 1), signal);
    }
  }

  async #create(occurrence: Occurrence): Promise<void> {
    const { api, clock, random, instance } = this.#options;
    const event = eventOf(occurrence, {
      suffix: suffixOf(random),
      eventTime: microTime(clock.wallMs()),
      instance,
    });
    try {
      await api.create(eventResource, event, this.#end.signal);
    } catch (error) {
      // An attempt whose answer was lost has written it.
      if (!isApiError(error, 409)) throw error;
    }
    this.#series.written(occurrence, event.metadata.name);
  }

  async #count(occurrence: Occurrence, eventName: string, count: number): Promise<void> {
    const { api, clock } = this.#options;
    const series = { count, lastObservedTime: microTime(clock.wallMs()) };
    const name = { namespace: namespaceOf(occurrence), name: eventName };
    try {
      await api.jsonPatch(eventResource, name, {
        operations: [{ op: 'add', path: '/series', value: series }],
        signal: this.#end.signal,
      });
    } catch (error) {
      // The server keeps Events for an hour.
      if (!isApiError(error, 404)) throw error;
      await this.#create(occurrence);
    }
  }
}

/** Worth another attempt. */
function isPassing(error: unknown): boolean {
  return isApiError(error) && (error.code === 0 || error.code === 429 || error.code >= 500);
}

function eventOf(
  { regarding, type, reason, action, note }: Occurrence,
  own: { readonly suffix: string; readonly eventTime: string; readonly instance: string },
): EventObject & { readonly metadata: { readonly name: string } } {
  const room = MOST_NAME_CHARACTERS - own.suffix.length - 1;
  const start = regarding.name
    .toLowerCase()
    .slice(0, room)
    .replace(/[.-]+$/, '');
  return {
    metadata: {
      namespace: regarding.namespace ?? CLUSTER_NAMESPACE,
      name: `${start}.${own.suffix}`,
    },
    eventTime: own.eventTime,
    reportingController: CONTROLLER,
    reportingInstance: own.instance.slice(0, MOST_INSTANCE_CHARACTERS),
    action,
    reason,
    type,
    note,
    regarding,
  };
}

function namespaceOf({ regarding }: Occurrence): string {
  return regarding.namespace ?? CLUSTER_NAMESPACE;
}

/** 16 hexadecimal digits: two replicas that speak of one object do not meet. */
function suffixOf(random: Random): string {
  const half = (): string =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return half() + half();
}

/** Cut between characters, with an ellipsis that fits in. */
export function cutNote(note: string): string {
  const bytes = Buffer.from(note);
  if (bytes.length <= MOST_NOTE_BYTES) return note;
  const ellipsis = '…';
  let end = MOST_NOTE_BYTES - Buffer.byteLength(ellipsis);
  // A byte 10xxxxxx continues a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString('utf8') + ellipsis;
}
