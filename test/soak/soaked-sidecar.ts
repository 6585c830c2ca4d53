// A real `weir run` that tells what it holds: its heap after a garbage collection, its timers and its descriptors.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import type { SidecarOptions } from '../support/sidecar.ts';
import type { ProcessFacts } from './facts-preload.ts';

export class SoakedSidecar implements AsyncDisposable {
  readonly process: SidecarProcess;
  readonly #folder: string;
  #asked = 0;

  private constructor(sidecar: SidecarProcess, folder: string) {
    this.process = sidecar;
    this.#folder = folder;
  }

  static async open(options: SidecarOptions): Promise<SoakedSidecar> {
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-soak-'));
    const preload = pathToFileURL(path.join(import.meta.dirname, 'facts-preload.ts')).href;
    const env = {
      NODE_OPTIONS: `--import=${preload}`,
      SOAK_FACTS: path.join(folder, 'facts.json'),
    };
    try {
      return new SoakedSidecar(await SidecarProcess.open({ ...options, env }), folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** What it holds after a garbage collection. */
  async facts(): Promise<ProcessFacts> {
    this.#asked += 1;
    process.kill(this.process.pid, 'SIGUSR2');
    await eventually('the sidecar says what it holds', async () => {
      return (await this.#written())?.serial === this.#asked;
    });
    const facts = await this.#written();
    if (facts === undefined) throw new Error('the file of facts has gone');
    return facts;
  }

  async #written(): Promise<ProcessFacts | undefined> {
    const text = await readFile(path.join(this.#folder, 'facts.json'), 'utf8').catch(() => '');
    return text === '' ? undefined : (JSON.parse(text) as ProcessFacts);
  }

  /** Open file descriptors. */
  async descriptors(): Promise<number> {
    return (await readdir(`/proc/${String(this.process.pid)}/fd`)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
