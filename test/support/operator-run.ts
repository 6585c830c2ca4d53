// `weir operator` as a process of its own, beside the stand-in of an API server.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { ClusterStandIn } from './cluster-stand-in.ts';
import { eventually, freePort } from './redis.ts';

const program = path.join(import.meta.dirname, '..', '..', 'cli', 'main.ts');
export const OPERATOR_NAMESPACE = 'weir-system';
/** Loading takes 2 to 4 s with both cores busy. */
const START_TIMEOUT_MS = 60_000;

interface Addresses {
  readonly webhook: string;
  readonly stream: string;
  readonly admin: string;
}

const addressesSchema: z.ZodType<Addresses> = z.object({
  webhook: z.string(),
  stream: z.string(),
  admin: z.string(),
});

export interface OperatorRunOptions {
  /** Prepares the stand-in before the process starts. */
  readonly prepare?: (cluster: ClusterStandIn) => void;
  readonly flags?: readonly string[];
}

export class OperatorRun implements AsyncDisposable {
  readonly cluster: ClusterStandIn;
  /** Answers before the process serves. */
  readonly admin: string;
  /** Lines of the log, as JSON. */
  readonly log: readonly string[];
  readonly #child: ChildProcess;
  readonly #output: readonly string[];
  readonly #ended: Promise<unknown>;
  readonly #folder: string;

  private constructor(
    child: ChildProcess,
    lines: { readonly output: readonly string[]; readonly log: readonly string[] },
    rest: { readonly cluster: ClusterStandIn; readonly admin: string; readonly folder: string },
  ) {
    this.#child = child;
    this.#ended = once(child, 'exit');
    this.#output = lines.output;
    this.log = lines.log;
    this.cluster = rest.cluster;
    this.admin = rest.admin;
    this.#folder = rest.folder;
  }

  static async open({ prepare, flags = [] }: OperatorRunOptions = {}): Promise<OperatorRun> {
    const cluster = await ClusterStandIn.open();
    prepare?.(cluster);
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-operator-'));
    const admin = `127.0.0.1:${await freePort()}`;
    const child = spawn(
      process.execPath,
      [
        ...[program, 'operator', '--kubeconfig', await cluster.kubeconfig(folder)],
        ...['--namespace', OPERATOR_NAMESPACE, '--certificate-names', '127.0.0.1'],
        ...['--webhook', '127.0.0.1:0', '--stream', '127.0.0.1:0', '--admin', admin, ...flags],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: withoutSettings(process.env) },
    );
    const output = linesOf(child.stdout);
    const log = linesOf(child.stderr);
    const rest = { cluster, admin: `http://${admin}`, folder };
    return new OperatorRun(child, { output, log }, rest);
  }

  /** Where it serves; resolves once its caches are filled. */
  async addresses(): Promise<Addresses> {
    await eventually('it serves', () => this.#isOverOr(this.#output.length > 0), START_TIMEOUT_MS);
    return addressesSchema.parse(JSON.parse(this.#output[0] ?? ''));
  }

  async ready(): Promise<void> {
    await eventually(
      'it is ready',
      async () => this.#isOverOr((await this.readiness()).endsWith('\nok\n')),
      START_TIMEOUT_MS,
    );
  }

  /** What /readyz says; empty when nobody answers. */
  async readiness(): Promise<string> {
    const response = await fetch(`${this.admin}/readyz`).catch(() => undefined);
    return (await response?.text()) ?? '';
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.admin}/metrics`)).text();
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  /** The code it ends with by itself. */
  async exit(withinMs: number = START_TIMEOUT_MS): Promise<number | null> {
    await eventually('it ends', () => !this.isRunning, withinMs);
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Asked first: only a process that ends by itself says what of it was run.
    if (this.isRunning) this.terminate();
    const killing = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await this.#ended;
    clearTimeout(killing);
    await this.cluster[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #isOverOr(isIt: boolean): boolean {
    if (!this.isRunning) throw new Error(`it ended: ${this.log.join('\n')}`);
    return isIt;
  }
}

function linesOf(stream: NodeJS.ReadableStream): readonly string[] {
  const lines: string[] = [];
  createInterface({ input: stream }).on('line', (line) => lines.push(line));
  return lines;
}

/** A variable of the person who runs the tests must not reach the operator. */
function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/^(WEIR_|KUBE)/.test(name)),
  );
}
