// One stream as a state machine: what came and what time it is go in, lines and reports come out. No I/O, no clock of
// its own. It promises: one push under way at a time, changes coalesced, never a generation lower than the sidecar has
// seen, never again what this sidecar has refused, and an end that says why.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import { type Decoded, encodePush } from '../../contract/frame-codec.ts';
import {
  type AckFrame,
  type ByeFrame,
  type HelloFrame,
  type NackFrame,
  type PolicyRefusal,
  type SidecarFrame,
  STREAM_PROTOCOL,
  type StateFrame,
} from '../../contract/stream.ts';
import type { BundleProvider, PodIdentity, Provision } from './bundle-provider.ts';
import type { PolicyTexts } from './policy-texts.ts';
import {
  type Abilities,
  type Base,
  isBehind,
  keyOf,
  planPush,
  type Selection,
  selectFor,
  surroundingsOf,
  type Unsupported,
} from './push-plan.ts';

/** A client has everything for its first frame at hand. */
export const HELLO_WITHIN_MS = 5_000;
/** A burst of events (a rollout, `kubectl apply -f folder`) becomes one push. */
export const DEBOUNCE_MS = 100;
/** A cluster that never rests still gets its changes out. */
export const DEBOUNCE_MOST_MS = 1_000;
/** How long a cache that is behind the sidecar may take to catch up, before another replica is asked. */
export const CATCH_UP_MS = 10_000;
/** Compiling a bundle takes milliseconds; a throttled start with many expressions seconds. */
export const ACK_WITHIN_MS = 60_000;
/** ± 20 %: HTTP/2 connections stick to the replica that was first, and must be spread again. */
export const LIFETIME_MS = 3_600_000;
/** After a bye everybody would come back at once. */
const RETURN_WITHIN_MS = 1_000;
/** A sidecar sends a state every 30 s and an answer a push: this many in a minute is no sidecar. */
export const FRAMES_PER_MINUTE_MAX = 600;

export type PushResult = 'acked' | 'rejected' | 'refused' | 'timeout';

export type SessionReport =
  | { readonly kind: 'hello'; readonly hello: HelloFrame }
  | {
      readonly kind: 'in-force';
      readonly version: string;
      /** By policy uid. */
      readonly generations: ReadonlyMap<string, number>;
      readonly refusals: readonly PolicyRefusal[];
    }
  | { readonly kind: 'too-old'; readonly policies: readonly Unsupported[] }
  | { readonly kind: 'state'; readonly state: StateFrame }
  /** `lagMs`: since the world changed, or since hello. */
  | { readonly kind: 'settled'; readonly result: PushResult; readonly lagMs: number }
  /** The stream ends because this replica's cache is behind. */
  | { readonly kind: 'behind' };

export interface SessionSink {
  /** Lines of one frame or push, to be written in order. */
  send(lines: readonly string[]): void;
  /** Nothing is sent after it. */
  close(bye: ByeFrame): void;
  report(report: SessionReport): void;
}

export interface SessionOptions {
  readonly podUid: string;
  readonly pod: Pick<PodIdentity, 'namespace' | 'name'>;
  readonly provider: Pick<BundleProvider, 'bundleFor'>;
  readonly texts: PolicyTexts;
  /** Refusals of this pod's sidecar from earlier streams. */
  readonly refusals: (sidecarVersion: string) => readonly PolicyRefusal[];
  /** Whether lower generations than the sidecar has seen may go out: they are what the cluster has. */
  readonly mayRegress: () => boolean;
  readonly sink: SessionSink;
  readonly nowMs: number;
  /** In [0, 1). */
  readonly random: () => number;
  /** ISO 8601. */
  readonly timestamp: () => string;
}

interface Outstanding {
  readonly nonce: number;
  readonly key: string;
  /** It builds on what the sidecar has. */
  readonly isPartial: boolean;
  readonly policies: readonly CompiledPolicy[];
  readonly held: readonly string[];
  readonly surroundings: string;
  readonly sentMs: number;
  readonly sinceMs: number;
}

