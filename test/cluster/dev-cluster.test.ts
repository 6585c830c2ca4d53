import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { ApiClient } from './api-client.ts';
import { textAt } from './json-value.ts';

const SCRIPT = path.join(import.meta.dirname, '..', '..', 'scripts', 'dev-cluster.ts');

describe('npm run dev:cluster', () => {
  it('prints a kubeconfig of a cluster that injects pods, and leaves nothing after Ctrl-C', async () => {
    const child = spawn(process.execPath, [SCRIPT, '--own'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit') as Promise<[number | null]>;
    const kubeconfig = await firstMatch(child.stdout, /export KUBECONFIG=(.+)$/);
    using api = await ApiClient.open(kubeconfig);
    const { status } = await api.request('GET', '/apis/weir.dev/v1alpha1/ratelimitpolicies');
    assert.equal(status, 200);
    const { body } = await api.request('POST', '/api/v1/namespaces/default/pods?dryRun=All', {
      body: annotatedPod,
    });
    assert.equal(textAt(body, 'metadata', 'labels', 'weir.dev/injected'), 'true');

    child.kill('SIGINT');

    assert.deepEqual((await ended)[0], 0);
    assert.ok(!existsSync(kubeconfig));
    await assert.rejects(api.request('GET', '/version'));
  });
});

const annotatedPod = {
  ...{ apiVersion: 'v1', kind: 'Pod' },
  metadata: { name: 'api', annotations: { 'weir.dev/inject': 'required' } },
  spec: {
    containers: [{ name: 'api', image: 'api:1', ports: [{ name: 'http', containerPort: 8080 }] }],
  },
};

/** Reads on afterwards, so that the child never waits for a reader. */
async function firstMatch(output: NodeJS.ReadableStream, wanted: RegExp): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const lines = createInterface({ input: output });
  lines.on('line', (line) => {
    const found = wanted.exec(line)?.[1];
    if (found !== undefined) resolve(found);
  });
  lines.on('close', () => {
    reject(new Error(`it ended without ${String(wanted)}`));
  });
  return promise;
}
