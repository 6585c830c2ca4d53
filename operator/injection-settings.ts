// From the operator's settings to what injection needs.
import type { InjectionConfig } from './injection/injection-config.ts';
import type { OperatorConfig } from './operator-settings.ts';

/** Port of the Service for the stream. */
const STREAM_SERVICE_PORT = 8443;

export interface InjectionFacts {
  /** Of the product. */
  readonly version: string;
  /** Of the API server. */
  readonly minor: number;
  /** PEM of the CAs to trust now. */
  readonly trust: string;
}

export function injectionConfigOf(
  config: OperatorConfig,
  { version, minor, trust }: InjectionFacts,
): InjectionConfig {
  return {
    version,
    image: config.image,
    redirectImage: config.redirectImage,
    ...(config.imagePullPolicy === undefined ? {} : { imagePullPolicy: config.imagePullPolicy }),
    imagePullSecrets: config.imagePullSecrets,
    operatorUrl: streamUrlOf(config),
    operatorCa: trust,
    serverMinor: minor,
    resources: {
      requests: { cpu: config.sidecarCpuRequest, memory: config.sidecarMemoryRequest },
      limits: { memory: config.sidecarMemoryLimit },
      cpuLimit: config.sidecarCpuLimit,
    },
    mode: config.mode,
    onNoConfig: config.onNoConfig,
    logLevel: config.sidecarLogLevel,
    workers: config.sidecarWorkers,
    drainSeconds: config.drainSeconds,
  };
}

function streamUrlOf({ streamUrl, service, namespace }: OperatorConfig): string {
  return streamUrl ?? `https://${service}.${namespace}.svc:${STREAM_SERVICE_PORT}`;
}
