// Loaded into a sidecar under soak (`node --import`): at SIGUSR2 it collects garbage and writes what the process holds
// into the file that SOAK_FACTS names. Nothing of it runs between two signals.
import { renameSync, writeFileSync } from 'node:fs';
import process from 'node:process';

/** What a process holds right after a garbage collection. Bytes. */
export interface ProcessFacts {
  /** How many signals there were. */
  readonly serial: number;
  readonly heapBytes: number;
  /** Outside of V8's heap, buffers included. */
  readonly externalBytes: number;
  readonly residentBytes: number;
  /** What keeps the event loop alive, by Node's names: sockets, servers, timers. */
  readonly resources: Readonly<Record<string, number>>;
}

const file = process.env['SOAK_FACTS'];
let serial = 0;

if (file !== undefined) {
  process.on('SIGUSR2', () => {
    // Twice: what a finaliser lets go is collected by the second.
    globalThis.gc?.();
    globalThis.gc?.();
    serial += 1;
    writeFileSync(`${file}.new`, JSON.stringify(factsNow()));
    renameSync(`${file}.new`, file);
  });
}

function factsNow(): ProcessFacts {
  const { heapUsed, external, rss } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) {
    resources[name] = (resources[name] ?? 0) + 1;
  }
  return { serial, heapBytes: heapUsed, externalBytes: external, residentBytes: rss, resources };
}
