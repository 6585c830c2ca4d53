// What the image builds take from the environment; nothing else under scripts/images reads it.
import process from 'node:process';

/** For a child: everything, with these on top. */
export function environmentWith(env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...env };
}

/** Docker keeps these build arguments out of images and of their history. */
const PROXY_NAMES = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
];

/** Arguments that let a build reach the network as this process does. */
export function proxyArguments(): readonly string[] {
  return PROXY_NAMES.filter((name) => (process.env[name] ?? '') !== '').flatMap((name) => [
    '--build-arg',
    name,
  ]);
}

/** The npm that runs us, else the first on the PATH. */
export function npmProgram(): string | undefined {
  return process.env['npm_execpath'];
}

export function searchPath(): readonly string[] {
  return [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'];
}
