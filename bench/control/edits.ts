// Edits as people make them, one after the other, and how long each takes until every sidecar it is about obeys.
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from '../../test/cluster/api-client.ts';
import { textAt, valueAt } from '../../test/cluster/json-value.ts';
import { GONE, sharedNowMs } from './fleet-message.ts';
import type { Fleet } from './fleet.ts';
import { NAMESPACE, policiesPath, rulesOf, type PolicyPlace } from './population.ts';

/** What does not arrive by then never will. */
const WITHIN_MS = 30_000;
/** Longer than the operator gathers changes: each edit is a push of its own. */
const BETWEEN_MS = 400;

/** For each edit, how long after it was sent it was in force, sidecar by sidecar. */
export type Latencies = readonly (readonly number[])[];

/** Changes the policies in turn, `count` times in all. */
export async function editPolicies(
  { api, fleet }: { readonly api: ApiClient; readonly fleet: Fleet },
  policies: readonly PolicyPlace[],
  count: number,
): Promise<Latencies> {
  const latencies: number[][] = [];
  for (let edit = 0; edit < count; edit += 1) {
    const policy = policies[edit % policies.length];
    if (policy === undefined) throw new Error('there are no policies to edit');
    const sentMs = sharedNowMs();
    // `kubectl apply` sends a merge patch to a custom resource.
    const { status, body } = await api.request('PATCH', pathOf(policy), {
      body: { spec: rulesOf(edit, 2_000 + edit) },
      contentType: 'application/merge-patch+json',
    });
    if (status !== 200)
      throw new Error(`${policy.name} was not edited: ${textAt(body, 'message')}`);
    const key = `${policy.uid} ${String(valueAt(body, 'metadata', 'generation'))}`;
    const times = await fleet.inForce(key, policy.pods, WITHIN_MS);
    latencies.push(times.map((atMs) => atMs - sentMs));
    await delay(BETWEEN_MS);
  }
  return latencies;
}

/** Deletes the policies one after the other. */
export async function deletePolicies(
  { api, fleet }: { readonly api: ApiClient; readonly fleet: Fleet },
  policies: readonly PolicyPlace[],
): Promise<Latencies> {
  const latencies: number[][] = [];
  for (const policy of policies) {
    const sentMs = sharedNowMs();
    const { status, body } = await api.request('DELETE', pathOf(policy));
    if (status !== 200) throw new Error(`${policy.name} stays: ${textAt(body, 'message')}`);
    const times = await fleet.inForce(`${policy.uid} ${GONE}`, policy.pods, WITHIN_MS);
    latencies.push(times.map((atMs) => atMs - sentMs));
    await delay(BETWEEN_MS);
  }
  return latencies;
}

function pathOf({ name }: PolicyPlace): string {
  return `${policiesPath(NAMESPACE)}/${name}`;
}
