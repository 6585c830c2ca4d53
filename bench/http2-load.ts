// h2load as the load over HTTP/2 without TLS: as many requests at once as wrk has, over few connections, as clients of
// that protocol do.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LOAD_CORE, pinned } from './pinned-process.ts';

export interface Http2LoadResult {
  readonly requests: number;
  /** Answers other than 2xx. */
  readonly refused: number;
  readonly perSecond: number;
}

const CONNECTIONS = 4;
const STREAMS = 8;

const run = promisify(execFile);

/** Whether h2load is installed. */
export async function hasHttp2Load(): Promise<boolean> {
  return run('h2load', ['--version']).then(
    () => true,
    () => false,
  );
}

/** Rejects when any request failed without an answer. */
export async function loadWithH2load(options: {
  readonly port: number;
  readonly seconds: number;
  readonly key: string;
}): Promise<Http2LoadResult> {
  const { port, seconds, key } = options;
  const [file, ...before] = pinned(LOAD_CORE);
  const { stdout } = await run(
    file,
    [
      ...before,
      ...['h2load', '-t', '1', '-c', String(CONNECTIONS), '-m', String(STREAMS)],
      ...['-D', String(seconds), '-H', `x-api-key: ${key}`, `http://127.0.0.1:${String(port)}/`],
    ],
    { timeout: (seconds + 20) * 1_000 },
  );
  return parseH2load(stdout, seconds);
}

/** What h2load printed after `seconds`. */
export function parseH2load(text: string, seconds: number): Http2LoadResult {
  const [, done, failed] = found(/requests: .*?(\d+) done, \d+ succeeded, (\d+) failed/, text);
  const [, two, three, four, five] = found(
    /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/,
    text,
  ).map(Number);
  const refused = Number(three) + Number(four) + Number(five);
  // h2load counts an answer of 4xx as failed; what failed otherwise was not measured.
  if (Number(failed) > refused) throw new Error(text);
  const requests = Number(two) + refused;
  if (requests === 0 || requests < Number(done)) throw new Error(text);
  return { requests, refused, perSecond: requests / seconds };
}

function found(pattern: RegExp, text: string): RegExpExecArray {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`h2load printed no ${String(pattern)}:\n${text}`);
  return match;
}
