// wrk as the load: 32 connections that ask again as soon as they are answered.
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { LOAD_CORE, pinned } from './pinned-process.ts';

export interface LoadResult {
  readonly requests: number;
  /** Answers other than 2xx and 3xx. */
  readonly refused: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** wrk script, or the one key of every request. */
  readonly keys: { readonly script: string } | { readonly key: string };
}

const run = promisify(execFile);

export async function loadWithWrk(options: LoadOptions): Promise<LoadResult> {
  const { port, connections, seconds, keys } = options;
  const [file, ...before] = pinned(LOAD_CORE);
  const { stdout } = await run(
    file,
    [
      ...before,
      ...['wrk', '-t1', `-c${String(connections)}`, `-d${String(seconds)}s`],
      ...('script' in keys ? ['-s', keys.script] : ['-H', `X-Api-Key: ${keys.key}`]),
      ...['--latency', `http://127.0.0.1:${String(port)}/`],
    ],
    { timeout: (seconds + 20) * 1_000 },
  );
  return parseWrk(stdout);
}

/** More requests than this take wrk longer to write beforehand than one by one. */
const MOST_KEPT = 10_000;

/** A wrk script that goes round `count` keys; requests are written once if they may, so that it costs wrk little. */
export async function writeKeyScript(folder: string, count: number): Promise<string> {
  const file = path.join(folder, 'keys.lua');
  const last = String(count);
  const lua =
    count <= MOST_KEPT
      ? [
          'local requests, at = {}, 0',
          'function init(args)',
          `  for i = 1, ${last} do`,
          "    requests[i] = wrk.format('GET', '/', { ['X-Api-Key'] = 'client-' .. i })",
          '  end',
          'end',
          `function request() at = at % ${last} + 1; return requests[at] end`,
        ]
      : [
          'local before, after, at = nil, nil, 0',
          'function init(args)',
          "  local request = wrk.format('GET', '/', { ['X-Api-Key'] = 'client-@' })",
          "  before, after = request:match('^(.*client%-)@(.*)$')",
          'end',
          `function request() at = at % ${last} + 1; return before .. at .. after end`,
        ];
  await writeFile(file, lua.join('\n'));
  return file;
}

function parseWrk(text: string): LoadResult {
  // An answer that takes more than two seconds counts as a timeout: slow, not wrong.
  if (/Socket errors: (?!connect 0, read 0, write 0)/.test(text)) throw new Error(text);
  return {
    requests: Number(found(/(\d+) requests in/, text)),
    refused: Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0),
    perSecond: Number(found(/Requests\/sec:\s+([\d.]+)/, text)),
    p50Ms: milliseconds(found(/^\s+50%\s+(\S+)/m, text)),
    p99Ms: milliseconds(found(/^\s+99%\s+(\S+)/m, text)),
  };
}

function found(pattern: RegExp, text: string): string {
  const value = pattern.exec(text)?.[1];
  if (value === undefined) throw new Error(`wrk printed no ${String(pattern)}:\n${text}`);
  return value;
}

function milliseconds(text: string): number {
  const [, number, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text) ?? [];
  const factors = new Map([
    ['us', 0.001],
    ['ms', 1],
    ['s', 1_000],
    ['m', 60_000],
  ]);
  return Number(number) * (factors.get(unit ?? '') ?? NaN);
}
