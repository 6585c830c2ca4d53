// Certificates of an authority of our own, which is in a Secret that all replicas share. Whichever replica comes first
// creates it; only the leader rotates it; each replica signs its own server certificate and keeps it in memory.
import type { Registry } from 'prom-client';
import { validityOf } from '../../contract/certificate.ts';
import { pause, type Clock, type Random } from '../clock.ts';
import type { ApiFailure, KubeApi } from '../kube/api.ts';
import type { Log } from '../log.ts';
import { createAuthority, issueLeaf } from './authority.ts';
import {
  AUTHORITY_SECRET,
  decodeAuthorities,
  encodeAuthorities,
  rotationStateOf,
  secretResource,
  trustOf,
} from './authority-secret.ts';
import type { Authorities, SecretObject } from './authority-secret.ts';
import { openCertificateMetrics } from './certificate-metrics.ts';
import { IdentityListeners } from './certificate-source.ts';
import type { CertificateSource, ServingIdentity } from './certificate-source.ts';
import { repeatLook } from './repeated-look.ts';
import { isValid, jitteredRenewalMs, planRotation } from './rotation.ts';
import type { RotationStep } from './rotation.ts';

/** Steps are days apart; a minute is soon enough, and one GET a minute is nothing. */
const LOOK_EVERY_MS = 60_000;
/** An API server that restarts is back within seconds. */
const AGAIN_MS = 2_000;
/** Of a write that meets another replica's: the second look finds what that one wrote. */
const ATTEMPTS = 5;

export interface OwnCertificatesOptions {
  readonly api: Pick<KubeApi, 'get' | 'create' | 'replace'>;
  readonly namespace: string;
  /** Names and addresses that the certificate is for: those of the Service, and of the pod. */
  readonly names: readonly string[];
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
}

/**
 * Resolves with a certificate in hand; waits for an API server that does not give or take the Secret now.
 * Throws CERTIFICATE_INVALID when the Secret cannot be used.
 */
export async function openOwnCertificates(
  options: OwnCertificatesOptions,
  signal: AbortSignal,
): Promise<CertificateSource> {
  const { clock, log } = options;
  const own = new OwnCertificates(options);
  for (;;) {
    try {
      await own.advance(signal);
      break;
    } catch (error) {
      // A role that is bound a moment later, a server that restarts: a process that ended would only come back slower.
      if (!isFailure(error) || signal.aborted) throw error;
      log.warn({ secret: AUTHORITY_SECRET, err: error }, 'no certificate yet; waiting');
    }
    await pause(clock, AGAIN_MS, signal);
    signal.throwIfAborted();
  }
  own.start();
  return own;
}

interface Signed {
  readonly identity: ServingIdentity;
  /** The authority that signed it, as PEM. */
  readonly authority: string;
  readonly renewAtMs: number;
}

class OwnCertificates implements CertificateSource {
  readonly #options: OwnCertificatesOptions;
  readonly #listeners: IdentityListeners;
  readonly #setMetrics: (identity: ServingIdentity) => void;
  #signed: Signed | undefined;
  #looking: AsyncDisposable | undefined;
  #advancing: Promise<void> | undefined;

