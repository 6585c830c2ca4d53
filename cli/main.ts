#!/usr/bin/env -S node --max-semi-space-size=4 --heap-growing-percent=70 --expose-gc
// The composition root: reads the command line and hands over. Each command imports what it needs only when it is
// asked for, so that `weir run` in a pod never loads what `weir check` does. The flags of the first line bound memory
// (docs/adr/0014-memory-of-the-sidecar.md); the image's entry point repeats them.
import process from 'node:process';
import { CommanderError } from 'commander';
import { buildProgram } from './program.ts';
import { USAGE_ERROR } from './terminal.ts';

// A reader that has seen enough (`weir check … | head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  await buildProgram().parseAsync(process.argv);
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  // commander has printed its sentence or the help that was asked for.
  process.exitCode = error.exitCode === 0 ? 0 : USAGE_ERROR;
}
