// The script of `helm test`, as the pod would run it, against a stand-in for the operator and the API server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { listenOnLoopback } from '../support/loopback.ts';
import { CHART } from './helm.ts';

interface Asked {
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

interface Ran {
  readonly code: number;
  readonly output: string;
  readonly asked: readonly Asked[];
}

const sidecar = { initContainers: [{ name: 'weir' }], containers: [{ name: 'app' }] };
const READY: Answer = { status: 200, body: { status: 'ok' } };

async function run(answers: { readonly ready?: Answer; readonly pods: Answer }): Promise<Ran> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-helm-test-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const tokenFile = path.join(folder, 'token');
  await writeFile(tokenFile, 'a-token\n');
  const asked: Asked[] = [];
  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const { url = '', headers } = request;
    asked.push({ url, authorization: headers.authorization, body: await text(request) });
    return url === '/readyz' ? (answers.ready ?? READY) : answers.pods;
  };
  const server = createServer((request, response) => {
    void answer(request).then(({ status, body }) => {
      response.writeHead(status).end(JSON.stringify(body));
    });
  });
  stack.defer(() => void server.close());
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  const env = {
    ...{ PATH: process.env['PATH'], OPERATOR_URL: url, API_URL: url, TOKEN_FILE: tokenFile },
    ...{ TEST_NAMESPACE: 'shop', TIMEOUT_SECONDS: '0' },
  };
  const child = spawn(process.execPath, [path.join(CHART, 'files', 'test.mjs')], { env });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [[code], output] = await Promise.all([ended, text(child.stdout)]);
  return { code: code ?? -1, output, asked };
}

describe('helm test', () => {
  it('passes when the operator is ready and a dry-run pod gets a sidecar', async () => {
    const { code, output, asked } = await run({ pods: { status: 201, body: { spec: sidecar } } });

    assert.equal(code, 0, output);
    assert.match(output, /ok: the operator is ready\nok: a pod of shop gets a sidecar/);
    const [, created] = asked;
    assert.equal(created?.url, '/api/v1/namespaces/shop/pods?dryRun=All');
    assert.equal(created.authorization, 'Bearer a-token');
    assert.match(created.body, /"weir\.dev\/inject":"enabled"/);
  });

  it('fails with the words of /readyz while the operator is not ready', async () => {
    const ready = { status: 503, body: { 'ca-bundle': 'weir-inject does not hold our CA yet' } };
    const { code, output } = await run({ ready, pods: { status: 201, body: { spec: sidecar } } });

    assert.equal(code, 1);
    assert.match(output, /not so: the operator is ready\n.*503.*does not hold our CA yet/);
  });

  it('fails when the pod comes back as it was', async () => {
    const spec = { containers: [{ name: 'app' }] };
    const { code, output } = await run({ pods: { status: 201, body: { spec } } });

    assert.equal(code, 1);
    assert.match(output, /gave it no sidecar.*Is shop served by the webhook\?/);
  });

  it('fails with the API server’s words when it refuses the pod', async () => {
    const body = { message: 'pods is forbidden: exceeded quota' };
    const { code, output } = await run({ pods: { status: 403, body } });

    assert.equal(code, 1);
    assert.match(output, /403: pods is forbidden: exceeded quota/);
  });
});
