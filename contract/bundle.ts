// The bundle: the compiled policies of one workload, as plain JSON. The compiler in crds/ writes it; the
// sidecar's rules and limiter read it; the operator will push it. Nothing in it needs a schema
// to be understood, and everything in it is already validated and bounded: the sidecar never parses a policy.

/** Changes whenever a sidecar of an older contract could misread a bundle. */
export const BUNDLE_FORMAT = 1;

export interface Bundle {
  readonly format: typeof BUNDLE_FORMAT;
  /** Content hash: the same policies give the same version on every replica and host. */
  readonly version: string;
  readonly policies: readonly CompiledPolicy[];
}

export type Mode = 'Enforce' | 'Shadow' | 'Disabled';
export type FailureMode = 'Open' | 'Closed' | 'Local';
export type Scope = 'Policy' | 'Workload' | 'Pod';
export type QuotaHeaders = 'RateLimit' | 'XRateLimit' | 'None';

export interface CompiledPolicy {
  readonly namespace: string;
  readonly name: string;
  /** `metadata.uid`; from files `file/<namespace>/<name>`. */
  readonly uid: string;
  /** `metadata.generation`; from files the file's mtime in ms. Integer, 1..9·10^15. */
  readonly generation: number;
  readonly mode: Mode;
  /** 0..100: the stable share of keys that is really refused; the others are shadow. */
  readonly enforcePercent: number;
  readonly failureMode: FailureMode;
  readonly scope: Scope;
  /** `<kind>.<name>` of the owner, lower-case kind, e.g. `deployment.api`; present exactly with scope Workload. */
  readonly workload?: string;
  /** N of `failureMode: Local`: live pods that share a bucket, at least 1. */
  readonly replicas: number;
  /** Container ports of the app that it is restricted to; absent = all. */
  readonly ports?: readonly number[];
  readonly clientIP: CompiledClientIP;
  readonly jwt?: CompiledJwt;
  readonly response: CompiledResponse;
  /** Requests that no rule of this policy looks at. */
  readonly except: readonly CompiledMatch[];
  /** In the order they were written; `Disabled` rules are left out. */
  readonly rules: readonly CompiledRule[];
}

export interface CompiledClientIP {
  /** 0 = socket address; n = n-th element from the right of `X-Forwarded-For`. */
  readonly trustedHops: number;
  /** CIDRs; when not empty the right-most address of the chain that is not in one of them is the client. */
  readonly trustedProxies: readonly string[];
  /** 32..128. */
  readonly ipv6PrefixLength: number;
}

export interface CompiledJwt {
  readonly issuer?: string;
  readonly audiences: readonly string[];
  /** Lower-case name of the header that carries the token (`Bearer` scheme). */
  readonly header: string;
  /** Public keys as JWK objects (RS, PS, ES, EdDSA only). */
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

export interface CompiledResponse {
  /** 400..599. */
  readonly status: number;
  readonly quotaHeaders: QuotaHeaders;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  /** Absent = the default `application/problem+json` body. */
  readonly body?: { readonly contentType: string; readonly content: string };
}

/** Fields inside one match are ANDed; absent = does not restrict. A list of matches is ORed. */
export interface CompiledMatch {
  readonly methods?: readonly string[];
  readonly path?: { readonly type: 'Exact' | 'Prefix' | 'Regex'; readonly value: string };
  /** Header names lower-case. */
  readonly headers?: readonly CompiledFieldMatch[];
  readonly query?: readonly CompiledFieldMatch[];
  /** Lower-case; `*.example.com` allowed. */
  readonly hosts?: readonly string[];
  readonly clientCIDRs?: readonly string[];
  readonly claims?: readonly {
    readonly path: readonly string[];
    readonly value: string;
    readonly invert: boolean;
  }[];
  readonly cel?: { readonly expression: string };
}

export interface CompiledFieldMatch {
  readonly name: string;
  readonly type: 'Exact' | 'Prefix' | 'Regex' | 'Present';
  /** Empty with type Present. */
  readonly value: string;
  readonly invert: boolean;
}

export type CompiledKeyPart =
  | { readonly kind: 'clientIP' }
  /** Lower-case name. */
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'cookie'; readonly name: string }
  | { readonly kind: 'query'; readonly name: string }
  | { readonly kind: 'claim'; readonly path: readonly string[] }
  | { readonly kind: 'path' }
  /** 1 = the first segment. */
  | { readonly kind: 'pathSegment'; readonly index: number }
  | { readonly kind: 'method' }
  | { readonly kind: 'host' }
  | { readonly kind: 'constant'; readonly value: string }
  | { readonly kind: 'cel'; readonly expression: string };

export type OnMissingKey = 'Skip' | 'Deny' | 'ClientIP' | 'Shared';

export interface CompiledRule {
  readonly name: string;
  /** The policy's mode softened by the rule's own. */
  readonly mode: 'Enforce' | 'Shadow';
  /** Empty = every request. */
  readonly match: readonly CompiledMatch[];
  readonly except: readonly CompiledMatch[];
  /** Empty = one bucket for the rule. */
  readonly key: readonly CompiledKeyPart[];
  readonly onMissingKey: OnMissingKey;
  /** First match wins. A rule written with `buckets` has one tier named `-` without match. */
  readonly tiers: readonly CompiledTier[];
  readonly onNoTier: 'Skip' | 'Deny';
  readonly cost: CompiledCost;
}

export interface CompiledTier {
  /** `-` for a rule written with `buckets`. */
  readonly name: string;
  /** Empty = every request. */
  readonly match: readonly CompiledMatch[];
  readonly buckets: readonly CompiledBucket[];
}

export interface CompiledBucket {
  /** `main` where none was written. */
  readonly name: string;
  readonly limit: Limit;
}

/**
 * One bucket's limit in the limiter's exact integers.
 * The level is an integer number of units in `[0, capacity · unitsPerToken]`, at most 9·10^15;
 * each tick of `tickUs` microseconds adds `unitsPerTick` units.
 */
export interface Limit {
  /** Tokens, 1..10^8. */
  readonly capacity: number;
  readonly unitsPerToken: number;
  readonly unitsPerTick: number;
  readonly tickUs: 1 | 1_000 | 1_000_000;
}

export interface CompiledCost {
  /** Tokens a request takes when no request header says otherwise. */
  readonly tokens: number;
  /** A request header (lower-case name) that gives the cost; below 1 or unreadable counts as `tokens`, above `max` as `max`. */
  readonly header?: { readonly name: string; readonly max: number };
  /** A response header (lower-case name) charged after the response's head came; may take the level to zero, never below. */
  readonly response?: { readonly name: string; readonly max: number };
}
