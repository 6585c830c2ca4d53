// The five minutes of the README, done: its policy is written to a file, its commands are run by a shell, with free
// ports in place of 3000 and 8080.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import { eventually } from '../support/redis.ts';
import { closedPort } from '../support/upstream.ts';

const root = path.join(import.meta.dirname, '..', '..');

async function readSection(title: string): Promise<string> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8');
  const start = readme.indexOf(`## ${title}`);
  assert(start >= 0, `README has a section "${title}"`);
  return readme.slice(start, readme.indexOf('\n## ', start + 1));
}

function blocks(section: string, language: string): string[] {
  const found = section.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'));
  return [...found].map(([, text = '']) => text);
}

interface Shell {
  readonly folder: string;
  readonly ports: Readonly<Record<string, number>>;
}

/** Runs a block in `folder`; `npx weir` is the sources' command line. */
function startShell(text: string, { folder, ports }: Shell): ReturnType<typeof spawn> {
  const script = Object.entries(ports).reduce(
    (before, [port, free]) =>
      before
        .replaceAll(`localhost:${port}`, `localhost:${free}`)
        .replaceAll(`listen(${port})`, `listen(${free})`),
    text,
  );
  const npx = `npx() { shift; '${process.execPath}' '${root}/cli/main.ts' "$@"; }`;
  return spawn('bash', ['-c', `${npx}\n${script}`], {
    cwd: folder,
    env: { ...process.env, WEIR_LISTEN: `127.0.0.1:${ports['8080']}`, WEIR_ADMIN: '127.0.0.1:0' },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own, so that what the shell started ends with it.
    detached: true,
  });
}

async function read(shell: ReturnType<typeof spawn>): Promise<string> {
  let text = '';
  shell.stdout?.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  await once(shell, 'close');
  return text;
}

async function endGroup(shell: ReturnType<typeof spawn>): Promise<void> {
  process.kill(-(shell.pid ?? 0), 'SIGTERM');
  await once(shell, 'close');
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe('the five minutes of the README', () => {
  it('show a policy in words, five requests admitted and the sixth refused', async () => {
    const section = await readSection('Five minutes');
    const [policy = ''] = blocks(section, 'yaml');
    const [prepare = '', serve = '', ask = ''] = blocks(section, 'sh');
    const [, app = ''] = prepare.trim().split('\n');
    const [check = '', run = ''] = serve.trim().split('\n');
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-readme-'));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    await writeFile(path.join(folder, 'policy.yaml'), policy);
    const ports = { 3000: await closedPort(), 8080: await closedPort() };
    const upstream = startShell(app.replace(/ &$/, ''), { folder, ports });
    stack.defer(() => endGroup(upstream));
    await eventually('the application listens', () => listens(ports[3000]));

    const words = await read(startShell(check, { folder, ports }));
    const sidecar = startShell(run, { folder, ports });
    stack.defer(() => endGroup(sidecar));
    assert(sidecar.stdout !== null);
    await once(sidecar.stdout, 'data');
    const answers = await read(startShell(ask, { folder, ports }));

    assert.match(words, /Policy default\/public-api/);
    const lines = answers.trim().split(/\r?\n/);
    assert.deepEqual(lines.slice(0, 6), [
      ...Array.from({ length: 5 }, () => 'HTTP/1.1 200 OK'),
      'HTTP/1.1 429 Too Many Requests',
    ]);
    const fields = lines.slice(6).map((line) => line.toLowerCase().split(':')[0]);
    assert.deepEqual(fields.toSorted(), ['ratelimit', 'ratelimit-policy', 'retry-after']);
  });
});
