// Which Event is written, which one is counted up, and which is kept back: pure. What is said again becomes a series of
// the same Event; what is said too often of one object waits, and its count is told with the next that may go.
import type { ObjectReference } from '../kube/object.ts';

/** As client-go's spam filter: 25 at once for one object, then one in 5 minutes. */
const BURST = 25;
const REFILL_MS = 300_000;
/** A pause of so long ends a series: what comes then is news. */
const SERIES_ENDS_AFTER_MS = 360_000;
/** Objects and series remembered; beyond it the longest unused are forgotten, which at worst writes one Event more. */
const MOST_REMEMBERED = 4096;

export interface Occurrence {
  readonly regarding: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase: why. */
  readonly reason: string;
  /** UpperCamelCase: what was done or found. */
  readonly action: string;
  readonly note: string;
}

export type SeriesPlan =
  | { readonly act: 'create' }
  /** `count` of all since the first. */
  | { readonly act: 'count'; readonly eventName: string; readonly count: number }
  | { readonly act: 'hold' };

interface Series {
  /** Absent until an Event of it was written. */
  eventName: string | undefined;
  count: number;
  lastMs: number;
}

interface Allowance {
  tokens: number;
  atMs: number;
}

export class EventSeries {
  readonly #series = new Map<string, Series>();
  readonly #allowances = new Map<string, Allowance>();

  plan(occurrence: Occurrence, nowMs: number): SeriesPlan {
    const key = keyOfSeries(occurrence);
    const known = this.#series.get(key);
    const isOver = known === undefined || nowMs - known.lastMs > SERIES_ENDS_AFTER_MS;
    const series = isOver ? { eventName: undefined, count: 0, lastMs: nowMs } : known;
    series.count += 1;
    series.lastMs = nowMs;
    remember(this.#series, key, series);
    if (!this.#spend(keyOfObject(occurrence), nowMs)) return { act: 'hold' };
    if (series.eventName === undefined) return { act: 'create' };
    return { act: 'count', eventName: series.eventName, count: series.count };
  }

  /** The Event was written under that name. */
  written(occurrence: Occurrence, eventName: string): void {
    const series = this.#series.get(keyOfSeries(occurrence));
    if (series !== undefined) series.eventName = eventName;
  }

  /** The Event is gone, or never came to be: the next one is written anew. */
  forget(occurrence: Occurrence): void {
    this.#series.delete(keyOfSeries(occurrence));
  }

  #spend(object: string, nowMs: number): boolean {
    const { tokens, atMs } = this.#allowances.get(object) ?? { tokens: BURST, atMs: nowMs };
    const filled = Math.min(BURST, tokens + (nowMs - atMs) / REFILL_MS);
    const canSpend = filled >= 1;
    remember(this.#allowances, object, { tokens: canSpend ? filled - 1 : filled, atMs: nowMs });
    return canSpend;
  }
}

/** A Map keeps the order of insertion: what is set anew goes to its end. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MOST_REMEMBERED && oldest !== undefined) map.delete(oldest);
}

function keyOfObject({
  regarding: { apiVersion, kind, namespace = '', name },
}: Occurrence): string {
  return JSON.stringify([apiVersion, kind, namespace, name]);
}

function keyOfSeries(occurrence: Occurrence): string {
  const { type, reason, action, note, regarding } = occurrence;
  return JSON.stringify([keyOfObject(occurrence), regarding.uid ?? '', type, reason, action, note]);
}
