// One configuration on its way into all workers of a pod. It is in force when every worker that there should be has
// said so; a worker that ends meanwhile is asked again in its next life, but not for ever: what makes workers crash is
// refused.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { PolicyRefusal } from '../../contract/stream.ts';
import type { PushedConfig } from '../policy/pushed-config.ts';

/** One crash is an accident. */
const CRASHES_MAX = 2;

export interface RolloutOptions {
  readonly id: number;
  readonly config: PushedConfig;
  /** What all workers run now. */
  readonly before: PushedConfig | undefined;
  /** How many have to answer. */
  readonly workers: number;
}

export class Rollout<Worker> {
  readonly id: number;
  readonly config: PushedConfig;
  /** Empty = in force everywhere. */
  readonly outcome: Promise<readonly PolicyRefusal[]>;
  readonly #before: PushedConfig | undefined;
  readonly #workers: number;
  readonly #answered = new Set<Worker>();
  readonly #asked = new Set<Worker>();
  readonly #refusals = new Map<string, PolicyRefusal>();
  readonly #resolve: (refusals: readonly PolicyRefusal[]) => void;
  #crashes = 0;
  #isOver = false;

  constructor({ id, config, before, workers }: RolloutOptions) {
    this.id = id;
    this.config = config;
    this.#before = before;
    this.#workers = workers;
    const { promise, resolve } = Promise.withResolvers<readonly PolicyRefusal[]>();
    this.outcome = promise;
    this.#resolve = resolve;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** True when this worker is to be asked now. */
  ask(worker: Worker): boolean {
    if (this.#isOver || this.#asked.has(worker)) return false;
    this.#asked.add(worker);
    return true;
  }

  onAnswer(worker: Worker, refusals: readonly PolicyRefusal[]): void {
    this.#answered.add(worker);
    for (const one of refusals) this.#refusals.set(one.uid, one);
    if (this.#answered.size >= this.#workers) this.#end([...this.#refusals.values()]);
  }

  onExit(worker: Worker): void {
    if (this.#isOver) return;
    this.#answered.delete(worker);
    if (!this.#asked.delete(worker)) return;
    this.#crashes += 1;
    if (this.#crashes >= CRASHES_MAX) this.#end(this.#suspects().map(refuse));
  }

  #end(refusals: readonly PolicyRefusal[]): void {
    this.#isOver = true;
    this.#resolve(refusals);
  }

  /** What is new in this configuration. */
  #suspects(): readonly CompiledPolicy[] {
    const before = this.#before?.bundle.policies ?? [];
    const known = new Set(before.map((policy) => JSON.stringify(policy)));
    return this.config.bundle.policies.filter((policy) => !known.has(JSON.stringify(policy)));
  }
}

function refuse({ uid, generation }: CompiledPolicy): PolicyRefusal {
  const message = 'worker processes ended while it was put into force';
  return { uid, generation, path: '', code: 'Internal', message };
}
