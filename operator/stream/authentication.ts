// Who is at the other end of a stream: a bearer token is shown to the API server's TokenReview for our audience, and
// the pod it is bound to is looked up in our own cache. Nothing a client says of itself is believed. A token is held
// only as its SHA-256, and never logged.
import { createHash } from 'node:crypto';
import { STREAM_AUDIENCE } from '../../contract/names.ts';
import type { KubeApi } from '../kube/api.ts';
import type { PodDirectory, PodIdentity } from './bundle-provider.ts';
import { ReviewGate } from './review-gate.ts';

/** A deleted pod's token may serve this long; its pod leaves our cache within a second. */
export const REMEMBERED_MS = 60_000;
/** With the API server away a token that was good before stays good this long. */
export const REMEMBERED_WITHOUT_API_MS = 600_000;
/** Reviews at once: a storm of sidecars must not be one on the API server. */
const REVIEWS_AT_ONCE = 20;
const REVIEW_WITHIN_MS = 5_000;
/** Ten thousand sidecars of one replica, ~300 bytes each. */
const MOST_REMEMBERED = 10_000;
/** A projected token is about 1 KiB. */
const TOKEN_CHARACTERS_MAX = 16_384;
/** While the API server is away or busy, and while a cache is behind. */
const RETRY_MS = 1_000;

export type Authentication =
  | { readonly kind: 'pod'; readonly podUid: string; readonly pod: PodIdentity }
  /** 401: not a token for us. */
  | { readonly kind: 'unauthenticated'; readonly reason: string }
  /** 403: a good token of somebody who has no sidecar here (yet). */
  | { readonly kind: 'forbidden'; readonly reason: string; readonly retryAfterMs: number }
  /** 503: nobody can say now. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly retryAfterMs: number };

/** By how a review ended, for `weir_token_reviews_total`. */
export type ReviewResult = 'accepted' | 'rejected' | 'failed';

export interface AuthenticatorOptions {
  readonly api: Pick<KubeApi, 'post'>;
  readonly pods: PodDirectory;
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Since the epoch: tokens carry calendar time. */
  readonly wallClockMs: () => number;
  readonly onReview: (result: ReviewResult) => void;
}

