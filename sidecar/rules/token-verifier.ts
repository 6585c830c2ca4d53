// Verified JSON Web Tokens. Verification is asynchronous and costs a signature check, so both results are remembered:
// a verified token until it expires, a refused one for a while, each in a cache bounded by count and by size.
import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import type { CryptoKey, JWTPayload, JWTVerifyOptions } from 'jose';
import { LRUCache } from 'lru-cache';
import type { CompiledJwt } from '../../contract/bundle.ts';
import type { RuleCounters } from './rule-counters.ts';

/** Claims of a verified token. */
export type Claims = Readonly<Record<string, unknown>>;

export type TokenState =
  | { readonly kind: 'verified'; readonly claims: Claims; readonly untilMs: number }
  | { readonly kind: 'rejected'; readonly untilMs: number };

/** Clocks of issuers and pods differ; a minute is what the policy's documentation promises. */
export const LEEWAY_SECONDS = 60;
/** Longer tokens do not fit the header limits of common servers; they are refused without being kept. */
export const MAX_TOKEN_LENGTH = 8_192;
/** More than a sidecar's default connections, so that no token waiting for its request is pushed out. */
export const MAX_TOKENS = 8_192;
/** Chars of all remembered tokens, 2 MiB: with the parsed claims about 8 MiB of the 100 the sidecar may use. */
export const MAX_TOKEN_CHARS = 2_097_152;
/** A refused token is looked at again after this: it may have become valid (`nbf`). */
export const REJECTED_FOR_MS = 10_000;
/** Without a key id each fitting key is tried; key sets hold two or three, and every try is a signature check. */
export const MAX_KEYS_TRIED = 8;

const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) =>
  ['256', '384', '512'].map((size) => family + size),
);

const TOO_LONG: TokenState = { kind: 'rejected', untilMs: Infinity };

export interface TokenVerifierOptions {
  readonly nowMs: () => number;
  readonly counters: RuleCounters;
}

export class TokenVerifier {
  readonly #keys: ReturnType<typeof createLocalJWKSet>;
  readonly #checks: JWTVerifyOptions;
  readonly #nowMs: () => number;
  readonly #counters: RuleCounters;
  readonly #states = new LRUCache<string, TokenState>({
    max: MAX_TOKENS,
    maxSize: MAX_TOKEN_CHARS,
    sizeCalculation: (_state, token) => token.length + 1,
  });
  readonly #running = new Map<string, Promise<void>>();

  constructor(config: CompiledJwt, options: TokenVerifierOptions) {
    this.#keys = createLocalJWKSet({ keys: config.keys.map((key) => ({ kty: '', ...key })) });
    this.#checks = {
      algorithms: [...ALGORITHMS, 'EdDSA', 'Ed25519'],
      requiredClaims: ['exp'],
      clockTolerance: LEEWAY_SECONDS,
      ...(config.issuer === undefined ? {} : { issuer: config.issuer }),
      ...(config.audiences.length === 0 ? {} : { audience: [...config.audiences] }),
    };
    this.#nowMs = options.nowMs;
    this.#counters = options.counters;
  }

  /** What is known about `token`; undefined when it has to be verified. */
  known(token: string): TokenState | undefined {
    if (token.length > MAX_TOKEN_LENGTH) return TOO_LONG;
    const state = this.#states.get(token);
    if (state === undefined || this.#nowMs() < state.untilMs) return state;
    this.#states.delete(token);
    return undefined;
  }

  /** Verifies `token` and remembers the result; never rejects. The same token is verified once at a time. */
  verify(token: string): Promise<void> {
    const running = this.#running.get(token);
    if (running !== undefined) return running;
    const started = this.#remember(token).finally(() => this.#running.delete(token));
    this.#running.set(token, started);
    return started;
  }

  async #remember(token: string): Promise<void> {
    const state = await this.#check(token);
    if (state.kind === 'verified') this.#counters.claimsVerified += 1;
    else this.#counters.claimsRejected += 1;
    this.#states.set(token, state);
  }

  async #check(token: string): Promise<TokenState> {
    try {
      const claims = await this.#claimsOf(token);
      // `exp` is required to be a number.
      const untilMs = (Number(claims.exp) + LEEWAY_SECONDS) * 1_000;
      return { kind: 'verified', claims, untilMs };
    } catch {
      // Whatever is wrong with a token, it has no claims. The reason is the sender's, not ours to log.
      return { kind: 'rejected', untilMs: this.#nowMs() + REJECTED_FOR_MS };
    }
  }

  async #claimsOf(token: string): Promise<JWTPayload> {
    const checks = { ...this.#checks, currentDate: new Date(this.#nowMs()) };
    try {
      return (await jwtVerify(token, this.#keys, checks)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      let tries = 0;
      for await (const key of error) {
        tries += 1;
        const payload = await payloadOf(token, key, checks);
        if (payload !== undefined) return payload;
        if (tries === MAX_KEYS_TRIED) break;
      }
      throw error;
    }
  }
}

/** Undefined when `key` did not sign the token. */
async function payloadOf(
  token: string,
  key: CryptoKey,
  checks: JWTVerifyOptions,
): Promise<JWTPayload | undefined> {
  try {
    return (await jwtVerify(token, key, checks)).payload;
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) return undefined;
    throw error;
  }
}
