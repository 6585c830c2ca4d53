// What injection did to a pod, in an annotation of it: how an injected pod is recognised, and where policies,
// the watchdog and people read which port the sidecar stands before.
import * as z from 'zod';
import { injected } from '../../contract/names.ts';
import type { PodMetadata } from './pod.ts';

export type InterceptionMode = 'takeover' | 'redirect';

export interface TakenPort {
  readonly container: string;
  /** As its author named it; absent = it had no name. */
  readonly name?: string;
  /** The app's container port. */
  readonly port: number;
  /** The sidecar's port that forwards to it. */
  readonly listen: number;
  /** What the app's port is called now; absent = as before. */
  readonly renamed?: string;
}

export interface MovedProbe {
  /** The app's port. */
  readonly port: number;
  /** The number the kubelet asks instead; redirected to the app, past the sidecar. */
  readonly probe: number;
}

/** Value of the annotation `weir.dev/status`, as JSON. Fields are added, never removed or changed in meaning. */
export interface InjectionStatus {
  /** Of the product that injected. */
  readonly version: string;
  readonly mode: InterceptionMode;
  /** The sidecar is a restartable init container. */
  readonly native: boolean;
  readonly ports: readonly TakenPort[];
  /** With `redirect` only. */
  readonly probes?: readonly MovedProbe[];
  /** The sidecar's port for probes and metrics. */
  readonly admin: number;
  readonly image: string;
  /** Of everything injected: two pods with the same hash got the same. */
  readonly hash: string;
}

const portNumber = z.int().min(1).max(65_535);
const schema: z.ZodType<InjectionStatus> = z.object({
  version: z.string(),
  mode: z.enum(['takeover', 'redirect']),
  native: z.boolean(),
  ports: z
    .array(
      z.object({
        container: z.string(),
        name: z.string().exactOptional(),
        port: portNumber,
        listen: portNumber,
        renamed: z.string().exactOptional(),
      }),
    )
    .min(1),
  probes: z.array(z.object({ port: portNumber, probe: portNumber })).exactOptional(),
  admin: portNumber,
  image: z.string(),
  hash: z.string(),
});

/** Undefined when there is none or it is not ours: anybody may write annotations. */
export function readInjectionStatus({
  annotations = {},
}: PodMetadata): InjectionStatus | undefined {
  const text = annotations[injected.status];
  if (text === undefined) return undefined;
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
