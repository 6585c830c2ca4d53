// What `helm test` runs: is the operator ready, seen through its Service, and does the API server give a pod that asks
// for it a sidecar? The pod is a dry run: none is made.
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const { OPERATOR_URL, TEST_NAMESPACE, INJECT = 'enabled', TIMEOUT_SECONDS = '60' } = process.env;
const { API_URL = 'https://kubernetes.default.svc', TOKEN_FILE = `${ACCOUNT}/token` } = process.env;
const deadline = Date.now() + Number(TIMEOUT_SECONDS) * 1000;

/** Of Pod Security `restricted`, so that the namespace's level does not matter. */
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'weir-test-', annotations: { 'weir.dev/inject': INJECT } },
  spec: {
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'app',
        image: 'weir.dev/none',
        ports: [{ name: 'http', containerPort: 8080 }],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        resources: {
          requests: { cpu: '1m', memory: '1Mi' },
          limits: { cpu: '1', memory: '64Mi' },
        },
      },
    ],
  },
};

await until('the operator is ready', readiness);
if (INJECT === '')
  console.log('left out: pods do not ask by annotation here, but their namespaces by label');
else await until(`a pod of ${TEST_NAMESPACE} gets a sidecar`, injection);

/** Resolves once `look` finds nothing wrong; ends the process with what it found last. */
async function until(claim, look) {
  for (;;) {
    const problem = await look().catch((error) => `${error.message}: ${error.cause?.message}`);
    if (problem === undefined) {
      console.log(`ok: ${claim}`);
      return;
    }
    if (Date.now() > deadline) {
      console.log(`not so: ${claim}\n${problem}`);
      process.exit(1);
    }
    await pause(1000);
  }
}

async function readiness() {
  const answer = await fetch(`${OPERATOR_URL}/readyz`, { signal: AbortSignal.timeout(5000) });
  const text = await answer.text();
  return answer.ok ? undefined : `/readyz answers ${answer.status}: ${text}`;
}

async function injection() {
  const token = await readFile(TOKEN_FILE, 'utf8');
  const url = `${API_URL}/api/v1/namespaces/${TEST_NAMESPACE}/pods?dryRun=All`;
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify(pod),
    signal: AbortSignal.timeout(10_000),
  });
  const body = await answer.json();
  if (!answer.ok) return `the API server answers ${answer.status}: ${body.message}`;
  const { initContainers = [], containers } = body.spec;
  if ([...initContainers, ...containers].some(({ name }) => name === 'weir')) return undefined;
  const warning = answer.headers.get('warning') ?? 'and no word why';
  return `the API server took the pod and gave it no sidecar, ${warning}. Is ${TEST_NAMESPACE} served by the webhook?`;
}
