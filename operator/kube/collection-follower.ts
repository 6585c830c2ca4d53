// Follows one collection for as long as it is let: list, watch, and again when either ends. One stream at a time, never
// a tight loop, no event lost: whatever cannot be resumed is listed anew and compared.
import type { Clock, Random } from '../clock.ts';
import { pause } from '../clock.ts';
import type { Log } from '../log.ts';
import { ApiError } from './api-error.ts';
import type { ArrivalOptions } from './arrival.ts';
import { BackOff } from './back-off.ts';
import type { Collection, KubeCollections, ListPage } from './collection.ts';
import { LineSplitter } from './line-splitter.ts';
import { planStep, type Outcome, type Step } from './next-step.ts';
import type { KubeObject } from './object.ts';
import type { Change, Partition } from './object-store.ts';
import type { ReflectorMetrics } from './reflector-metrics.ts';
import { SilenceAlarm } from './silence-alarm.ts';
import { readWatchEvent } from './watch-event.ts';

/** As client-go's pager. */
const PAGE_SIZE = 500;
/** The server ends a watch after a random time between these, so that replicas and resources do not reconnect in step. */
const SHORTEST_WATCH_SECONDS = 240;
const LONGEST_WATCH_SECONDS = 480;
/** What a server that ends its watches on time may be late by. */
const SILENCE_GRACE_MS = 30_000;
/** Silent for so many of its own timeouts: what should have ended it does not run any more, only a restart helps. */
const DEAD_AFTER_TIMEOUTS = 3;

export interface FollowerContext {
  readonly collections: KubeCollections;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: ReflectorMetrics;
}

export interface FollowerOptions<Type extends KubeObject> {
  readonly collection: Collection;
  readonly transform?: (object: Type) => Type;
  readonly partition: Partition<Type>;
  readonly onChange: (change: Change<Type>) => void;
  readonly onListed: () => void;
}

export class CollectionFollower<Type extends KubeObject> {
  readonly #context: FollowerContext;
  readonly #options: FollowerOptions<Type>;
  readonly #arrival: ArrivalOptions<Type>;
  readonly #backOff: BackOff;
  #resourceVersion = '';
  /** A continue token ran out: the next list asks for everything at once, which no token can outlive. */
  #isUnpaged = false;
  #timeoutMs = LONGEST_WATCH_SECONDS * 1000;
  #heardAtMs: number;
  #turnedAtMs: number;
  #problem: string | undefined = 'not listed yet';

