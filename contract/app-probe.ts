// The checks that a sidecar does for the kubelet: the webhook writes them into the pod's environment, and the kubelet
// asks the sidecar for each by its path. One for each container and kind: two that shared one would answer for each
// other.

/** As the last part of the path: of livenessProbe, readinessProbe and startupProbe. */
export const appProbeKinds = ['livez', 'readyz', 'startupz'] as const;
export type AppProbeKind = (typeof appProbeKinds)[number];

/** As Kubernetes' own fields of these names mean it; `port` is the number that the app listens on. */
export type AppCheck =
  | {
      readonly kind: 'http';
      readonly port: number;
      readonly path: string;
      readonly scheme: 'HTTP' | 'HTTPS';
      readonly headers: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly kind: 'tcp'; readonly port: number }
  | { readonly kind: 'grpc'; readonly port: number; readonly service: string };

export interface AppProbe {
  readonly container: string;
  readonly probe: AppProbeKind;
  readonly timeoutSeconds: number;
  readonly check: AppCheck;
}

/** Before the container's name and the kind. */
export const APP_HEALTH_PATH = '/app-health/';

export function appHealthPath({ container, probe }: Pick<AppProbe, 'container' | 'probe'>): string {
  return `${APP_HEALTH_PATH}${container}/${probe}`;
}

/** Three for each of more containers than a pod has. */
export const APP_PROBES_MAX = 128;
/** Half of what the kernel takes as one variable of an environment. */
export const APP_PROBES_LENGTH_MAX = 65_536;
/** An hour: no kubelet waits longer for an app. */
export const APP_PROBE_TIMEOUT_SECONDS_MAX = 3_600;

/**
 * As the value of an environment variable. Kubernetes replaces `$(NAME)` in such a value by another variable, so no
 * dollar sign is written.
 */
export function encodeAppProbes(probes: readonly AppProbe[]): string {
  return JSON.stringify(probes).replaceAll('$', String.raw`\u0024`);
}
