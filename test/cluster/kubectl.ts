import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** `rollout status` and `wait` bring bounds of their own below this one. */
const TIMEOUT_MS = 120_000;

export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KubectlOptions {
  /** Given to its standard input, for `-f -`. */
  readonly input?: string;
}

export interface KubectlSetting {
  readonly program: string;
  readonly kubeconfig: string;
  /** What kubectl learns of the API; never the user's own folder. */
  readonly cacheFolder: string;
}

/** Runs kubectl to its end; a refusal is a result, not a rejection. */
export async function runKubectl(
  { program, kubeconfig, cacheFolder }: KubectlSetting,
  args: readonly string[],
  { input = '' }: KubectlOptions = {},
): Promise<KubectlResult> {
  const flags = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${cacheFolder}`];
  const child = spawn(program, [...flags, ...args], { timeout: TIMEOUT_MS });
  const ended = once(child, 'close') as Promise<[number | null]>;
  // It may end without having read everything.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([
    ended,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code: code ?? -1, stdout, stderr };
}