interface Change {
  readonly firstMs: number;
  readonly lastMs: number;
}

export class StreamSession {
  readonly #options: SessionOptions;
  #phase: 'hello' | 'live' | 'over' = 'hello';
  readonly #startedMs: number;
  readonly #endsMs: number;
  #abilities: Abilities = { formats: [], features: undefined };
  /** Refused generation by policy uid. */
  readonly #refused = new Map<string, PolicyRefusal>();
  readonly #highest = new Map<string, number>();
  #generations: ReadonlyMap<string, number> = new Map();
  #nonce = 0;
  #base: Base | undefined = undefined;
  #outstanding: Outstanding | undefined = undefined;
  /** Of the provision that was settled last, whether taken or not. */
  #settledKey: string | undefined = undefined;
  #change: Change | undefined = undefined;
  #behindSinceMs: number | undefined = undefined;
  #tooOld = '';
  #minuteEndsMs: number;
  #framesThisMinute = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#startedMs = options.nowMs;
    this.#endsMs = options.nowMs + LIFETIME_MS * (0.8 + 0.4 * options.random());
    this.#minuteEndsMs = options.nowMs + 60_000;
  }

  get isOver(): boolean {
    return this.#phase === 'over';
  }

  /** When `onTime` wants to be called next. */
  get dueMs(): number {
    if (this.#phase === 'over') return Infinity;
    if (this.#phase === 'hello') return this.#startedMs + HELLO_WITHIN_MS;
    return Math.min(this.#endsMs, this.#pushDueMs());
  }

  /** The provision of this pod may have changed. */
  onChange(nowMs: number): void {
    this.#change = { firstMs: this.#change?.firstMs ?? nowMs, lastMs: nowMs };
  }

  onTime(nowMs: number): void {
    if (nowMs < this.dueMs) return;
    if (this.#phase === 'hello') this.#close('Protocol');
    else if (nowMs >= this.#endsMs) this.#close('Rebalance');
    else if (this.#outstanding === undefined) this.#push(nowMs);
    else this.#giveUp(this.#outstanding, nowMs);
  }

  receive(decoded: Decoded<SidecarFrame>, nowMs: number): void {
    if (this.#phase === 'over') return;
    if (!this.#countFrame(nowMs)) return;
    switch (decoded.kind) {
      case 'frame':
        this.#onFrame(decoded.frame, nowMs);
        return;
      case 'unknown-type':
        // A newer sidecar; before its hello there is nobody to be newer.
        if (this.#phase === 'hello') this.#close('Protocol');
        return;
      case 'invalid':
      case 'too-long':
        this.#close('Protocol');
    }
  }

  /** Ends the stream from outside. */
  end(reason: ByeFrame['reason'], retryAfterMs?: number): void {
    if (this.#phase !== 'over') this.#close(reason, retryAfterMs);
  }

  #pushDueMs(): number {
    if (this.#outstanding !== undefined) return this.#outstanding.sentMs + ACK_WITHIN_MS;
    const change = this.#change;
    const caughtUpMs = (this.#behindSinceMs ?? Infinity) + CATCH_UP_MS;
    if (change === undefined) return caughtUpMs;
    const quietMs = Math.min(change.lastMs + DEBOUNCE_MS, change.firstMs + DEBOUNCE_MOST_MS);
    return Math.min(quietMs, caughtUpMs);
  }

  #countFrame(nowMs: number): boolean {
    if (nowMs >= this.#minuteEndsMs) {
      this.#minuteEndsMs = nowMs + 60_000;
      this.#framesThisMinute = 0;
    }
    this.#framesThisMinute += 1;
    if (this.#framesThisMinute <= FRAMES_PER_MINUTE_MAX) return true;
    this.#close('Protocol');
    return false;
  }

  #onFrame(frame: SidecarFrame, nowMs: number): void {
    if ((this.#phase === 'hello') !== (frame.type === 'hello')) {
      this.#close('Protocol');
      return;
    }
    switch (frame.type) {
      case 'hello':
        this.#onHello(frame, nowMs);
        return;
      case 'ack':
        this.#onAck(frame, nowMs);
        return;
      case 'nack':
        this.#onNack(frame, nowMs);
        return;
      case 'state':
        this.#options.sink.report({ kind: 'state', state: frame });
    }
  }

  #onHello(hello: HelloFrame, nowMs: number): void {
    const { podUid, pod, refusals, sink } = this.#options;
    if (hello.protocol !== STREAM_PROTOCOL) {
      this.#close('Protocol');
      return;
    }
    const { namespace, name, uid } = hello.pod;
    if (uid !== podUid || namespace !== pod.namespace || name !== pod.name) {
      this.#close('Unauthorized');
      return;
    }
    this.#phase = 'live';
    const { formats, features, version } = hello.sidecar;
    this.#abilities = { formats, features };
    for (const one of refusals(version)) this.#refused.set(one.uid, one);
    for (const { uid: policy, generation } of hello.have.sources) {
      this.#highest.set(policy, generation);
    }
    this.#generations = new Map(this.#highest);
    if (hello.have.version !== '') {
      this.#base = { version: hello.have.version, digests: undefined, surroundings: undefined };
    }
    sink.report({ kind: 'hello', hello });
    this.#change = { firstMs: nowMs, lastMs: nowMs };
    this.#push(nowMs);
  }

  #onAck({ nonce, version }: AckFrame, nowMs: number): void {
    const push = this.#take(nonce);
    if (push === undefined) return;
    this.#land(push, version, new Set());
    this.#settle(push, 'acked', nowMs);
  }

  #onNack(nack: NackFrame, nowMs: number): void {
    // A frame of ours that an older sidecar does not know: no push was answered.
    if (nack.code === 'UnknownFrame') return;
    const push = this.#take(nack.nonce);
    if (push === undefined) return;
    if (nack.code === 'Policies') {
      this.#onRefusals(push, nack);
      this.#settle(push, 'rejected', nowMs);
      return;
    }
    this.#base = undefined;
    if (nack.code === 'UnknownBase' && push.isPartial) {
      // It has something else than was thought: the whole bundle, at once.
      this.#change = { firstMs: push.sinceMs, lastMs: nowMs - DEBOUNCE_MS };
      this.#push(nowMs);
      return;
    }
    this.#settle(push, 'refused', nowMs);
  }

  /** A refusal counts only for what was sent: nobody can refuse a generation in advance. */
  #onRefusals(push: Outstanding, { version, refusals }: NackFrame): void {
    const sent = new Map(push.policies.map((policy) => [policy.uid, policy.generation]));
    const valid = refusals.filter(({ uid, generation }) => sent.get(uid) === generation);
    for (const one of valid) this.#refused.set(one.uid, one);
    this.#land(push, version, new Set(valid.map(({ uid }) => uid)));
  }

  /** What is in force after a push, without those that were refused. */
  #land(push: Outstanding, version: string, refused: ReadonlySet<string>): void {
    const { texts, sink } = this.#options;
    const generations = new Map<string, number>();
    const digests = new Map<string, string>();
    const keep = (uid: string): void => {
      digests.set(uid, '');
      const known = this.#generations.get(uid);
      if (known !== undefined) generations.set(uid, known);
    };
    for (const uid of push.held) keep(uid);
    for (const policy of push.policies) {
      if (refused.has(policy.uid)) {
        keep(policy.uid);
        continue;
      }
      digests.set(policy.uid, texts.digestOf(policy));
      generations.set(policy.uid, policy.generation);
      this.#highest.set(policy.uid, policy.generation);
      this.#refused.delete(policy.uid);
    }
    for (const uid of this.#refused.keys()) if (!digests.has(uid)) this.#refused.delete(uid);
    this.#generations = generations;
    this.#base = { version, digests, surroundings: push.surroundings };
    sink.report({ kind: 'in-force', version, generations, refusals: [...this.#refused.values()] });
  }

  #take(nonce: number): Outstanding | undefined {
    const push = this.#outstanding;
    if (push?.nonce !== nonce) return undefined;
    this.#outstanding = undefined;
    return push;
  }

  #settle(push: Outstanding, result: PushResult, nowMs: number): void {
    this.#settledKey = push.key;
    this.#options.sink.report({ kind: 'settled', result, lagMs: nowMs - push.sinceMs });
    if (nowMs >= this.#pushDueMs()) this.#push(nowMs);
  }

  #giveUp(push: Outstanding, nowMs: number): void {
    this.#options.sink.report({
      kind: 'settled',
      result: 'timeout',
      lagMs: nowMs - push.sinceMs,
    });
    this.#close('TooSlow');
  }

  #push(nowMs: number): void {
    const { podUid, provider, texts } = this.#options;
    const provision = provider.bundleFor(podUid);
    if (provision === undefined) {
      this.#rest();
      return;
    }
    const key = keyOf(provision, texts);
    if (key === this.#settledKey) {
      this.#rest();
      return;
    }
    const selection = selectFor(provision, this.#abilities, (one) => this.#isRefused(one), texts);
    this.#reportTooOld(selection.tooOld);
    const behind = isBehind(selection.bundle.policies, this.#highest);
    if (behind && !this.#options.mayRegress()) {
      this.#waitForCache(nowMs);
      return;
    }
    this.#send(provision, selection, { key, behind, nowMs });
  }

  #send(
    provision: Provision,
    selection: Selection,
    {
      key,
      behind,
      nowMs,
    }: { readonly key: string; readonly behind: boolean; readonly nowMs: number },
  ): void {
    const { texts, timestamp, sink } = this.#options;
    const sinceMs = this.#change?.firstMs ?? nowMs;
    this.#rest();
    // A delta cannot say that it goes back.
    const planned = planPush(selection, provision, behind ? undefined : this.#base, texts);
    this.#nonce += 1;
    const issued = { nonce: this.#nonce, issuedAt: timestamp() };
    const regressed = behind && planned.head.type === 'config' ? { regressed: true as const } : {};
    const head = { ...planned.head, ...issued, ...regressed };
    const { policies } = selection.bundle;
    const isPartial = head.type === 'delta' || head.unchanged === true;
    this.#outstanding = {
      ...{ nonce: this.#nonce, key, isPartial, policies },
      ...{ held: selection.held, surroundings: surroundingsOf(provision, texts) },
      ...{ sentMs: nowMs, sinceMs },
    };
    const lines = planned.policies.map((one) => texts.textOf(one));
    sink.send(encodePush(head, lines));
  }

  /** Nothing is waiting to be pushed. */
  #rest(): void {
    this.#change = undefined;
    this.#behindSinceMs = undefined;
  }

  #waitForCache(nowMs: number): void {
    this.#change = undefined;
    this.#behindSinceMs ??= nowMs;
    if (nowMs < this.#behindSinceMs + CATCH_UP_MS) return;
    this.#options.sink.report({ kind: 'behind' });
    this.#close('Moved');
  }

  #isRefused({ uid, generation }: CompiledPolicy): boolean {
    return this.#refused.get(uid)?.generation === generation;
  }

  #reportTooOld(policies: readonly Unsupported[]): void {
    const text = JSON.stringify(policies);
    if (text === (this.#tooOld || '[]')) return;
    this.#tooOld = text;
    this.#options.sink.report({ kind: 'too-old', policies });
  }

  #close(reason: ByeFrame['reason'], retryAfterMs?: number): void {
    this.#phase = 'over';
    const wait = retryAfterMs ?? Math.floor(this.#options.random() * RETURN_WITHIN_MS);
    this.#options.sink.close({ type: 'bye', reason, retryAfterMs: wait });
  }
}