  constructor(options: OwnCertificatesOptions) {
    this.#options = options;
    this.#setMetrics = openCertificateMetrics(options.metrics);
    this.#listeners = new IdentityListeners((error) => {
      options.log.error({ err: error }, 'a listener of the certificate failed');
    });
  }

  start(): void {
    const { clock } = this.#options;
    const look = (signal: AbortSignal): Promise<void> => this.refresh(signal);
    this.#looking = repeatLook({ clock, everyMs: LOOK_EVERY_MS, look });
  }

  current(): ServingIdentity {
    if (this.#signed === undefined) throw new Error('no certificate before the source is open');
    return this.#signed.identity;
  }

  onChange(listener: (identity: ServingIdentity) => void): Disposable {
    return this.#listeners.add(listener);
  }

  async refresh(signal: AbortSignal): Promise<void> {
    // Two looks at once would write over each other.
    this.#advancing ??= this.advance(signal).finally(() => {
      this.#advancing = undefined;
    });
    await this.#advancing.catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'the certificate stays as it is');
    });
  }

  async advance(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#sign(await this.#rotate(await this.#read(signal), signal));
        return;
      } catch (error) {
        if (codeOf(error) !== CONFLICT || attempt === ATTEMPTS) throw error;
      }
    }
  }

  async #read(signal: AbortSignal): Promise<SecretObject> {
    const { api, namespace } = this.#options;
    try {
      return await api.get<SecretObject>(
        secretResource,
        { namespace, name: AUTHORITY_SECRET },
        signal,
      );
    } catch (error) {
      if (codeOf(error) !== NOT_FOUND) throw error;
    }
    const data = encodeAuthorities({ current: await this.#create() });
    const metadata = { namespace, name: AUTHORITY_SECRET };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data };
    return api.create<SecretObject>(secretResource, secret, signal);
  }

  #create(): ReturnType<typeof createAuthority> {
    return createAuthority(this.#options.clock.wallMs());
  }

  /** Takes the step that is due, if it is ours to take. */
  async #rotate(secret: SecretObject, signal: AbortSignal): Promise<Authorities> {
    const { api, clock, isLeader, log } = this.#options;
    const authorities = decodeAuthorities(secret);
    const state = rotationStateOf(authorities);
    const step = planRotation(state, clock.wallMs());
    // Where nothing can sign any more nobody may wait: a replica that has no certificate never becomes the leader.
    const isOver = !isValid(state.current, clock.wallMs());
    if (step === 'none' || (!isOver && !isLeader())) return authorities;
    const stepped = await this.#step(authorities, step);
    const data = encodeAuthorities(stepped);
    await api.replace<SecretObject>(secretResource, { ...secret, data }, signal);
    log.info({ step, secret: AUTHORITY_SECRET }, 'the certificate authority was rotated');
    return stepped;
  }

  async #step(authorities: Authorities, step: Exclude<RotationStep, 'none'>): Promise<Authorities> {
    const { current, next, promotedAtMs } = authorities;
    const since = promotedAtMs === undefined ? {} : { promotedAtMs };
    switch (step) {
      case 'create':
        return { current: await this.#create() };
      case 'introduce':
        return { current, next: await this.#create(), ...since };
      case 'promote':
        return {
          current: next ?? (await this.#create()),
          previous: current.cert,
          promotedAtMs: this.#options.clock.wallMs(),
        };
      case 'drop':
        return { current, ...(next === undefined ? {} : { next }), ...since };
    }
  }

  async #sign(authorities: Authorities): Promise<void> {
    const { clock, names, random } = this.#options;
    const nowMs = clock.wallMs();
    const trust = trustOf(authorities);
    const { current } = authorities;
    const before = this.#signed;
    if (before?.authority === current.cert && nowMs < before.renewAtMs) {
      if (before.identity.trust === trust) return;
      this.#take({ ...before, identity: { ...before.identity, trust } });
      return;
    }
    const leaf = await issueLeaf(current, { names, nowMs });
    const validity = validityOf(leaf.cert, 'the server certificate');
    const { notAfterMs } = validity;
    this.#take({
      identity: { ...leaf, trust, notAfterMs },
      authority: current.cert,
      renewAtMs: jitteredRenewalMs(validity, random()),
    });
  }

  #take(signed: Signed): void {
    this.#signed = signed;
    this.#setMetrics(signed.identity);
    this.#listeners.tell(signed.identity);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#looking?.[Symbol.asyncDispose]();
  }
}

const NOT_FOUND = 404;
const CONFLICT = 409;

function codeOf(error: unknown): number | undefined {
  return isFailure(error) ? error.code : undefined;
}

function isFailure(error: unknown): error is ApiFailure {
  return (
    typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number'
  );
}
