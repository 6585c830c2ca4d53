// Looks again and again, one look at a time, until it is disposed.
import { pause, type Clock } from '../clock.ts';

export interface RepeatedLookOptions {
  readonly clock: Clock;
  readonly everyMs: number;
  /** Must not throw. */
  readonly look: (signal: AbortSignal) => Promise<void>;
}

export function repeatLook({ clock, everyMs, look }: RepeatedLookOptions): AsyncDisposable {
  const end = new AbortController();
  const { signal } = end;
  const running = (async () => {
    for (;;) {
      await pause(clock, everyMs, signal);
      if (signal.aborted) return;
      await look(signal);
    }
  })();
  return {
    [Symbol.asyncDispose]: async () => {
      end.abort();
      await running;
    },
  };
}
