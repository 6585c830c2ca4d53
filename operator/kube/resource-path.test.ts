import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { failureOf } from './api-error.ts';
import { readClusterEnvironment } from './config.ts';
import { microTime } from './micro-time.ts';
import { collectionPath, objectPath } from './resource-path.ts';

const pods = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true };
const classes = { ...pods, group: 'x.io', plural: 'classes', kind: 'Class', isNamespaced: false };
const request = { method: 'GET', path: '/x' };

describe('paths of the API', () => {
  it('are of the core or a named group, of the cluster or a namespace, with names encoded', () => {
    assert.equal(collectionPath(pods), '/api/v1/pods');
    assert.equal(collectionPath(pods, 'a'), '/api/v1/namespaces/a/pods');
    assert.equal(
      objectPath(pods, { namespace: 'a', name: 'b/c' }),
      '/api/v1/namespaces/a/pods/b%2Fc',
    );
    assert.equal(objectPath(classes, { namespace: 'a', name: 'b' }), '/apis/x.io/v1/classes/b');
  });

  it('are refused without what the resource needs', () => {
    assert.throws(() => objectPath(pods, { name: 'a' }), TypeError);
    assert.throws(() => objectPath(pods, { namespace: '', name: 'a' }), TypeError);
    assert.throws(() => objectPath(classes, { name: '' }), TypeError);
  });
});

describe('a refusal', () => {
  it('says reason, message and wait of the Status; the header goes first', () => {
    const body = JSON.stringify({
      reason: 'TooManyRequests',
      message: 'slow down',
      details: { retryAfterSeconds: 3 },
    });

    const bare = failureOf(request, { code: 429, body });
    const headed = failureOf(request, { code: 429, body, retryAfter: '5' });

    assert.deepEqual(
      [bare.code, bare.reason, bare.retryAfterMs, bare.message],
      [429, 'TooManyRequests', 3000, 'GET /x: slow down'],
    );
    assert.equal(headed.retryAfterMs, 5000);
  });

  it('is one too when it is no Status, and never asks for more than two minutes', () => {
    for (const body of ['', '<html>', 'null', '[1]', '{"code":"x","details":3}']) {
      const error = failureOf(request, { code: 502, body, retryAfter: '100000' });

      assert.deepEqual([error.code, error.reason, error.retryAfterMs], [502, '', 120_000]);
    }
  });
});

describe('the environment of a pod', () => {
  it('names the server, in brackets when it is an IPv6 address', () => {
    const environment = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };

    assert.equal(readClusterEnvironment(environment).server?.href, 'https://[fd00::1]/');
    assert.equal(readClusterEnvironment({ KUBECONFIG: '' }).server, undefined);
    assert.equal(readClusterEnvironment({ KUBECONFIG: '/x' }).hasKubeConfig, true);
  });
});

describe('a MicroTime', () => {
  it('has six digits', () => {
    assert.equal(microTime(Date.UTC(2026, 0, 2, 3, 4, 5, 67)), '2026-01-02T03:04:05.067000Z');
  });
});
