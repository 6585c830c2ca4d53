// Which version of a program was measured, as it says itself.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** `nginx 1.22.1`, from `nginx -v`. */
export async function nginxVersion(): Promise<string> {
  return `nginx ${await saysVersion('nginx', ['-v'], /nginx\/(\S+)/)}`;
}

/** `Envoy 1.40.0`, from `envoy --version`. */
export async function envoyVersion(binary: string): Promise<string> {
  return `Envoy ${await saysVersion(binary, ['--version'], /version: [0-9a-f]+\/([^/]+)/)}`;
}

/** `Traefik 3.7.9`, from `traefik version`. */
export async function traefikVersion(binary: string): Promise<string> {
  return `Traefik ${await saysVersion(binary, ['version'], /Version:\s+(\S+)/)}`;
}

/** `ratelimit at f2fb1577…`: it has no releases, but Go writes the commit it was built from into the program. */
export async function ratelimitVersion(binary: string): Promise<string> {
  const program = await readFile(binary, 'latin1');
  const commit = /vcs\.revision=([0-9a-f]{12})/.exec(program)?.[1];
  return commit === undefined ? 'ratelimit' : `ratelimit at ${commit}`;
}

async function saysVersion(
  binary: string,
  args: readonly string[],
  pattern: RegExp,
): Promise<string> {
  // nginx says it on standard error.
  const { stdout, stderr } = await promisify(execFile)(binary, [...args], { timeout: 10_000 });
  return pattern.exec(stdout + stderr)?.[1] ?? 'of an unknown version';
}
