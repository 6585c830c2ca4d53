// Structured logs on stderr, one JSON object a line. A log line never carries a key, a token, a cookie or a body:
// callers pass names and numbers, and what slips in under a known name is redacted.
import { pino, type Logger } from 'pino';

export type Log = Logger;

/** `level` as in --log-level. Writes synchronously: a line about a crash must not be lost with the process. */
export function openLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: [
        'authorization',
        'cookie',
        'token',
        'key',
        '*.authorization',
        '*.cookie',
        '*.password',
      ],
    },
    pino.destination({ fd: 2, sync: true }),
  );
}
