// A shell of somebody who has a kubeconfig, kubectl, helm and a checkout.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import type { E2eConfig } from './config.ts';
import type { Ran } from './e2e.ts';
import { ROOT } from './readme.ts';

/** What stands for every public image of the examples, where no registry is. */
const PUBLIC_IMAGE = /image: docker\.io\/library\/node:\S+/g;
const TIMEOUT_MS = 180_000;

export class Shell implements AsyncDisposable {
  readonly #home: string;
  readonly #config: E2eConfig;

  private constructor(home: string, config: E2eConfig) {
    this.#home = home;
    this.#config = config;
  }

  /** In a folder with the chart and the examples, whose images are those the cluster has. */
  static async open(config: E2eConfig): Promise<Shell> {
    const home = await mkdtemp(path.join(tmpdir(), 'weir-shell-'));
    const shell = new Shell(home, config);
    await cp(path.join(ROOT, 'charts'), path.join(home, 'charts'), { recursive: true });
    await cp(path.join(ROOT, 'examples'), path.join(home, 'examples'), { recursive: true });
    const apps = path.join(home, 'examples', 'app');
    for (const name of await readdir(apps)) {
      const file = path.join(apps, name);
      const manifest = await readFile(file, 'utf8');
      await writeFile(file, manifest.replace(PUBLIC_IMAGE, `image: ${config.appImage}`));
    }
    await mkdir(path.join(home, 'bin'));
    await symlink(config.kubectl, path.join(home, 'bin', 'kubectl'));
    const values = config.values.map((file) => `--values '${file}'`).join(' ');
    // Only the images differ from what a user types.
    const helm = `#!/bin/sh\ncase $1 in install | upgrade) set -- "$@" ${values} ;; esac\nexec '${config.helm}' "$@"\n`;
    await writeFile(path.join(home, 'bin', 'helm'), helm, { mode: 0o755 });
    return shell;
  }

  /** Runs a block; background jobs of it end with it. */
  async run(block: string): Promise<Ran> {
    const folder = (name: string): string => path.join(this.#home, name);
    const env = {
      PATH: `${folder('bin')}:${process.env['PATH'] ?? ''}`,
      HOME: this.#home,
      KUBECONFIG: this.#config.kubeconfig,
    };
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', block], {
      ...{ cwd: this.#home, env, timeout: TIMEOUT_MS },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that what the shell left in the background can be ended.
      detached: true,
    });
    const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
    const [code] = (await once(child, 'exit')) as [number | null];
    endGroup(child.pid);
    const [stdout, stderr] = await outputs;
    return { code: code ?? -1, stdout, stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // Nothing was left.
  }
}
