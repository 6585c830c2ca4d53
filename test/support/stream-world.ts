// A cluster as the stream server sees it: pods, what each is to be told, and an API server that reviews tokens. Tokens
// are made here and mean what the test says they mean.
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { STREAM_AUDIENCE } from '../../contract/names.ts';
import type { SidecarSettings } from '../../contract/stream.ts';
import { bundleOf } from '../../crds/bundle-version.ts';
import type { KubeApi } from '../../operator/kube/api.ts';
import type {
  BundleProvider,
  PodDirectory,
  PodIdentity,
  Provision,
} from '../../operator/stream/bundle-provider.ts';

export class StreamWorld implements BundleProvider, PodDirectory {
  readonly #pods = new Map<string, PodIdentity>();
  /** Made once for all pods, as the operator does. */
  readonly #bundles = new WeakMap<readonly CompiledPolicy[], Bundle>();
  readonly #listeners = new Set<(pods: ReadonlySet<string> | 'all') => void>();
  policies: readonly CompiledPolicy[] = [];
  /** Policies of single pods, instead of `policies`. */
  readonly ofPod: Map<string, readonly CompiledPolicy[]> = new Map<
    string,
    readonly CompiledPolicy[]
  >();
  held: readonly string[] = [];
  settings: SidecarSettings = {};
  ca: string | undefined = undefined;

  addPod(podUid: string, pod: Partial<PodIdentity> = {}): void {
    const identity = {
      namespace: 'shop',
      name: podUid,
      serviceAccount: 'default',
      isTerminal: false,
    };
    this.#pods.set(podUid, { ...identity, ...pod });
  }

  removePod(podUid: string): void {
    this.#pods.delete(podUid);
  }

  find(podUid: string): PodIdentity | undefined {
    return this.#pods.get(podUid);
  }

  bundle(podUid: string): Bundle {
    const policies = this.ofPod.get(podUid) ?? this.policies;
    const known = this.#bundles.get(policies);
    if (known !== undefined) return known;
    const bundle = bundleOf(policies);
    this.#bundles.set(policies, bundle);
    return bundle;
  }

  bundleFor(podUid: string): Provision | undefined {
    if (!this.#pods.has(podUid)) return undefined;
    const { held, settings, ca } = this;
    return { bundle: this.bundle(podUid), held, settings, ...(ca === undefined ? {} : { ca }) };
  }

  onChange(listener: (pods: ReadonlySet<string> | 'all') => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  /** Changes what everybody is to be told, and says so. */
  set(change: Partial<Pick<StreamWorld, 'policies' | 'held' | 'settings' | 'ca'>>): void {
    Object.assign(this, change);
    this.announce('all');
  }

  announce(pods: ReadonlySet<string> | 'all'): void {
    for (const listener of this.#listeners) listener(pods);
  }
}

export interface TokenClaims {
  readonly podUid?: string;
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly audiences?: readonly string[];
  readonly authenticated?: boolean;
  readonly username?: string;
  /** Seconds since the epoch. */
  readonly exp?: number;
}

/** Reviews the tokens it has issued; counts, may be away, may be slow. */
export class TokenReviews implements Pick<KubeApi, 'post'> {
  reviews = 0;
  /** Reviews under way now, and the most there ever were. */
  running = 0;
  mostRunning = 0;
  isAway = false;
  mayReview = true;
  /** Reviews wait for it. */
  gate: Promise<unknown> = Promise.resolve();
  /** Whether the API server looks at audiences; one that does not answers none. */
  readsAudiences = true;
  readonly #tokens = new Map<string, TokenClaims>();

  issue(claims: TokenClaims): string {
    const payload = claims.exp === undefined ? {} : { exp: claims.exp };
    const encoded = Buffer.from(JSON.stringify(payload)).toString('base64url');
    const token = `head.${encoded}.${this.#tokens.size}`;
    this.#tokens.set(token, claims);
    return token;
  }

  revoke(token: string): void {
    this.#tokens.delete(token);
  }

  async post<Answer>(path: string, body: unknown): Promise<Answer> {
    if (path.includes('selfsubjectaccessreviews')) {
      // What an API server would send over the wire.
      return { status: { allowed: this.mayReview } } as Answer;
    }
    this.reviews += 1;
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      await this.gate;
      if (this.isAway) throw Object.assign(new Error('away'), { code: 0, reason: '' });
      const { spec } = body as { spec: { token: string; audiences: string[] } };
      return { status: this.#review(spec.token, spec.audiences) } as Answer;
    } finally {
      this.running -= 1;
    }
  }

  #review(token: string, asked: readonly string[]): unknown {
    const claims = this.#tokens.get(token);
    if (claims === undefined || claims.authenticated === false) return { authenticated: false };
    const has = claims.audiences ?? [STREAM_AUDIENCE];
    const audiences = asked.filter((one) => has.includes(one));
    if (this.readsAudiences && audiences.length === 0) return { authenticated: false };
    const seen = this.readsAudiences ? { audiences } : {};
    return { authenticated: true, ...seen, user: userOf(claims) };
  }
}

function userOf({
  podUid,
  namespace = 'shop',
  serviceAccount = 'default',
  username,
}: TokenClaims): unknown {
  return {
    username: username ?? `system:serviceaccount:${namespace}:${serviceAccount}`,
    extra: podUid === undefined ? {} : { 'authentication.kubernetes.io/pod-uid': [podUid] },
  };
}
