// What a figure was measured on, and whether anybody else was at work meanwhile.
import { readFile } from 'node:fs/promises';
import { cpus, release, totalmem } from 'node:os';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

export interface MachineFacts {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
}

export function machineFacts(): MachineFacts {
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}

/** Above this share of busy time somebody else's work shows in the figures. */
export const QUIET_BUSY_SHARE = 0.1;

/** Waits until the machine is quiet for two seconds, at most `limitMs`. Returns the last busy share, 0..1. */
export async function waitForQuiet(limitMs: number): Promise<number> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const busy = await busyShare(2_000);
    if (busy < QUIET_BUSY_SHARE || performance.now() > deadline) return busy;
  }
}

/** The share of all cores' time that was not idle during the next `ms`. */
export async function busyShare(ms: number): Promise<number> {
  const before = await processorTimes();
  await delay(ms);
  const after = await processorTimes();
  const all = after.all - before.all;
  return all === 0 ? 0 : 1 - (after.idle - before.idle) / all;
}

/** All cores' ticks since boot; waiting for a disk counts as idle. */
async function processorTimes(): Promise<{ readonly all: number; readonly idle: number }> {
  const [line = ''] = (await readFile('/proc/stat', 'utf8')).split('\n');
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return {
    all: ticks.reduce((sum, one) => sum + one, 0),
    idle: (ticks[3] ?? 0) + (ticks[4] ?? 0),
  };
}
