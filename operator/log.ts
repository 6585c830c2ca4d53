// Structured logs on stderr, one JSON object a line. Keys as other controllers name them: controller, namespace, name,
// reconcileID. A line never carries a token or a Secret's value; what slips in under a known name is redacted.
import { pino, type Logger } from 'pino';

export type Log = Logger;

const REDACTED = ['authorization', 'token', 'password', 'data', 'stringData', 'headers'];

/** `level` as pino names them. Writes synchronously: a line about a crash must not be lost with the process. */
export function openLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: [...REDACTED, ...REDACTED.map((key) => `*.${key}`)],
    },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** Says nothing: for tests and for callers that bring none. */
export function silentLog(): Log {
  return pino({ level: 'silent' });
}

/** What an object is called in log lines: the queue's key taken apart. */
export function namesOf(key: string): { readonly namespace?: string; readonly name: string } {
  const slash = key.indexOf('/');
  if (slash < 0) return { name: key };
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
