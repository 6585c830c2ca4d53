// What CEL expressions of one policy see. Expressions work on text, so bytes are decoded here; maps are built when an
// expression asks for them, once per request.
import assert from 'node:assert/strict';
import type { CelRequest, CelRequestSource, CelVariables } from '../../crds/cel-environment.ts';
import { addressText } from './address.ts';
import { textOf } from './byte-string.ts';
import type { ClientFact } from './client-address.ts';
import type { CelClasses, CelProgram } from './expressions.ts';
import { eachQueryPair } from './field-pairs.ts';
import type { RequestFacts } from './request-facts.ts';
import type { TokenFact } from './token-fact.ts';
import { rawPath, rawQuery } from './request-target.ts';
import type { RuleCounters } from './rule-counters.ts';

type TextMap = ReadonlyMap<string, string>;

export interface CelScopeOptions {
  readonly classes: CelClasses;
  readonly facts: RequestFacts;
  readonly client: ClientFact;
  readonly tokens: TokenFact | undefined;
  readonly counters: RuleCounters;
}

export class CelScope implements CelRequestSource {
  readonly #options: CelScopeOptions;
  readonly #request: CelRequest;
  readonly #headers = new RequestMemo();
  readonly #query = new RequestMemo();
  readonly #cookies = new RequestMemo();

  constructor(options: CelScopeOptions) {
    this.#options = options;
    this.#request = new options.classes.CelRequest(this);
  }

  /** The value of an expression; undefined, and counted, when it fails or gives another type. */
  evaluate<T>(
    program: CelProgram,
    mentionsClaims: boolean,
    isResult: (value: unknown) => value is T,
  ): T | undefined {
    const { facts, counters } = this.#options;
    try {
      const value = program(this.#variables(mentionsClaims));
      if (isResult(value)) return value;
    } catch {
      // A missing map key, an overflow, a bad conversion: run-time errors are an outcome, counted below.
    }
    // With claims pending the request is evaluated again.
    if (!facts.claimsPending) counters.celErrors += 1;
    return undefined;
  }

  get method(): string {
    return this.#options.facts.view.method;
  }

  get path(): string {
    return textOf(this.#options.facts.path);
  }

  get rawPath(): string {
    const path = rawPath(this.#options.facts.view.target);
    assert(path !== undefined, 'a request whose target has no path is refused before rules see it');
    return textOf(path);
  }

  get host(): string {
    return textOf(this.#options.facts.host);
  }

  get headers(): TextMap {
    const { facts } = this.#options;
    return this.#headers.get(facts.epoch, (map) => {
      facts.view.eachHeader((name, value) => {
        const lower = name.toLowerCase();
        const before = map.get(lower);
        map.set(lower, before === undefined ? textOf(value) : `${before}, ${textOf(value)}`);
      });
    });
  }

  get query(): TextMap {
    const { facts } = this.#options;
    return this.#query.get(facts.epoch, (map) => {
      eachQueryPair(rawQuery(facts.view.target), keepFirst(map));
    });
  }

  get cookies(): TextMap {
    const { facts } = this.#options;
    return this.#cookies.get(facts.epoch, (map) => {
      facts.eachCookie(keepFirst(map));
    });
  }

  #variables(mentionsClaims: boolean): CelVariables {
    const { classes, facts, client, tokens } = this.#options;
    const claims = mentionsClaims && tokens !== undefined ? facts.claims(tokens) : undefined;
    const ip = addressText(facts.client(client).address);
    return { request: this.#request, client: new classes.CelClient(ip), claims: claims ?? {} };
  }
}

/** A map of the request at hand. */
class RequestMemo {
  #epoch = 0;
  #map: TextMap = new Map();

  get(epoch: number, fill: (map: Map<string, string>) => void): TextMap {
    if (this.#epoch !== epoch) {
      const map = new Map<string, string>();
      fill(map);
      this.#map = map;
      this.#epoch = epoch;
    }
    return this.#map;
  }
}

function keepFirst(map: Map<string, string>): (name: string, value: string) => void {
  return (name, value) => {
    const text = textOf(name);
    if (!map.has(text)) map.set(text, textOf(value));
  };
}
