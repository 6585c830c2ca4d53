// The configuration of a sidecar with an operator: what is in force, what a push makes of it, and the answer. A policy
// that is not in order is refused by itself: the others are taken, and of that one the last good version stays.
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { checkPolicy } from '../../contract/compiled-policy-schema.ts';
import type {
  AckFrame,
  ConfigFrame,
  ConfigOrigin,
  DeltaFrame,
  HelloFrame,
  NackFrame,
  PolicyRefusal,
  SidecarSettings,
} from '../../contract/stream.ts';
import { MESSAGE_MAX } from '../../contract/stream.ts';
import { bundleOf } from '../../crds/bundle-version.ts';
import type { Log } from '../log.ts';
import type { CachedConfig } from './config-cache.ts';
import type { Push } from './push-assembly.ts';
import type { ConfigTarget, PushedConfig } from './pushed-config.ts';

/** First as pushed, then with last good versions, then without what still does not compile. */
const ATTEMPTS = 3;

export interface InForce {
  readonly bundle: Bundle;
  readonly settings: SidecarSettings;
  /** PEM; undefined = none was pushed. */
  readonly ca: string | undefined;
  readonly origin: ConfigOrigin;
}

interface Candidate {
  readonly policies: ReadonlyMap<string, CompiledPolicy>;
  readonly refusals: readonly PolicyRefusal[];
  /** Whether it is exactly what the version names. */
  readonly isWhole: boolean;
}

export class ConfigKeeper {
  readonly #target: ConfigTarget;
  readonly #log: Log;
  #inForce: InForce | undefined = undefined;
  /** One at a time: the push of an old stream may still be under way when the first of the next one comes. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(target: ConfigTarget, log: Log) {
    this.#target = target;
    this.#log = log;
  }

  get inForce(): InForce | undefined {
    return this.#inForce;
  }

  /** For hello. */
  get have(): HelloFrame['have'] {
    const inForce = this.#inForce;
    return {
      version: inForce?.bundle.version ?? '',
      sources: (inForce?.bundle.policies ?? []).map(({ uid, generation }) => ({ uid, generation })),
      origin: inForce?.origin ?? 'none',
    };
  }

  /** Takes a push; the answer says what is in force when it settles. Never rejects. */
  accept(push: Push): Promise<AckFrame | NackFrame> {
    return this.#inTurn(async () => {
      try {
        return await this.#accept(push);
      } catch (error) {
        this.#log.error({ event: 'push-failed', err: error }, 'a push could not be put into force');
        return this.#nack(push.head.nonce, 'BadFrame');
      }
    });
  }

  /** Starts with what was kept, unless something is in force by now. False when nothing is. Never rejects. */
  restore(kept: CachedConfig, origin: ConfigOrigin): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#inForce !== undefined) return true;
      try {
        const candidate = checkAll(kept.policies, new Map());
        const { version, settings, ca } = kept;
        await this.#enforce(candidate, version, { settings, ca, origin });
        return true;
      } catch (error) {
        const fields = { event: 'restore-failed', origin, err: error };
        this.#log.error(fields, 'what was kept could not be put into force');
        return false;
      }
    });
  }

  /** Forwards everything until there are rules, unless something is in force by now. */
  allowAll(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#inForce !== undefined) return;
      await this.#target.apply({
        bundle: { ...bundleOf([]), version: '' },
        settings: {},
        origin: 'none',
      });
    });
  }

  async #accept({ head, policies }: Push): Promise<AckFrame | NackFrame> {
    const before = this.#inForce;
    const isPartial = head.type === 'delta' || head.unchanged === true;
    const base = head.type === 'delta' ? head.base : head.version;
    if (isPartial && before?.bundle.version !== base) return this.#nack(head.nonce, 'UnknownBase');
    const candidate = candidateOf(head, policies, before?.bundle.policies ?? []);
    const around = surroundingsOf(head, before);
    const refusals = await this.#enforce(candidate, head.version, { ...around, origin: 'stream' });
    if (refusals.length > 0) return this.#nack(head.nonce, 'Policies', refusals);
    return { type: 'ack', nonce: head.nonce, version: this.have.version };
  }

  /** Puts as much of the candidate into force as compiles. */
  async #enforce(
    candidate: Candidate,
    version: string,
    around: Omit<InForce, 'bundle'>,
  ): Promise<readonly PolicyRefusal[]> {
    const policies = new Map(candidate.policies);
    const lastGood = byUid(this.#inForce?.bundle.policies ?? []);
    const refusals = new Map(candidate.refusals.map((one) => [one.uid, one]));
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const own = bundleOf([...policies.values()]);
      const isWhole = candidate.isWhole && refusals.size === 0;
      const config = { bundle: isWhole ? { ...own, version } : own, ...around };
      const refused = await this.#target.apply(toPush(config));
      if (refused.length === 0) {
        this.#inForce = config;
        this.#report([...refusals.values()]);
        return [...refusals.values()];
      }
      for (const one of refused) {
        if (!refusals.has(one.uid)) refusals.set(one.uid, one);
        replace(policies, one.uid, attempt === 1 ? lastGood.get(one.uid) : undefined);
      }
    }
    throw new Error('what compiled before does not compile any more');
  }

  #report(refusals: readonly PolicyRefusal[]): void {
    for (const { uid, generation, path, code, message } of refusals) {
      this.#log.error(
        { event: 'policy-refused', uid, generation, path, code, problem: message },
        'a pushed policy cannot be used; its last good version stays in force',
      );
    }
  }

  #nack(
    nonce: number,
    code: NackFrame['code'],
    refusals: readonly PolicyRefusal[] = [],
  ): NackFrame {
    return { type: 'nack', nonce, version: this.have.version, code, refusals };
  }

  #inTurn<Result>(task: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(task);
    this.#turn = result.catch(() => undefined);
    return result;
  }
}

