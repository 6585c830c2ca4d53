// What the proxy can be told, with the defaults and why they are what they are.
import { defaultHttp1Limits } from '../http1/limits.ts';
import type { Http1Limits } from '../http1/limits.ts';
import type { SecureContextOptions } from 'node:tls';

export interface ProxyOptions {
  /** Absent = nothing is listened on: connections are handed in through `adopt`. */
  readonly listen?: ListenOptions;
  readonly upstream: { readonly host: string; readonly port: number };
  /** Over TLS clients are offered this alone; absent = `auto`, see `TlsAcceptance`. */
  readonly upstreamProtocol?: UpstreamProtocol;
  readonly limits?: Partial<Http1Limits>;
  readonly timeouts?: Partial<ProxyTimeouts>;
  /** Client connections served at once; further ones are answered 503 and closed. */
  readonly maxConnections?: number;
  /** Idle upstream connections kept for reuse. */
  readonly maxIdleUpstream?: number;
  /** Value of X-Forwarded-Proto where the request has none; absent = `https` with `tls`, else `http`. */
  readonly forwardedProto?: 'http' | 'https';
  /** Pseudonym for Via on requests and responses; absent = no Via. */
  readonly via?: string;
  /** Certificate and key to serve clients over TLS with; absent = plain TCP. Renewed by `Proxy.renewTls`. */
  readonly tls?: SecureContextOptions;
}

export type UpstreamProtocol = 'auto' | 'http/1.1' | 'h2';

/** `host` `::` falls back to `0.0.0.0` where the machine has no IPv6, if `ipv4Fallback` is set. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly ipv4Fallback?: boolean;
}

export interface ProxyTimeouts {
  /** From the first byte of a head to its last. A slow sender cannot hold a connection by dripping. */
  readonly headMs: number;
  /** Between requests on a client connection. */
  readonly idleMs: number;
  /** TCP connect to the upstream. */
  readonly connectMs: number;
  /** From the whole request sent to the response's head. */
  readonly responseMs: number;
  /** Without progress while the client owes body bytes or does not read. */
  readonly clientStallMs: number;
  /** Without progress while the upstream owes body bytes. Event streams are silent for minutes. */
  readonly upstreamStallMs: number;
  /** Without a byte either way after an upgrade. */
  readonly tunnelIdleMs: number;
  /** How long an idle upstream connection is kept: below the 5 s after which Node's server closes its side. */
  readonly upstreamIdleMs: number;
  /** How long a closed connection is still read, so that the last answer is not lost to a reset. */
  readonly lingerMs: number;
}

const defaultTimeouts: ProxyTimeouts = {
  headMs: 10_000,
  idleMs: 60_000,
  connectMs: 5_000,
  responseMs: 60_000,
  clientStallMs: 60_000,
  upstreamStallMs: 600_000,
  tunnelIdleMs: 3_600_000,
  upstreamIdleMs: 4_000,
  lingerMs: 2_000,
};

/** An idle connection takes about 10 kB after its first request (measured): 100 MB, which a container of 256 MiB has left. */
const defaultMaxConnections = 10_000;

/**
 * Bytes of all heads that have begun and not ended: without it 10 000 connections could each keep the 64 KiB of a head
 * that never ends, 640 MB. Heads nearly always come in one piece and then count for nothing here.
 */
export const maxPendingHeadBytes = 16_777_216;

/**
 * Bytes that may wait for clients of HTTP/2 that do not read: 64 KiB of a stream are 640 MB of all that may be open. With
 * twice this, and what Node needs beside it, a container of 256 MiB is full.
 */
export const maxWaitingBytes = 33_554_432;

/** Connections past the maximum that are answered at once; the next are closed without a word. */
export const maxRefusedConnections = 64;

/** Reuse beyond this many would mean more requests in flight than one sidecar serves. */
const defaultMaxIdleUpstream = 256;

/** How long a client may keep a connection unused while the sidecar drains; an app without a hook of its own sleeps five seconds. */
export const drainIdleMs = 3_000;
/** At the end, how long nobody may have come, or a connection have been unused, before it is closed: a request may be under way. */
export const quietMs = 1_000;
/** How long new connections are taken at the end at most. */
export const maxQuietMs = 5_000;
/** How often deadlines are looked at; a timeout is late by at most twice this. */
export const sweepIntervalMs = 500;

/** Body bytes up to this size are joined to their head as one string: one system call instead of two. */
export const maxJoinedBytes = 16_384;

/** Bytes of later requests that a connection keeps while one is under way, and one read more. */
export const maxHeldBytes = 65_536;

/**
 * Bytes a closed connection may still send before it is reset: enough for a client that looks for an answer only after
 * its upload, on a link of 64 Mbit/s for the default linger time.
 */
export const maxLingerBytes = 16_777_216;

/** Interim (1xx) responses to one request; more is an upstream out of its mind. */
export const maxInterimResponses = 32;

/** The options with nothing left open. */
export interface ProxySettings {
  readonly upstream: { readonly host: string; readonly port: number };
  readonly limits: Http1Limits;
  readonly timeouts: ProxyTimeouts;
  readonly maxConnections: number;
  readonly maxIdleUpstream: number;
  readonly forwardedProto: 'http' | 'https';
  readonly via: string | undefined;
}

export function settle(options: ProxyOptions): ProxySettings {
  return {
    upstream: options.upstream,
    limits: { ...defaultHttp1Limits, ...options.limits },
    timeouts: { ...defaultTimeouts, ...options.timeouts },
    maxConnections: options.maxConnections ?? defaultMaxConnections,
    maxIdleUpstream: options.maxIdleUpstream ?? defaultMaxIdleUpstream,
    forwardedProto: options.forwardedProto ?? (options.tls === undefined ? 'http' : 'https'),
    via: options.via,
  };
}
