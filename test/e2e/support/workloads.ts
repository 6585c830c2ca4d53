// The objects that users write, as short as the suites need them.
import { annotations } from '../../../contract/names.ts';
import type { Room } from './e2e.ts';

type Plain = Readonly<Record<string, unknown>>;

export interface AppOptions {
  readonly replicas?: number;
  /** Of the pod, beside `inject`. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Asks for the sidecar unless false. */
  readonly isInjected?: boolean;
  /** Container ports; `http` 8080 unless given. */
  readonly ports?: readonly Plain[];
  /** Where it listens, as LISTEN of pods/app.ts. */
  readonly listen?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Readiness on the named port unless given. */
  readonly container?: Plain;
  readonly spec?: Plain;
}

export function podTemplate(room: Room, app: string, options: AppOptions = {}): object {
  const { listen = '0.0.0.0:8080', ports = [{ name: 'http', containerPort: 8080 }] } = options;
  const env = { LISTEN: listen, ...options.env };
  const inject = options.isInjected === false ? {} : { [annotations.inject]: 'required' };
  return {
    metadata: { labels: { app }, annotations: { ...inject, ...options.annotations } },
    spec: room.podSpec(
      {
        command: ['node', '/scripts/app.ts'],
        ports,
        env: Object.entries(env).map(([name, value]) => ({ name, value })),
        resources: { requests: { cpu: '10m', memory: '48Mi' } },
        ...(options.container ?? { readinessProbe: probe({ httpGet: { path: '/', port: 8080 } }) }),
      },
      options.spec,
    ),
  };
}

/** Asked every second. */
export function probe(check: Plain): Plain {
  // A machine with two busy cores is slow at times; a probe that is refused stays refused.
  return { periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 20, ...check };
}

export function deployment(room: Room, app: string, options: AppOptions = {}): object {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: app } },
    spec: {
      replicas: options.replicas ?? 1,
      selector: { matchLabels: { app } },
      strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: podTemplate(room, app, options),
    },
  };
}

export function statefulSet(room: Room, app: string, options: AppOptions = {}): object {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: app } },
    spec: {
      replicas: options.replicas ?? 1,
      serviceName: app,
      selector: { matchLabels: { app } },
      template: podTemplate(room, app, options),
    },
  };
}

export function service(app: string, ports: readonly Plain[], more: Plain = {}): object {
  return {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: app } },
    spec: { selector: { app }, ports, ...more },
  };
}

export interface PolicyOptions {
  readonly capacity?: number;
  /** What happens to who sends no `X-Client`; they share one bucket unless given. */
  readonly onMissingKey?: 'Shared' | 'Skip';
  readonly more?: Plain;
}

/** `capacity` requests an hour for each value of `X-Client`. */
export function policy(app: string, options: PolicyOptions = {}): object {
  const { capacity = 3, onMissingKey = 'Shared', more = {} } = options;
  return {
    ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy', metadata: { name: app } },
    spec: {
      selector: { matchLabels: { app } },
      rules: [
        {
          name: 'per-client',
          key: [{ header: { name: 'X-Client' } }],
          onMissingKey,
          buckets: [{ capacity, refill: { tokens: capacity, every: '1h' } }],
        },
      ],
      ...more,
    },
  };
}
