import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';
import { ApiError } from '../kube/api-error.ts';
import type { JsonPatchOperation, KubeApi } from '../kube/api.ts';
import { webhookConfiguration, webhookConfigurationResource } from '../webhook/configuration.ts';
import { keepCaBundle, planCaBundle, type WebhookList } from './ca-bundle.ts';

const bundle = Buffer.from('PEM').toString('base64');

function listOf(...entries: readonly (readonly [string, string?])[]): WebhookList {
  return {
    metadata: { name: 'weir-inject' },
    webhooks: entries.map(([name, caBundle]) => ({
      name,
      clientConfig: caBundle === undefined ? {} : { caBundle },
    })),
  };
}

function failure(code: number): ApiError {
  return new ApiError({ method: 'PATCH', path: '/x' }, { code, reason: '' }, { message: 'no' });
}

describe('the plan of the caBundle', () => {
  it('writes where it is missing or another, after a test of the name', () => {
    const operations = planCaBundle(listOf(['a', bundle], ['b'], ['c', 'b2xk']), 'PEM');

    assert.deepEqual(operations, [
      { op: 'test', path: '/webhooks/1/name', value: 'b' },
      { op: 'add', path: '/webhooks/1/clientConfig/caBundle', value: bundle },
      { op: 'test', path: '/webhooks/2/name', value: 'c' },
      { op: 'add', path: '/webhooks/2/clientConfig/caBundle', value: bundle },
    ]);
  });

  it('has nothing to write to the configuration that was made with it', () => {
    const options = { operatorNamespace: 'weir-system', target: { url: 'https://127.0.0.1:1' } };
    const made = webhookConfiguration({ ...options, caPem: 'PEM' });

    assert.deepEqual(planCaBundle(made, 'PEM'), []);
    assert.equal(planCaBundle(webhookConfiguration(options), 'PEM').length, 6);
    assert.deepEqual(planCaBundle({ metadata: {} }, 'PEM'), []);
  });
});

/** A configuration that answers each patch with the next of `codes` until they are used up. */
function apiOf(
  list: WebhookList | undefined,
  codes: readonly number[],
): {
  readonly api: Pick<KubeApi, 'get' | 'jsonPatch'>;
  readonly patches: (readonly JsonPatchOperation[])[];
} {
  const left = [...codes];
  const patches: (readonly JsonPatchOperation[])[] = [];
  const api = {
    get: () => (list === undefined ? Promise.reject(failure(404)) : Promise.resolve(list)),
    jsonPatch: (
      _resource: unknown,
      _name: unknown,
      options: { operations: readonly JsonPatchOperation[] },
    ) => {
      patches.push(options.operations);
      const code = left.shift();
      return code === undefined ? Promise.resolve(list) : Promise.reject(failure(code));
    },
  };
  // The tests' answers are the objects they gave.
  return { api: api as unknown as Pick<KubeApi, 'get' | 'jsonPatch'>, patches };
}

describe('keeping the caBundle', () => {
  const keep = (api: Pick<KubeApi, 'get' | 'jsonPatch'>): ReturnType<typeof keepCaBundle> =>
    keepCaBundle({
      ...{ api, resource: webhookConfigurationResource, name: 'weir-inject', trust: 'PEM' },
      signal: new AbortController().signal,
    });

  it('writes once, and not when it is there', async () => {
    const missing = apiOf(listOf(['a']), []);
    const there = apiOf(listOf(['a', bundle]), []);

    assert.equal(await keep(missing.api), 'written');
    assert.equal(await keep(there.api), 'kept');
    assert.deepEqual([missing.patches.length, there.patches.length], [1, 0]);
  });

  it('reads again when an entry is no longer where it was, five times at most', async () => {
    const twice = apiOf(listOf(['a']), [422, 409]);
    const always = apiOf(listOf(['a']), [422, 422, 422, 422, 422]);

    assert.equal(await keep(twice.api), 'written');
    assert.equal(twice.patches.length, 3);
    await assert.rejects(keep(always.api), { code: 422 });
    assert.equal(always.patches.length, 5);
  });

  it('never creates the configuration, and hands on what it cannot cure', async () => {
    assert.equal(await keep(apiOf(undefined, []).api), 'absent');
    await assert.rejects(keep(apiOf(listOf(['a']), [403]).api), { code: 403 });
  });
});
