// One process at a time, across processes: a file that holds the owner's process id. An owner that died leaves a
// file nobody answers for; the next one takes it over.
import { open, readFile, rm } from 'node:fs/promises';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 250;

/** Resolves once this process owns `file`; `onWait` is told, once, who owns it now. Disposing gives it back. */
export async function lockFile(
  file: string,
  onWait: (owner: number) => void,
  signal?: AbortSignal,
): Promise<AsyncDisposable> {
  let isToldToWait = false;
  while (!(await claim(file))) {
    const owner = await ownerOf(file);
    if (owner !== undefined && !isAlive(owner)) {
      await rm(file, { force: true });
      continue;
    }
    if (owner !== undefined && !isToldToWait) onWait(owner);
    isToldToWait = true;
    await delay(POLL_MS, undefined, signal === undefined ? {} : { signal });
  }
  return { [Symbol.asyncDispose]: () => rm(file, { force: true }) };
}

async function claim(file: string): Promise<boolean> {
  try {
    await using handle = await open(file, 'wx');
    await handle.writeFile(String(process.pid));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Undefined between the file's creation and its first byte, and after its removal. */
async function ownerOf(file: string): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return Number.isNaN(pid) ? undefined : pid;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: somebody else's process, but a process.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
