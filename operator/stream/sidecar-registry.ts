// What is known of every sidecar: what it runs, what it refused, how its store is. The stream server fills it, the
// status of policies is made from it. An entry outlives its stream for a while, so that the hourly reconnect of a
// sidecar or a change of replicas does not show in any status.
import type { ConfigOrigin, PolicyRefusal, StateFrame } from '../../contract/stream.ts';
import type { Unsupported } from './push-plan.ts';
import type { SessionReport } from './session.ts';

/** How long a sidecar without a stream is believed to run what it ran: twice its longest back-off. */
export const REMEMBERED_MS = 60_000;
/** A cluster whose state stays behind what sidecars have seen for this long has gone back for good. */
export const REGRESSION_MS = 60_000;

export interface SidecarState {
  readonly podUid: string;
  readonly namespace: string;
  readonly name: string;
  readonly connected: boolean;
  /** Version of the sidecar program. */
  readonly sidecarVersion: string;
  /** Version of the bundle in force, as the sidecar says; empty = none. */
  readonly version: string;
  readonly origin: ConfigOrigin;
  /** Generation in force by policy uid. */
  readonly generations: ReadonlyMap<string, number>;
  readonly refusals: readonly PolicyRefusal[];
  /** Policies that were not sent because the sidecar does not know what they use. */
  readonly tooOld: readonly Unsupported[];
  readonly store: StateFrame['store'];
  readonly storeProblem: string | undefined;
  /** `<namespace>/<policy>/<rule>`. */
  readonly clientIpIsProxy: readonly string[];
}

/** `after` undefined = forgotten. */
export type StateListener = (
  podUid: string,
  before: SidecarState,
  after: SidecarState | undefined,
) => void;

interface Entry {
  state: SidecarState;
  /** Monotonic ms; undefined while connected. */
  leftMs: number | undefined;
  /** Since when streams of this pod end because the cache is behind. */
  behindSinceMs: number | undefined;
}

export class SidecarRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<StateListener>();
  readonly #nowMs: () => number;

  /** `nowMs` is monotonic. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get(podUid: string): SidecarState | undefined {
    return this.#entries.get(podUid)?.state;
  }

  *all(): Iterable<SidecarState> {
    for (const { state } of this.#entries.values()) yield state;
  }

  /** `listener` is told of every state that has changed, or has been forgotten. Disposing ends it. */
  onChange(listener: StateListener): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /** A stream said something about the sidecar of a pod. */
  report(
    podUid: string,
    pod: { readonly namespace: string; readonly name: string },
    report: SessionReport,
  ): void {
    const entry = this.#open(podUid, pod);
    const before = entry.state;
    if (report.kind === 'hello') entry.leftMs = undefined;
    if (report.kind === 'behind') entry.behindSinceMs ??= this.#nowMs();
    if (report.kind === 'in-force') entry.behindSinceMs = undefined;
    entry.state = stateAfter(before, report);
    if (entry.state !== before) this.#tell(podUid, before, entry.state);
  }

  disconnect(podUid: string): void {
    const entry = this.#entries.get(podUid);
    if (entry?.state.connected !== true) return;
    entry.leftMs = this.#nowMs();
    const before = entry.state;
    entry.state = { ...before, connected: false };
    this.#tell(podUid, before, entry.state);
  }

  /** What the sidecar of this pod refused, if it is still of that version. */
  refusalsOf(podUid: string, sidecarVersion: string): readonly PolicyRefusal[] {
    const state = this.get(podUid);
    return state?.sidecarVersion === sidecarVersion ? state.refusals : [];
  }

  /** Whether this pod has been ahead of the cache for so long that the cache is what there is. */
  mayRegress(podUid: string): boolean {
    const since = this.#entries.get(podUid)?.behindSinceMs;
    return since !== undefined && this.#nowMs() >= since + REGRESSION_MS;
  }

  /** Forgets who has gone: those without a stream for REMEMBERED_MS, at once those whose pod is no more. */
  sweep(exists: (podUid: string) => boolean): void {
    const nowMs = this.#nowMs();
    for (const [podUid, { leftMs, state }] of this.#entries) {
      if (leftMs === undefined) continue;
      if (exists(podUid) && nowMs < leftMs + REMEMBERED_MS) continue;
      this.#entries.delete(podUid);
      this.#tell(podUid, state, undefined);
    }
  }

  #open(
    podUid: string,
    { namespace, name }: { readonly namespace: string; readonly name: string },
  ): Entry {
    const known = this.#entries.get(podUid);
    if (known !== undefined) return known;
    const state: SidecarState = {
      ...{ podUid, namespace, name, connected: false, sidecarVersion: '', version: '' },
      ...{ origin: 'none', generations: new Map<string, number>(), refusals: [], tooOld: [] },
      ...{ store: undefined, storeProblem: undefined, clientIpIsProxy: [] },
    };
    const entry = { state, leftMs: undefined, behindSinceMs: undefined };
    this.#entries.set(podUid, entry);
    return entry;
  }

  #tell(podUid: string, before: SidecarState, after: SidecarState | undefined): void {
    for (const listener of this.#listeners) listener(podUid, before, after);
  }
}

/** The same object when nothing is new. */
function stateAfter(state: SidecarState, report: SessionReport): SidecarState {
  switch (report.kind) {
    case 'hello': {
      const { sidecar, have } = report.hello;
      const generations = new Map(have.sources.map(({ uid, generation }) => [uid, generation]));
      const isSame = state.sidecarVersion === sidecar.version;
      return {
        ...state,
        ...{ connected: true, sidecarVersion: sidecar.version, version: have.version },
        ...{ origin: have.origin, generations, refusals: isSame ? state.refusals : [] },
      };
    }
    case 'in-force': {
      const { version, generations, refusals } = report;
      return { ...state, version, generations, refusals, origin: 'stream' };
    }
    case 'too-old':
      return { ...state, tooOld: report.policies };
    case 'state': {
      const { version, origin, store, storeProblem, clientIpIsProxy } = report.state;
      const next = { ...state, version, origin, store, storeProblem, clientIpIsProxy };
      return isSameState(state, next) ? state : next;
    }
    case 'settled':
    case 'behind':
      return state;
  }
}

/** Most states every 30 s say nothing new: nobody is woken for them. */
function isSameState(a: SidecarState, b: SidecarState): boolean {
  return (
    a.version === b.version &&
    a.origin === b.origin &&
    a.store === b.store &&
    a.storeProblem === b.storeProblem &&
    a.clientIpIsProxy.join(' ') === b.clientIpIsProxy.join(' ')
  );
}
