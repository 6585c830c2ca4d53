// What an error of a Redis server or its connection means for a call. The first word of an error is its code;
// Redis 6.2 wraps an error from inside a script, so codes are looked for there too.
import type { FailureKind } from './store.ts';

/**
 * What to do with a call that failed.
 * - `load-script`, `moved`, `ask`, `one-by-one`, `reconnect`, `retry`: nothing was executed, so sending it once
 *   more is safe: with the script's text; to the node named; there after ASKING; one bucket a call; after the
 *   connection was made anew; a moment later.
 * - `fail`: refused, or nobody knows whether it was executed.
 */
export type Remedy =
  | {
      readonly action: 'load-script' | 'one-by-one' | 'reconnect' | 'retry';
      readonly kind: FailureKind;
    }
  | { readonly action: 'moved' | 'ask'; readonly kind: FailureKind; readonly address: string }
  | { readonly action: 'fail'; readonly kind: FailureKind };

/** By code. `BUSY` and `LOADING` pass by themselves. */
const byCode: Readonly<Record<string, Remedy>> = {
  NOSCRIPT: { action: 'load-script', kind: 'script' },
  TRYAGAIN: { action: 'one-by-one', kind: 'busy' },
  READONLY: { action: 'reconnect', kind: 'readonly' },
  LOADING: { action: 'retry', kind: 'busy' },
  BUSY: { action: 'retry', kind: 'busy' },
  CLUSTERDOWN: { action: 'retry', kind: 'busy' },
  MASTERDOWN: { action: 'retry', kind: 'busy' },
  OOM: { action: 'fail', kind: 'oom' },
  NOREPLICAS: { action: 'fail', kind: 'readonly' },
  MISCONF: { action: 'fail', kind: 'readonly' },
  NOAUTH: { action: 'fail', kind: 'auth' },
  NOPERM: { action: 'fail', kind: 'auth' },
  WRONGPASS: { action: 'fail', kind: 'auth' },
};

/** A server's error reply has a code in capitals; everything else is the connection's own. */
export function remedyFor(error: Error): Remedy {
  const { message } = error;
  const [, code = '', rest = ''] = /^([A-Z]+) ?(.*)$/s.exec(message) ?? [];
  if (code === 'MOVED' || code === 'ASK') {
    const address = rest.split(' ')[1] ?? '';
    return { action: code === 'MOVED' ? 'moved' : 'ask', kind: 'busy', address };
  }
  const wrapped = /-(OOM|READONLY|NOREPLICAS|MISCONF|BUSY) /.exec(message)?.[1] ?? '';
  const known = byCode[code] ?? byCode[wrapped];
  if (known !== undefined) return known;
  return { action: 'fail', kind: error.name === 'ReplyError' || code !== '' ? 'script' : 'down' };
}
