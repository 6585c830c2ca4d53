// Records anew what real servers answer to the requests of corpus/recorded-*.cases, and writes the answers into them:
// `node test/conformance/http/record.ts`, with nginx and python3 on the PATH. Replaying needs none of them.
import { spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { listenOnLoopback } from '../../support/loopback.ts';
import { RawSocket } from '../../support/raw-socket.ts';
import { eventually, freePort } from '../../support/redis.ts';
import { escapedBlock, parseCases } from './case-file.ts';
import type { CorpusCase } from './case-file.ts';
import { readMessages } from './message.ts';
import { isFinal } from './replay.ts';

const corpus = path.join(import.meta.dirname, 'corpus');

/** Files that the servers give out, older than the recording. */
async function makeSite(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-record-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  // nginx reads as a user of its own.
  await chmod(folder, 0o755);
  await mkdir(path.join(folder, 'dir'));
  const files: Readonly<Record<string, string>> = {
    'index.html': '<!doctype html><title>Site</title>\n',
    'a b.txt': 'a name with a space\n',
    'caf\u00e9.txt': 'a name in UTF-8\n',
    'digits.txt': '0123456789'.repeat(20),
    'empty.txt': '',
    'dir/index.html': '<p>dir</p>\n',
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(folder, name), text);
    await utimes(path.join(folder, name), 1_700_000_000, 1_700_000_000);
  }
  return folder;
}

async function startNginx(): Promise<number> {
  const port = await freePort();
  const config = path.join(site, 'nginx.conf');
  await writeFile(
    config,
    `daemon off; error_log stderr crit; pid ${site}/nginx.pid; events {}
http {
  types { text/html html; text/plain txt; }
  access_log off; gzip on; gzip_min_length 1; gzip_types text/plain; server_tokens off;
  server {
    listen 127.0.0.1:${String(port)}; root ${site};
    location /moved { return 301 /; }
    location /gone { return 410 "gone\\n"; }
    location /nothing { return 204; }
    location /added { add_header X-A 1; add_header X-A 2; add_header X-Empty ""; try_files /digits.txt =404; }
  }
}
`,
  );
  return started('nginx', ['-e', '/dev/null', '-c', config], port);
}

async function startPython(): Promise<number> {
  const port = await freePort();
  const args = ['-m', 'http.server', '--bind', '127.0.0.1', '--directory', site, String(port)];
  return started('python3', args, port);
}

async function started(command: string, args: readonly string[], port: number): Promise<number> {
  const child = spawn(command, args, { stdio: 'ignore' });
  stack.defer(() => void child.kill());
  await eventually(`${command} listens`, async () => {
    await using client = await RawSocket.connect(port).catch(() => undefined);
    return client?.socket.readyState === 'open';
  });
  return port;
}

/** Node's own server, with what its API offers. */
const routes: Readonly<Record<string, (ask: IncomingMessage, answer: ServerResponse) => void>> = {
  '/chunks': (_ask, answer) => {
    answer.write('one');
    answer.end('two');
  },
  '/trailers': (_ask, answer) => {
    answer.writeHead(200, { Trailer: 'X-Sum' });
    answer.write('body');
    answer.addTrailers({ 'X-Sum': '7' });
    answer.end();
  },
  '/hints': (_ask, answer) => {
    answer.writeProcessing();
    answer.writeEarlyHints({ link: '</a.css>; rel=preload; as=style' });
    answer.end('hinted');
  },
  '/cookies': (_ask, answer) => {
    answer.setHeader('Set-Cookie', ['a=1', 'b=2; HttpOnly']);
    answer.end('cookies');
  },
  '/nothing': (_ask, answer) => answer.writeHead(204).end(),
  '/unchanged': (_ask, answer) => answer.writeHead(304, { ETag: '"x"' }).end(),
  '/reset': (_ask, answer) => answer.writeHead(205).end(),
  '/reason': (_ask, answer) => answer.writeHead(299, 'Quite Right').end('reason'),
  '/close': (_ask, answer) => answer.writeHead(200, { Connection: 'close' }).end('close'),
  '/latin1': (_ask, answer) => answer.writeHead(200, { 'X-A': 'caf\u00e9' }).end('latin1'),
  '/undated': (_ask, answer) => {
    answer.sendDate = false;
    answer.end('undated');
  },
  '/echo': (ask, answer) => {
    let body = '';
    ask.setEncoding('latin1');
    ask.on('data', (text: string) => (body += text));
    ask.on('end', () => answer.end(JSON.stringify({ body, trailers: ask.rawTrailers })));
  },
};

async function startNode(): Promise<number> {
  const server = createServer((ask, answer) => {
    const route = routes[ask.url ?? ''];
    if (route === undefined) answer.end(`${ask.method ?? ''} ${ask.url ?? ''}`);
    else route(ask, answer);
  });
  stack.defer(() => {
    server.close().closeAllConnections();
  });
  return listenOnLoopback(server);
}

async function record(server: string, port: number): Promise<void> {
  const file = path.join(corpus, `recorded-${server}.cases`);
  const text = await readFile(file, 'utf8');
  const remarks = text.split('\n').filter((line) => line.startsWith(';'));
  const written: string[] = [...remarks, ''];
  for (const one of parseCases(text)) written.push(...(await recorded(one, port)), '');
  await writeFile(file, written.join('\n'));
}

async function recorded({ name, steps }: CorpusCase, port: number): Promise<string[]> {
  const lines = [`=== ${name}`];
  await using client = await RawSocket.connect(port);
  for (const step of steps) {
    if (step.kind !== 'client') continue;
    const before = client.received.length;
    client.send(step.bytes);
    const methods = [step.bytes.slice(0, step.bytes.indexOf(' '))];
    const answered = (): boolean =>
      readMessages(client.received.slice(before), {
        ...{ kind: 'response', methods, tunnels: false, ended: client.ended },
      }).some(isFinal);
    await client.waitFor(() => answered() || client.closed, 'the answer');
    lines.push(...escapedBlock('>', step.bytes));
    lines.push(...escapedBlock('<', client.received.slice(before)));
  }
  // The server's own deadline for idle connections is not waited for.
  await client.waitFor(
    () => client.ended || !/^Connection: close|^HTTP\/1\.0/im.test(client.received),
    'its end',
  );
  return client.ended ? [...lines, '! close'] : lines;
}

await using stack = new AsyncDisposableStack();
const site = await makeSite();
await record('nginx', await startNginx());
await record('python', await startPython());
await record('node', await startNode());
