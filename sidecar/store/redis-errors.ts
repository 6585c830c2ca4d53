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
  const redirection = REDIRECTION.exec(error.message);
  if (redirection !== null) {
    const [, code, address = ''] = redirection;
    return { action: code === 'MOVED' ? 'moved' : 'ask', kind: 'busy', address };
  }
  const code = /^\S*/.exec(error.message)?.[0] ?? '';
  return byCode[code] ?? byCode[wrappedCode(error)] ?? unknownFailure(error, code);
}

function wrappedCode(error: Error): string {
  return WRAPPED.exec(error.message)?.[1] ?? '';
}

function unknownFailure(error: Error, code: string): Remedy {
  const isReply = error.name === 'ReplyError' || ERROR_CODE.test(code);
  return isReply ? SCRIPT_FAILED : CONNECTION_FAILED;
}

const REDIRECTION = /^(MOVED|ASK) \d+ (\S+)/;
const ERROR_CODE = /^[A-Z]+$/;
const WRAPPED = /-(OOM|READONLY|NOREPLICAS|MISCONF|BUSY) /;
const SCRIPT_FAILED: Remedy = { action: 'fail', kind: 'script' };
const CONNECTION_FAILED: Remedy = { action: 'fail', kind: 'down' };