  constructor(context: FollowerContext, options: FollowerOptions<Type>) {
    const { collection, transform } = options;
    this.#context = context;
    this.#options = options;
    this.#arrival = {
      resource: collection.resource,
      ...(collection.isMetadataOnly !== undefined && { isMetadataOnly: collection.isMetadataOnly }),
      ...(transform !== undefined && { transform }),
    };
    this.#backOff = new BackOff(context.random);
    this.#heardAtMs = context.clock.nowMs();
    this.#turnedAtMs = this.#heardAtMs;
  }

  /** Resolves when the signal is aborted, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let step: Step = { next: 'list', waitMs: 0 };
    while (!signal.aborted) {
      const outcome = await this.#attempt(step.next, signal);
      // What fails because of the end is no failure.
      if (isAborted(signal)) return;
      step = this.#conclude(step.next, outcome);
      await pause(this.#context.clock, step.waitMs, signal);
    }
  }

  /** Since the server last sent anything. */
  get silentForMs(): number {
    return this.#context.clock.nowMs() - this.#heardAtMs;
  }

  /** False when neither bytes nor failures have come for so long that the loop itself must be stuck. */
  get isAlive(): boolean {
    const lastMs = Math.max(this.#heardAtMs, this.#turnedAtMs);
    return this.#context.clock.nowMs() - lastMs <= DEAD_AFTER_TIMEOUTS * this.#timeoutMs;
  }

  /** Why it is not up to date, in words. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async #attempt(during: Step['next'], signal: AbortSignal): Promise<Outcome> {
    // Ends whatever this attempt opened, however it ends.
    const own = new AbortController();
    try {
      const ended = AbortSignal.any([signal, own.signal]);
      return during === 'list' ? await this.#list(ended) : await this.#watch(ended, own);
    } catch (error) {
      return outcomeOf(error);
    } finally {
      own.abort();
    }
  }

  #conclude(during: Step['next'], outcome: Outcome): Step {
    const { clock, log, metrics } = this.#context;
    const { resource, namespace } = this.#options.collection;
    this.#turnedAtMs = clock.nowMs();
    const step = planStep({
      ...{ during, outcome, isCustom: this.#options.collection.resource.isCustom === true },
      backOff: () => this.#backOff.next(clock.nowMs()),
    });
    const problem = 'problem' in outcome ? outcome.problem : undefined;
    if (outcome.kind !== 'ended') this.#problem = problem;
    if (step.cause === undefined) return step;
    metrics.restarted(resource.plural, step.cause);
    const { cause, next, waitMs } = step;
    const facts = { resource: resource.plural, namespace, during, cause, next, waitMs, problem };
    if (problem === undefined) log.debug(facts, 'watch ended');
    else log.warn(facts, `${during} failed`);
    return step;
  }

  async #list(signal: AbortSignal): Promise<Outcome> {
    const { collection, partition, onChange, onListed } = this.#options;
    this.#context.metrics.listed(collection.resource.plural);
    const { objects, resourceVersion } = await this.#listPages(signal);
    this.#isUnpaged = false;
    this.#resourceVersion = resourceVersion;
    for (const change of partition.replace(objects)) onChange(change);
    onListed();
    return { kind: 'listed' };
  }

  async #listPages(
    signal: AbortSignal,
  ): Promise<{ readonly objects: readonly Type[]; readonly resourceVersion: string }> {
    const { transform = (object: Type): Type => object } = this.#options;
    const objects: Type[] = [];
    let page: ListPage<Type>;
    let continueToken: string | undefined;
    do {
      page = await this.#listPage(continueToken, signal);
      this.#heard();
      for (const object of page.items) objects.push(transform(object));
      ({ continueToken } = page);
    } while (continueToken !== undefined);
    return { objects, resourceVersion: page.resourceVersion };
  }

  async #listPage(continueToken: string | undefined, signal: AbortSignal): Promise<ListPage<Type>> {
    const request = {
      ...(!this.#isUnpaged && { limit: PAGE_SIZE }),
      ...(continueToken !== undefined && { continueToken }),
    };
    try {
      return await this.#context.collections.listPage(this.#options.collection, request, signal);
    } catch (error) {
      const isExpired = error instanceof ApiError && error.code === 410;
      if (isExpired && continueToken !== undefined) this.#isUnpaged = true;
      throw error;
    }
  }

  async #watch(signal: AbortSignal, own: AbortController): Promise<Outcome> {
    const { clock, collections, metrics, random } = this.#context;
    const { collection } = this.#options;
    metrics.watched(collection.resource.plural);
    const span = LONGEST_WATCH_SECONDS - SHORTEST_WATCH_SECONDS + 1;
    const timeoutSeconds = SHORTEST_WATCH_SECONDS + Math.floor(random() * span);
    this.#timeoutMs = timeoutSeconds * 1000;
    const startMs = clock.nowMs();
    const from = { resourceVersion: this.#resourceVersion, timeoutSeconds };
    const bytes = await collections.openWatch(collection, from, signal);
    this.#heard();
    this.#problem = undefined;
    using alarm = new SilenceAlarm(clock, this.#timeoutMs + SILENCE_GRACE_MS, () => {
      own.abort();
    });
    try {
      const early = await this.#readAll(bytes, alarm);
      const livedMs = clock.nowMs() - startMs;
      return early ?? { kind: 'ended', livedMs, isEarly: livedMs < this.#timeoutMs };
    } catch (error) {
      if (alarm.hasRung) return { kind: 'silent' };
      throw error;
    }
  }

  /** Answers with what ends the watch before its end. */
  async #readAll(
    bytes: AsyncIterable<Uint8Array>,
    alarm: SilenceAlarm,
  ): Promise<Outcome | undefined> {
    const lines = new LineSplitter();
    for await (const chunk of bytes) {
      alarm.heard();
      this.#heard();
      for (const line of lines.push(chunk)) {
        const end = this.#take(line);
        if (end !== undefined) return end;
      }
    }
    return undefined;
  }

  #take(line: string): Outcome | undefined {
    const { partition, onChange } = this.#options;
    const event = readWatchEvent(line, this.#arrival);
    if (event.kind === 'garbage') return event;
    if (event.kind === 'failure') {
      return { kind: 'broken', failure: event.failure, problem: event.message };
    }
    if (event.kind !== 'bookmark') {
      const change =
        event.kind === 'changed' ? partition.set(event.object) : partition.delete(event.object);
      if (change !== undefined) onChange(change);
    }
    // Last: what was not taken must come again.
    this.#resourceVersion = event.resourceVersion;
    return undefined;
  }

  #heard(): void {
    this.#heardAtMs = this.#context.clock.nowMs();
  }
}

/** Asked again after an await: the compiler takes the first answer for the last. */
function isAborted({ aborted }: AbortSignal): boolean {
  return aborted;
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof ApiError) {
    return { kind: 'refused', failure: error, problem: error.message };
  }
  // A line too long, or a transform that threw: what came could not be used.
  if (error instanceof RangeError || error instanceof TypeError) {
    return { kind: 'garbage', problem: error.message };
  }
  const problem = error instanceof Error ? error.message : String(error);
  return { kind: 'refused', failure: { code: 0, reason: 'Unreachable' }, problem };
}
