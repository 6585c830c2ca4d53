// Hot path.
// What the rules of one bundle know about the request at hand: each fact is computed when a rule first asks for it and
// kept until the next request. One object per rule set, reused.
import type { ClientFact } from './client-address.ts';
import { clientName } from './address.ts';
import { eachCookiePair, eachQueryPair } from './field-pairs.ts';
import type { FieldNames, HeaderFact, PairFact } from './field-names.ts';
import { RequestSnapshot } from './request-snapshot.ts';
import { normalPath, rawQuery } from './request-target.ts';
import type { RequestView } from './request-view.ts';
import type { TokenFact } from './token-fact.ts';
import type { Claims } from './token-verifier.ts';

// RFC 6750 §2.1
const BEARER = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i;

const NO_REQUEST: RequestView = new RequestSnapshot({
  method: '',
  target: '/',
  host: '',
  peerAddress: '',
  headers: [],
});

export class RequestFacts {
  view: RequestView = NO_REQUEST;
  /** The normalised path. */
  path = '/';
  /** A rule asked for claims of a token that is not verified yet: what was evaluated since then does not count. */
  claimsPending = false;
  /** Whether an unknown token makes claims pending; otherwise it has no claims. */
  mayVerify = true;
  /** Changes with every request. */
  epoch = 0;

  readonly #names: FieldNames;
  readonly #forwardedFor: HeaderFact;
  readonly #forwarded: HeaderFact;
  #queryEpoch = 0;
  #cookieEpoch = 0;
  #hostEpoch = 0;
  #host = '';

  constructor(names: FieldNames) {
    this.#names = names;
    this.#forwardedFor = names.header('x-forwarded-for');
    this.#forwarded = names.header('forwarded');
  }

  /** Turns to the next request. False when its target has no path that could be matched. */
  begin(view: RequestView, mayVerify: boolean): boolean {
    this.view = view;
    this.epoch += 1;
    this.claimsPending = false;
    this.mayVerify = mayVerify;
    const path = normalPath(view.target);
    this.path = path ?? '/';
    return path !== undefined;
  }

  /** The lines of a header joined by `, `. */
  header(fact: HeaderFact): string | undefined {
    if (fact.epoch !== this.epoch) {
      fact.epoch = this.epoch;
      fact.value = this.view.header(fact.name);
    }
    return fact.value;
  }

  /** The value of a header that was sent once. */
  soleHeader(fact: HeaderFact): string | undefined {
    const value = this.header(fact);
    // Joined lines always hold a comma; only then is counting needed.
    if (value?.includes(',') !== true) return value;
    return this.view.headerCount(fact.name) === 1 ? value : undefined;
  }

  /** The value of the first query pair of that name. */
  query(fact: PairFact): string | undefined {
    if (this.#queryEpoch !== this.epoch) {
      this.#queryEpoch = this.epoch;
      for (const pair of this.#names.queries.values()) pair.value = undefined;
      eachQueryPair(rawQuery(this.view.target), this.#keepQuery);
    }
    return fact.value;
  }

  /** The value of the first cookie of that name. */
  cookie(fact: PairFact): string | undefined {
    if (this.#cookieEpoch !== this.epoch) {
      this.#cookieEpoch = this.epoch;
      for (const pair of this.#names.cookies.values()) pair.value = undefined;
      this.eachCookie(this.#keepCookie);
    }
    return fact.value;
  }

  /** Visits every cookie in order. Several Cookie lines are one list (RFC 9113 §8.2.3), not one comma-joined value. */
  eachCookie(visit: (name: string, value: string) => void): void {
    if (this.view.headerCount('cookie') <= 1) {
      eachCookiePair(this.view.header('cookie') ?? '', visit);
      return;
    }
    this.view.eachHeader((name, value) => {
      if (name.toLowerCase() === 'cookie') eachCookiePair(value, visit);
    });
  }

  /** Lower case, without port; empty when there is none. A final dot names the same host. */
  get host(): string {
    if (this.#hostEpoch !== this.epoch) {
      this.#hostEpoch = this.epoch;
      this.#host = hostName(this.view.host);
    }
    return this.#host;
  }

  /** Brings the client's address and name up to date. */
  client(fact: ClientFact): ClientFact {
    if (fact.epoch === this.epoch) return fact;
    fact.epoch = this.epoch;
    const { plan, address } = fact;
    const forwardedFor = plan.isPeer ? undefined : this.header(this.#forwardedFor);
    plan.read(this.view.peerAddress, forwardedFor, address);
    fact.name = clientName(address, plan.ipv6PrefixLength);
    return fact;
  }

  /** Whether a client that is believed to be the socket's peer came through a proxy. */
  isForwardedPast(fact: ClientFact): boolean {
    if (!fact.plan.isPeer) return false;
    const forwardedFor = this.header(this.#forwardedFor);
    return forwardedFor !== undefined || this.header(this.#forwarded) !== undefined;
  }

  /** The claims of a verified token; undefined without one. May set `claimsPending`. */
  claims(fact: TokenFact): Claims | undefined {
    const { token, state } = this.token(fact);
    if (token !== undefined && state === undefined) this.claimsPending = this.mayVerify;
    return state?.kind === 'verified' ? state.claims : undefined;
  }

  /** Brings the bearer token, and what is known about it, up to date. */
  token(fact: TokenFact): TokenFact {
    if (fact.epoch === this.epoch) return fact;
    fact.epoch = this.epoch;
    const value = this.soleHeader(fact.header);
    fact.token = value === undefined ? undefined : BEARER.exec(value)?.[1];
    fact.state = fact.token === undefined ? undefined : fact.verifier.known(fact.token);
    return fact;
  }

  readonly #keepQuery = (name: string, value: string): void => {
    const fact = this.#names.queries.get(name);
    if (fact !== undefined) fact.value ??= value;
  };

  readonly #keepCookie = (name: string, value: string): void => {
    const fact = this.#names.cookies.get(name);
    if (fact !== undefined) fact.value ??= value;
  };
}

function hostName(host: string): string {
  const end = host.endsWith(']') ? -1 : host.lastIndexOf(':');
  const name = (end < 0 ? host : host.slice(0, end)).toLowerCase();
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
