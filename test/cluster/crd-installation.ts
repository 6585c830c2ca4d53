import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { eventually } from '../support/redis.ts';
import type { ApiClient } from './api-client.ts';
import { listAt, textAt, valueAt } from './json-value.ts';

const FOLDER = new URL('../../crds/generated/', import.meta.url);
const COLLECTION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** The API server takes about a second to serve a new kind. */
const ESTABLISH_TIMEOUT_MS = 30_000;

/** Applies every generated CRD and waits until its kind is served. Rejects with the API server's refusal. */
export async function installCrds(api: ApiClient): Promise<void> {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));
  for (const file of files) {
    const crd: unknown = parse(readFileSync(new URL(file, FOLDER), 'utf8'));
    await installCrd(api, crd);
  }
}

async function installCrd(api: ApiClient, crd: unknown): Promise<void> {
  const url = `${COLLECTION}/${textAt(crd, 'metadata', 'name')}`;
  const { status, body } = await api.request('PATCH', `${url}?fieldManager=weir-test&force=true`, {
    body: crd,
    contentType: 'application/apply-patch+yaml',
  });
  if (status >= 300) throw new Error(`the CRD was refused: ${textAt(body, 'message')}`);
  await eventually(
    `${url} is established`,
    async () => {
      const { body: found } = await api.request('GET', url);
      return listAt(found, 'status', 'conditions').some(
        (condition) =>
          valueAt(condition, 'type') === 'Established' && valueAt(condition, 'status') === 'True',
      );
    },
    ESTABLISH_TIMEOUT_MS,
  );
  await eventually('its kind is served', async () => isServed(api, crd), ESTABLISH_TIMEOUT_MS);
}

async function isServed(api: ApiClient, crd: unknown): Promise<boolean> {
  const group = textAt(crd, 'spec', 'group');
  const version = textAt(crd, 'spec', 'versions', 0, 'name');
  const plural = textAt(crd, 'spec', 'names', 'plural');
  const { status } = await api.request('GET', `/apis/${group}/${version}/${plural}?limit=1`);
  return status === 200;
}
