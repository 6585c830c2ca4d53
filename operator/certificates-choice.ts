// Which certificates the settings ask for.
import type { Registry } from 'prom-client';
import { openCertificateFiles } from './certificates/certificate-files.ts';
import type { CertificateSource } from './certificates/certificate-source.ts';
import { openOwnCertificates } from './certificates/own-certificates.ts';
import type { Clock, Random } from './clock.ts';
import type { KubeApi } from './kube/api.ts';
import type { Log } from './log.ts';
import type { OperatorConfig } from './operator-settings.ts';

export interface CertificatesOptions {
  readonly config: OperatorConfig;
  readonly api: KubeApi;
  readonly isLeader: () => boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
}

/** Resolves with a certificate in hand. Throws CERTIFICATE_INVALID, ApiFailure. */
export function openCertificates(
  options: CertificatesOptions,
  signal: AbortSignal,
): Promise<CertificateSource> {
  const { config, clock, log, metrics } = options;
  if (config.certificateDir !== undefined) {
    return openCertificateFiles({ folder: config.certificateDir, clock, log, metrics });
  }
  const { namespace } = config;
  return openOwnCertificates({ ...options, namespace, names: certificateNames(config) }, signal);
}

/** The names by which the API server and sidecars know the Service, and those of the settings. */
export function certificateNames(config: OperatorConfig): readonly string[] {
  const { service, namespace, certificateNames: more, streamUrl } = config;
  const base = `${service}.${namespace}`;
  const url = streamUrl === undefined ? [] : [new URL(streamUrl).hostname.replace(/^\[|\]$/g, '')];
  return [...new Set([`${base}.svc`, base, `${base}.svc.cluster.local`, service, ...url, ...more])];
}
