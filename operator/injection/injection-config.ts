// What the operator decides about injection before it sees a pod, and what it knows about the pod's surroundings.
import type { Quantities } from './pod.ts';
import type { InterceptionMode } from './injection-status.ts';

export interface SidecarResources {
  readonly requests: Quantities;
  /** Memory only; a CPU limit is added where the app has one. */
  readonly limits: Quantities;
  /** The CPU limit for pods whose app has one. */
  readonly cpuLimit: string;
}

export type OnNoConfig = 'deny' | 'allow';

/** The same for every pod: from the operator's own settings. */
export interface InjectionConfig {
  /** Of this product; goes into the status annotation. */
  readonly version: string;
  readonly image: string;
  /** Holds the program that writes the redirect rules; undefined = no pod is put into that mode. */
  readonly redirectImage: string | undefined;
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  /** Names of Secrets; they must exist in the namespaces of the pods. */
  readonly imagePullSecrets: readonly string[];
  /** `https://host:port`. */
  readonly operatorUrl: string;
  /** PEM texts of the CAs to trust. */
  readonly operatorCa: string;
  /** Of the API server: 36 for Kubernetes 1.36. */
  readonly serverMinor: number;
  readonly resources: SidecarResources;
  /** For pods that do not say: `auto` looks at the Services. */
  readonly mode: InterceptionMode | 'auto';
  readonly onNoConfig: OnNoConfig;
  readonly logLevel: string;
  /** For pods that do not say; 0 = one process without a parent. */
  readonly workers: number;
  /** For pods whose app has no preStop hook; 0 leaves apps alone. */
  readonly drainSeconds: number;
}

/** A Service that selects the pod. */
export interface SelectingService {
  readonly name: string;
  readonly isHeadless: boolean;
  /** TCP ports only. `targetPort` absent = the number in `port`. */
  readonly ports: readonly { readonly port: number; readonly targetPort?: number | string }[];
}

/** What is known about the place a pod is created in. */
export interface PodSurroundings {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly services: readonly SelectingService[];
  /** Mode of another pod of the same revision: a revision keeps the mode of its first pod. */
  readonly siblingMode?: InterceptionMode;
  readonly seed?: Seed;
}

/** As `encodeSeed` of contract/seed.ts gives it. */
export type Seed =
  | { readonly kind: 'seed'; readonly text: string }
  | { readonly kind: 'omitted'; readonly reason: string };
