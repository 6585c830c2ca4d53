// The app's part of a rollout without a failed request: endpoints of a deleted pod are used for up to a second more,
// and an app that ends at once refuses them. A container that has no hook of its own gets a short sleep.
import { graceSecondsOf } from './pod.ts';
import type { Container, PodSpec } from './pod.ts';
import type { Note } from './injection-outcome.ts';
import type { TakenPort } from './injection-status.ts';

/** `preStop.sleep` exists from here on. */
const SLEEP_MINOR = 30;
/** What must be left of the grace period for the app to end in. */
const SECONDS_TO_END = 5;

export interface DrainHookOptions {
  readonly taken: readonly TakenPort[];
  readonly seconds: number;
  readonly serverMinor: number;
}

/** Whether a sleep of this length can be given to the pod's containers. */
function canSleep(spec: PodSpec, { seconds, serverMinor }: DrainHookOptions): boolean {
  return (
    seconds > 0 && serverMinor >= SLEEP_MINOR && graceSecondsOf(spec) >= seconds + SECONDS_TO_END
  );
}

export function withDrainHook(
  container: Container,
  spec: PodSpec,
  options: DrainHookOptions,
): Container {
  const isTaken = options.taken.some((one) => one.container === container.name);
  if (!isTaken || container.lifecycle?.preStop !== undefined || !canSleep(spec, options)) {
    return container;
  }
  const preStop = { sleep: { seconds: options.seconds } };
  return { ...container, lifecycle: { ...container.lifecycle, preStop } };
}

/** Said when an app that has no hook could not be given one. */
export function drainNotes(spec: PodSpec, options: DrainHookOptions): readonly Note[] {
  const { seconds, serverMinor } = options;
  if (seconds === 0 || canSleep(spec, options)) return [];
  const why =
    serverMinor < SLEEP_MINOR
      ? `Kubernetes 1.${serverMinor} has no sleep hook`
      : `terminationGracePeriodSeconds is ${graceSecondsOf(spec)}, a drain of ${seconds} s needs ${seconds + SECONDS_TO_END}`;
  const bare = [...spec.containers, ...(spec.initContainers ?? [])].some(
    ({ name, lifecycle }) =>
      lifecycle?.preStop === undefined && options.taken.some(({ container }) => container === name),
  );
  if (!bare) return [];
  const message = `the app gets no preStop hook because ${why}: requests may fail while pods are replaced`;
  return [{ reason: 'NoDrain', message }];
}

/** How long an ordinary sidecar must stay for the app, in seconds: the app's longest hook, within the grace period. */
export function holdSeconds(
  containers: readonly Container[],
  spec: PodSpec,
  drain: number,
): number {
  const hooks = containers.map(({ lifecycle }) => {
    const preStop = lifecycle?.preStop;
    // How long another kind of hook takes is not known; it is there for the same reason as ours.
    return preStop === undefined ? 0 : (preStop.sleep?.seconds ?? drain);
  });
  return Math.max(0, Math.min(Math.max(0, ...hooks), graceSecondsOf(spec) - SECONDS_TO_END));
}
