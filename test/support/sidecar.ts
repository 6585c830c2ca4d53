// `weir run` as a process of its own, on free ports, with policy files in a folder of its own.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, utimes, writeFile, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { eventually } from './redis.ts';

const root = path.join(import.meta.dirname, '..', '..');
const MAIN = path.join(root, 'cli', 'main.ts');
/** Of Node.js, as the first line of the program has them. */
const NODE_FLAGS: readonly string[] = (
  /^#!\/usr\/bin\/env -S node (.*)$/m.exec(readFileSync(MAIN, 'utf8'))?.[1] ?? ''
).split(' ');

export interface SidecarOptions {
  /** Policy files by name; written to a folder that `--policy` names. Ignored when `folder` is given. */
  readonly files?: Readonly<Record<string, string>>;
  /** A folder of policies shared with other processes. */
  readonly folder?: PolicyFolder;
  /** Where rules come from instead of files, such as `--operator` with its settings. */
  readonly source?: readonly string[];
  readonly upstreamPort: number;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface LogLine {
  readonly level: string;
  readonly event?: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Policy files that are replaced as an editor does it: whole, by renaming. */
export class PolicyFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(folder: string) {
    this.path = folder;
  }

  static async open(files: Readonly<Record<string, string>>): Promise<PolicyFolder> {
    const folder = new PolicyFolder(await mkdtemp(path.join(tmpdir(), 'weir-policies-')));
    for (const [name, text] of Object.entries(files)) await folder.write(name, text);
    return folder;
  }

  /** `modifiedMs` sets the file's time: the generation of its policies. */
  async write(name: string, text: string, modifiedMs?: number): Promise<void> {
    const file = path.join(this.path, name);
    await writeFile(`${file}.new`, text);
    if (modifiedMs !== undefined)
      await utimes(`${file}.new`, modifiedMs / 1_000, modifiedMs / 1_000);
    await rename(`${file}.new`, file);
  }

  async remove(name: string): Promise<void> {
    await rm(path.join(this.path, name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

export class SidecarProcess implements AsyncDisposable {
  readonly port: number;
  /** Of every --listen, in order. */
  readonly ports: readonly number[];
  readonly adminPort: number;
  readonly pid: number;
  /** Every line of the log so far. */
  readonly log: LogLine[];
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | undefined>;
  readonly #folder: PolicyFolder | undefined;

  private constructor(parts: Started, ready: Ready, folder: PolicyFolder | undefined) {
    this.#child = parts.child;
    this.#exited = parts.exited;
    this.log = parts.log;
    this.port = portOf(ready.listen);
    this.ports = (ready.listens ?? [ready.listen]).map(portOf);
    this.adminPort = portOf(ready.admin);
    this.pid = parts.child.pid ?? 0;
    this.#folder = folder;
  }

  /** Starts the process and waits for its ready line. Rejects with what it printed when it ends before. */
  static async open(options: SidecarOptions): Promise<SidecarProcess> {
    const { source, own } = await sourceOf(options);
    const parts = start(
      [
        ...['run', ...source, '--upstream', `127.0.0.1:${options.upstreamPort}`],
        ...['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', ...(options.flags ?? [])],
      ],
      options.env,
    );
    const first = await Promise.race([parts.firstLine, parts.exited]);
    if (typeof first !== 'string') {
      await own?.[Symbol.asyncDispose]();
      throw new Error(`the sidecar ended before it was ready:\n${parts.text()}`);
    }
    return new SidecarProcess(parts, JSON.parse(first) as Ready, own);
  }

  /** The exit code once it has ended; undefined after a signal. */
  get exited(): Promise<number | undefined> {
    return this.#exited;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Log lines of that event so far. */
  events(event: string): LogLine[] {
    return this.log.filter((line) => line.event === event);
  }

  async ask(route: string, method = 'GET'): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.adminPort}${route}`, { method });
  }

  /** The value of a metric line; 0 when there is none. `labels` as Prometheus writes them. */
  async metric(name: string, labels = ''): Promise<number> {
    const text = await (await this.ask('/metrics')).text();
    const line = text.split('\n').find((one) => one.startsWith(`${name}${labels} `));
    return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
  }

  /** The bundle in force. */
  async bundle(): Promise<BundleInForce> {
    const described = (await (await this.ask('/config')).json()) as { bundle: BundleInForce };
    return described.bundle;
  }

  async untilCapacity(capacity: number): Promise<void> {
    await eventually(`capacity ${capacity} is in force`, async () => {
      const { policies } = await this.bundle();
      return policies[0]?.rules[0]?.tiers[0]?.buckets[0]?.limit.capacity === capacity;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A frozen process takes no signal but these.
    this.#child.kill('SIGCONT');
    this.#child.kill('SIGTERM');
    const grace = setTimeout(() => this.#child.kill('SIGKILL'), 20_000);
    await this.#exited;
    clearTimeout(grace);
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

export interface BundleInForce {
  readonly version: string;
  readonly policies: readonly {
    readonly name: string;
    readonly generation: number;
    readonly rules: readonly {
      readonly tiers: readonly {
        readonly buckets: readonly { readonly limit: { readonly capacity: number } }[];
      }[];
    }[];
  }[];
}

export interface Finished {
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of the command line to its end. */
export async function runWeir(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const parts = start(args, env);
  const code = await parts.exited;
  return { code, stdout: parts.stdout(), stderr: parts.text() };
}

interface Ready {
  readonly listen: string;
  readonly listens?: readonly string[];
  readonly admin: string;
}

interface Started {
  readonly child: ChildProcess;
  readonly firstLine: Promise<string>;
  readonly exited: Promise<number | undefined>;
  readonly log: LogLine[];
  readonly text: () => string;
  readonly stdout: () => string;
}

/** The flags that say where rules come from, and the folder that was made for them. */
async function sourceOf({ source, folder, files = {} }: SidecarOptions): Promise<{
  readonly source: readonly string[];
  readonly own: PolicyFolder | undefined;
}> {
  if (source !== undefined) return { source, own: undefined };
  if (folder !== undefined) return { source: ['--policy', folder.path], own: undefined };
  const own = await PolicyFolder.open(files);
  return { source: ['--policy', own.path], own };
}

function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const script = process.env['WEIR_TEST_BUNDLE'] ?? MAIN;
  const child = spawn(process.execPath, [...NODE_FLAGS, script, ...args], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: LogLine[] = [];
  let text = '';
  let stdout = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    text += `${line}\n`;
    if (line.startsWith('{')) log.push(JSON.parse(line) as LogLine);
  });
  const firstLine = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    stdout += `${line}\n`;
    firstLine.resolve(line);
  });
  const exited = once(child, 'close').then(([code]) => (code as number | null) ?? undefined);
  return {
    child,
    firstLine: firstLine.promise,
    exited,
    log,
    text: () => text,
    stdout: () => stdout,
  };
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}
