// The edge of the redirect program: runs iptables, and reads what /proc says of this process and its network.
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { environmentOfTools } from './config.ts';
import type { Pod, Ran } from './redirection.ts';

/** Longer than a call waits for the lock; a kernel that loads a module takes a second. */
const CALL_TIMEOUT_MS = 15_000;
/** A table of thousands of rules; of ours there are some lines. */
const OUTPUT_BYTES_MAX = 4_194_304;

export async function openPod(): Promise<Pod> {
  const env = { ...environmentOfTools(), ...(await lockFile()) };
  return {
    uid: process.geteuid?.() ?? -1,
    processStatus: await readFile('/proc/self/status', 'utf8'),
    ipv6Addresses: await readFile('/proc/net/if_inet6', 'utf8').catch(() => ''),
    run: (program, args) => runProgram(program, args, env),
  };
}

function runProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>();
  const options = { env, timeout: CALL_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX };
  execFile(program, [...args], options, (error, stdout, stderr) => {
    const said = stderr.trim().replaceAll(/\s*\n\s*/g, ' ');
    if (error === null) resolve({ kind: 'ended', code: 0, stdout, said });
    else if (typeof error.code === 'number') {
      resolve({ kind: 'ended', code: error.code, stdout, said });
    } else resolve({ kind: 'not-run', said: said === '' ? error.message : said });
  });
  return promise;
}

/** Where the legacy program keeps its lock, unless it is told otherwise. */
const LOCK_DEFAULT = '/run/xtables.lock';
/** In memory, and there in every container, also where the root is read-only. */
const LOCK_FOLDERS = ['/dev/shm', '/tmp'];

/** The lock is among the calls of this container only, so that any place will do. */
async function lockFile(): Promise<Readonly<Record<string, string>>> {
  if (await isWritable(path.dirname(LOCK_DEFAULT))) return {};
  for (const folder of LOCK_FOLDERS) {
    const file = path.join(folder, 'weir-xtables.lock');
    if (await isWritable(folder)) return { XTABLES_LOCKFILE: file };
  }
  // The program says what is wrong, if it wants a lock at all.
  return {};
}

function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
}