function toPush({ bundle, settings, origin }: InForce): PushedConfig {
  return { bundle, settings, origin };
}

function replace(
  policies: Map<string, CompiledPolicy>,
  uid: string,
  by: CompiledPolicy | undefined,
): void {
  if (by === undefined) policies.delete(uid);
  else policies.set(uid, by);
}

/** What would be in force after the push if everything compiles. */
function candidateOf(
  head: ConfigFrame | DeltaFrame,
  pushed: readonly unknown[],
  inForce: readonly CompiledPolicy[],
): Candidate {
  const before = byUid(inForce);
  if (head.type === 'config' && head.unchanged === true) {
    return { policies: before, refusals: [], isWhole: true };
  }
  const stays = head.type === 'delta' ? inForce : kept(head.held ?? [], before);
  const next = byUid(stays);
  if (head.type === 'delta') for (const uid of head.remove) next.delete(uid);
  const checked = checkAll(pushed, before);
  for (const [uid, policy] of checked.policies) next.set(uid, policy);
  const isHolding = (head.held ?? []).some((uid) => next.has(uid));
  return { policies: next, refusals: checked.refusals, isWhole: checked.isWhole && !isHolding };
}

function kept(
  held: readonly string[],
  before: ReadonlyMap<string, CompiledPolicy>,
): readonly CompiledPolicy[] {
  return held.flatMap((uid) => before.get(uid) ?? []);
}

/** A policy that is not in order is replaced by the last good one, where there is one. */
function checkAll(
  pushed: readonly unknown[],
  before: ReadonlyMap<string, CompiledPolicy>,
): Candidate {
  const policies = new Map<string, CompiledPolicy>();
  const refusals: PolicyRefusal[] = [];
  for (const value of pushed) {
    const checked = checkPolicy(value);
    if (checked.kind === 'policy') {
      policies.set(checked.policy.uid, checked.policy);
      continue;
    }
    const { uid, generation } = identityOf(value);
    const { path, message } = checked;
    refusals.push({
      uid,
      generation,
      path,
      code: 'Invalid',
      message: message.slice(0, MESSAGE_MAX),
    });
    replace(policies, uid, before.get(uid));
  }
  return { policies, refusals, isWhole: refusals.length === 0 };
}

/** The frame's schema has seen these two; a cache file has not been through it. */
function identityOf(value: unknown): { readonly uid: string; readonly generation: number } {
  const fields = typeof value === 'object' && value !== null ? value : {};
  const uid = 'uid' in fields ? fields.uid : undefined;
  const generation = 'generation' in fields ? fields.generation : undefined;
  return {
    uid: typeof uid === 'string' ? uid : '',
    generation: typeof generation === 'number' ? generation : 0,
  };
}

function surroundingsOf(
  head: ConfigFrame | DeltaFrame,
  before: InForce | undefined,
): Pick<InForce, 'settings' | 'ca'> {
  if (head.type === 'config') return { settings: head.settings, ca: head.ca ?? before?.ca };
  return { settings: before?.settings ?? {}, ca: before?.ca };
}

function byUid(policies: readonly CompiledPolicy[]): Map<string, CompiledPolicy> {
  return new Map(policies.map((policy) => [policy.uid, policy]));
}
