// What is looked at while faults strike: the status of policies that nobody touches, where sidecars have their rules
// from, which CA signs.
import { setTimeout as delay } from 'node:timers/promises';
import { conditionsOf, type EnforcedApp } from './enforced-app.ts';
import { listAt, textAt } from './json-value.ts';
import { signingAuthority } from './operator-faults.ts';

const LOOK_EVERY_MS = 250;

export interface Seen {
  /** A condition of an untouched policy that said something else than True, with the fault it was seen after. */
  readonly flaps: readonly string[];
  /** Writes of the status of the two untouched policies. */
  readonly statusWrites: number;
  /** Looks at a sidecar that found its rules from elsewhere than the stream. */
  readonly fallbacks: number;
  readonly looks: number;
  /** CAs that signed, one after the other. */
  readonly authorities: number;
}

/** Looks at the status of untouched policies, and at where sidecars have their rules from. */
export class CampaignWatch {
  fault = 'the start';
  readonly ended: Promise<void>;
  readonly #app: EnforcedApp;
  readonly #policies: readonly string[];
  readonly #flaps = new Set<string>();
  readonly #versions = new Map<string, Set<string>>();
  readonly #times = new Map<string, string>();
  readonly #authorities = new Set<string>();
  #fallbacks = 0;
  #looks = 0;

  constructor(app: EnforcedApp, policies: readonly string[], signal: AbortSignal) {
    this.#app = app;
    this.#policies = policies;
    this.ended = this.#watch(signal);
  }

  get found(): Seen {
    const writes = [...this.#versions.values()].reduce((sum, { size }) => sum + size - 1, 0);
    return {
      flaps: [...this.#flaps],
      statusWrites: writes,
      fallbacks: this.#fallbacks,
      looks: this.#looks,
      authorities: this.#authorities.size,
    };
  }

  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const name of this.#policies) await this.#look(name);
      await this.#lookAtSidecars();
      await this.#lookAtAuthority();
      await delay(LOOK_EVERY_MS);
    }
    for (const name of this.#policies) await this.#look(name);
  }

  async #look(name: string): Promise<void> {
    // The API server may be away.
    const found = await this.#app.policy(name).catch(() => undefined);
    if (textAt(found, 'kind') !== 'RateLimitPolicy') return;
    const seen = this.#versions.get(name) ?? new Set();
    this.#versions.set(name, seen.add(textAt(found, 'metadata', 'resourceVersion')));
    for (const [type, { status, reason }] of conditionsOf(found)) {
      if (status !== 'True')
        this.#flaps.add(`${name}: ${type} ${status}/${reason} (${this.fault})`);
    }
    // A change there and back between two looks shows in its time.
    for (const one of listAt(found, 'status', 'conditions')) {
      this.#seeTime(`${name}: ${textAt(one, 'type')}`, textAt(one, 'lastTransitionTime'));
    }
  }

  #seeTime(what: string, time: string): void {
    const before = this.#times.get(what);
    this.#times.set(what, time);
    if (before !== undefined && before !== time) {
      this.#flaps.add(`${what} there and back (${this.fault})`);
    }
  }

  async #lookAtAuthority(): Promise<void> {
    const signs = await signingAuthority(this.#app).catch(() => '');
    if (signs !== '') this.#authorities.add(signs);
  }

  async #lookAtSidecars(): Promise<void> {
    for (const { process: sidecar } of this.#app.sidecars.all) {
      this.#looks += 1;
      const isFromStream = await sidecar.metric('weir_config_origin', '{origin="stream"}');
      if (isFromStream !== 1) this.#fallbacks += 1;
    }
  }
}
