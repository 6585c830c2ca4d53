// `weir run`: from flags to a running sidecar, and from signals to its end.
import process from 'node:process';
import { WeirError } from '../contract/errors.ts';
import type { GivenFlags } from '../contract/settings-reading.ts';
import { describeRunConfig, parseRunConfig } from '../sidecar/config.ts';
import type { runSidecar } from '../sidecar/run.ts';
import type { RunConfig } from '../sidecar/run-config.ts';
import { settings } from '../sidecar/run-settings.ts';
import { WORKER_VARIABLE } from '../sidecar/workers/message.ts';
import { untilSignalled } from './signals.ts';
import { NOT_IN_ORDER, wantsColour } from './terminal.ts';
import { readVersion } from './version.ts';

/** Flags as commander names them. Throws WeirError when the sidecar cannot start. */
export async function runSidecarCommand(given: GivenFlags): Promise<void> {
  const config = parseRunConfig(byFlagName(given), process.env);
  if (given['printConfig'] === true) {
    process.stdout.write(`${JSON.stringify(describeRunConfig(config), undefined, 2)}\n`);
    return;
  }
  const { openLog } = await import('../sidecar/log.ts');
  const log = openLog(config.logLevel);
  // The log is JSON, one object a line; what a library prints for people goes into it.
  // eslint-disable-next-line no-console -- it is replaced, not used
  console.warn = (...words: unknown[]): void => {
    log.warn({ event: 'library', words: words.map(String).join(' ') }, 'a library warns');
  };
  if (process.env[WORKER_VARIABLE] === '1') {
    const { runWorker } = await import('../sidecar/workers/worker.ts');
    await runWorker(config, log);
    return;
  }
  const announce = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const run = await chooseRole(config);
  const dependencies = { log, announce, version: readVersion() };
  await run(config, dependencies, untilSignalled()).catch(reportProblems);
}

/** One process, or a parent with workers. */
async function chooseRole(config: RunConfig): Promise<typeof runSidecar> {
  if (config.workers > 1 || config.supervise) {
    return (await import('../sidecar/workers/supervisor.ts')).runSupervisor;
  }
  return (await import('../sidecar/run.ts')).runSidecar;
}

/** A start that fails on a policy shows its lines, as `weir check` does. */
async function reportProblems(error: unknown): Promise<void> {
  if (!(error instanceof WeirError) || error.code !== 'POLICY_INVALID') throw error;
  const problems = error.details['problems'];
  if (!Array.isArray(problems)) throw error;
  const { describeProblems } = await import('./problems.ts');
  process.stderr.write(await describeProblems(problems, wantsColour(process.stderr)));
  process.exitCode = NOT_IN_ORDER;
}

function byFlagName(given: GivenFlags): GivenFlags {
  return Object.fromEntries(settings.map(({ name, field }) => [name, given[field]]));
}
