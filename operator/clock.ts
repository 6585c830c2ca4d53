// Time as the operator sees it; injected, so that a test moves it instead of waiting.

export interface Clock {
  /** Monotonic milliseconds since an arbitrary start: for durations. */
  nowMs(): number;
  /** Milliseconds since 1970: for what is shown to people or written to objects, never for durations. */
  wallMs(): number;
  /** Runs `task` once, `ms` later at the earliest, unless disposed before. */
  after(ms: number, task: () => void): Disposable;
}

/** Randomness as in `Math.random`: in [0, 1). */
export type Random = () => number;

/** setTimeout takes 32 bits and fires at once for more. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's own clocks. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (ms, task) => {
    const timer = setTimeout(task, Math.min(ms, LONGEST_TIMER_MS));
    return {
      [Symbol.dispose]: () => {
        clearTimeout(timer);
      },
    };
  },
};

/**
 * As `clock.after`, one turn of the event loop later. A process that was kept from running finds its timers due before it
 * has read what came meanwhile: a time that is up for an answer is up when that was not among it.
 */
export function afterReading(
  clock: Pick<Clock, 'after'>,
  ms: number,
  task: () => void,
): Disposable {
  let timer = clock.after(ms, () => {
    timer = clock.after(0, task);
  });
  return {
    [Symbol.dispose]: () => {
      timer[Symbol.dispose]();
    },
  };
}

/** Resolves after `ms`, or at once when the signal is aborted: the caller looks at the signal. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || ms <= 0) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => {
    resolve(undefined);
  };
  const timer = clock.after(ms, end);
  signal.addEventListener('abort', end, { once: true });
  try {
    await promise;
  } finally {
    timer[Symbol.dispose]();
    signal.removeEventListener('abort', end);
  }
}
