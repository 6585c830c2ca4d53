// The Docker that builds: the one that answers, or one of our own for as long as it is needed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import type { Say } from '../../test/cluster/kept-folder.ts';
import { environmentWith } from './config.ts';
import { openOwnEngine, whyNoOwnEngine } from './own-engine.ts';

export type EngineChoice = 'auto' | 'docker' | 'own';
export const engineChoices: readonly EngineChoice[] = ['auto', 'docker', 'own'];

export interface Docker extends AsyncDisposable {
  readonly isOwn: boolean;
  /** Runs `docker ARGS`; resolves with what it wrote. Rejects with the end of what it complained about. */
  run(args: readonly string[], options?: RunOptions): Promise<string>;
}

export interface RunOptions {
  readonly input?: Buffer;
  /** Where its output goes instead. */
  readonly outputFile?: string;
}

export interface DockerOptions {
  readonly engine: EngineChoice;
  /** Folder that keeps the layers of our own engine between builds. */
  readonly home: string;
  readonly say: Say;
}

/** Of a failed build the last lines say why. */
const COMPLAINT_TAIL = 4_096;

/** Rejects with what to install where there is no Docker and none can be started. */
export async function openDocker({ engine, home, say }: DockerOptions): Promise<Docker> {
  if (engine !== 'own') {
    const docker = dockerWith({}, { isOwn: false });
    const why = await docker.run(['info']).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (why === undefined) return docker;
    if (engine === 'docker') throw new Error(`Docker does not answer: ${why}`);
  }
  const hindrance = whyNoOwnEngine();
  if (hindrance !== undefined) {
    throw new Error(`no Docker answers, and one of our own cannot be started: ${hindrance}`);
  }
  say('starting a private Docker engine for this build');
  const own = await openOwnEngine(home, say);
  return dockerWith(own.env, { isOwn: true, end: async () => own[Symbol.asyncDispose]() });
}

interface Ownership {
  readonly isOwn: boolean;
  readonly end?: () => Promise<void>;
}

function dockerWith(env: Readonly<Record<string, string>>, { isOwn, end }: Ownership): Docker {
  return {
    isOwn,
    run: (args, options = {}) => runDocker(args, env, options),
    [Symbol.asyncDispose]: async () => end?.(),
  };
}

async function runDocker(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { input, outputFile }: RunOptions,
): Promise<string> {
  const child = spawn('docker', args, { env: environmentWith(env), stdio: 'pipe' });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    complaint = (complaint + part).slice(-COMPLAINT_TAIL);
  });
  // A child that ends early breaks the pipe; its exit code says more.
  child.stdin.on('error', () => undefined).end(input);
  const output =
    outputFile === undefined
      ? text(child.stdout)
      : finished(child.stdout.pipe(createWriteStream(outputFile))).then(() => '');
  const [[code], said] = await Promise.all([ended, output]);
  if (code === 0) return said;
  const last = `${said.slice(-COMPLAINT_TAIL)}${complaint}`.trim();
  throw new Error(`docker ${args[0] ?? ''} ended with ${code ?? 'a signal'}: ${last}`);
}