interface Holder {
  readonly podUid: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

interface Remembered {
  readonly holder: Holder;
  readonly reviewedMs: number;
  /** Since the epoch; Infinity = the token does not say. */
  readonly expiresMs: number;
}

type Review =
  | { readonly kind: 'holder'; readonly holder: Holder }
  | { readonly kind: 'rejected'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string };

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #remembered = new Map<string, Remembered>();
  readonly #flights = new Map<string, Promise<Review>>();
  readonly #gate = new ReviewGate(REVIEWS_AT_ONCE);

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
  }

  /** `header` is the request's Authorization field. Never rejects. */
  async authenticate(header: string | undefined): Promise<Authentication> {
    const token = /^Bearer ([A-Za-z0-9._~+/=-]+)$/i.exec(header ?? '')?.[1];
    if (token === undefined || token.length > TOKEN_CHARACTERS_MAX) {
      return { kind: 'unauthenticated', reason: 'no bearer token' };
    }
    const digest = createHash('sha256').update(token).digest('base64');
    const known = this.#recall(digest, REMEMBERED_MS);
    if (known !== undefined) return this.#locate(known);
    const review = await this.#reviewOnce(digest, token);
    if (review.kind === 'holder') return this.#locate(review.holder);
    if (review.kind === 'rejected') return { kind: 'unauthenticated', reason: review.reason };
    const earlier = this.#recall(digest, REMEMBERED_WITHOUT_API_MS);
    if (earlier !== undefined) return this.#locate(earlier);
    return { kind: 'unavailable', reason: review.reason, retryAfterMs: RETRY_MS };
  }

  /** Undefined when this operator may review tokens; else what is missing, in words. */
  async whyNotAllowed(signal: AbortSignal): Promise<string | undefined> {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: {
        resourceAttributes: {
          group: 'authentication.k8s.io',
          resource: 'tokenreviews',
          verb: 'create',
        },
      },
    };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const answer = await this.#options.api.post<unknown>(path, body, signal);
    if (at(answer, 'status', 'allowed') === true) return undefined;
    return 'this service account may not create tokenreviews.authentication.k8s.io: bind the ClusterRole of the chart';
  }

  #recall(digest: string, forMs: number): Holder | undefined {
    const known = this.#remembered.get(digest);
    if (known === undefined) return undefined;
    const { nowMs, wallClockMs } = this.#options;
    if (nowMs() >= known.reviewedMs + forMs || wallClockMs() >= known.expiresMs) return undefined;
    return known.holder;
  }

  #locate({ podUid, namespace, serviceAccount }: Holder): Authentication {
    const pod = this.#options.pods.find(podUid);
    const refuse = (reason: string): Authentication => ({
      kind: 'forbidden',
      reason,
      retryAfterMs: RETRY_MS,
    });
    if (pod === undefined) return refuse('the pod of the token is not known here');
    if (pod.isTerminal) return refuse('the pod of the token has ended');
    if (pod.namespace !== namespace) return refuse('the token is of another namespace');
    if (pod.serviceAccount !== undefined && pod.serviceAccount !== serviceAccount) {
      return refuse('the token is of another service account');
    }
    return { kind: 'pod', podUid, pod };
  }

  /** One review per token at a time, however many ask. */
  #reviewOnce(digest: string, token: string): Promise<Review> {
    const flight = this.#flights.get(digest);
    if (flight !== undefined) return flight;
    const review = this.#gate
      .run(() => this.#review(digest, token))
      .then((outcome): Review => outcome ?? { kind: 'failed', reason: 'too many reviews wait' })
      .finally(() => {
        this.#flights.delete(digest);
      });
    this.#flights.set(digest, review);
    return review;
  }

  async #review(digest: string, token: string): Promise<Review> {
    const { api, onReview } = this.#options;
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [STREAM_AUDIENCE] },
    };
    try {
      const path = '/apis/authentication.k8s.io/v1/tokenreviews';
      const answer = await api.post<unknown>(path, body, AbortSignal.timeout(REVIEW_WITHIN_MS));
      const review = readReview(answer);
      if (review.kind === 'holder') this.#remember(digest, token, review.holder);
      // What was good once and is not any more must not come back with the API server away.
      else this.#remembered.delete(digest);
      onReview(review.kind === 'holder' ? 'accepted' : 'rejected');
      return review;
    } catch {
      // Its message may quote the request; what matters is that no answer came.
      onReview('failed');
      return { kind: 'failed', reason: 'the API server does not review tokens now' };
    }
  }

  #remember(digest: string, token: string, holder: Holder): void {
    this.#remembered.delete(digest);
    if (this.#remembered.size >= MOST_REMEMBERED) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    const reviewedMs = this.#options.nowMs();
    this.#remembered.set(digest, { holder, reviewedMs, expiresMs: expiryOf(token) });
  }
}

/** Every check that a review needs: an authenticator that ignores audiences would accept anybody's token. */
function readReview(answer: unknown): Review {
  if (at(answer, 'status', 'authenticated') !== true) {
    return { kind: 'rejected', reason: 'the API server does not know the token' };
  }
  const audiences = at(answer, 'status', 'audiences');
  if (!Array.isArray(audiences) || !audiences.includes(STREAM_AUDIENCE)) {
    return { kind: 'rejected', reason: `the token is not for the audience ${STREAM_AUDIENCE}` };
  }
  return readHolder(at(answer, 'status', 'user'));
}

function readHolder(user: unknown): Review {
  const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(String(at(user, 'username')));
  const [, namespace, serviceAccount] = account ?? [];
  if (namespace === undefined || serviceAccount === undefined) {
    return { kind: 'rejected', reason: 'the token is not of a service account' };
  }
  const uids = at(user, 'extra', 'authentication.kubernetes.io/pod-uid');
  const podUid: unknown = Array.isArray(uids) && uids.length === 1 ? uids[0] : undefined;
  if (typeof podUid !== 'string' || podUid === '') {
    return { kind: 'rejected', reason: 'the token is not bound to a pod' };
  }
  return { kind: 'holder', holder: { podUid, namespace, serviceAccount } };
}

/** `exp` of a token that has been reviewed, in ms since the epoch. */
function expiryOf(token: string): number {
  try {
    const payload: unknown = JSON.parse(
      Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'),
    );
    const exp = at(payload, 'exp');
    return typeof exp === 'number' ? exp * 1_000 : Infinity;
  } catch {
    return Infinity;
  }
}

/** A field of an answer whose shape nobody has promised. */
function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const name of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, name)) return undefined;
    here = Reflect.get(here, name);
  }
  return here;
}
