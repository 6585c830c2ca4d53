// Keeps our authority in the webhook's configuration. Written with a JSON Patch that first tests the entry's name: an
// applied (server-side apply) entry would be co-owned, and a chart that later drops or renames it could not be upgraded.
import { Buffer } from 'node:buffer';
import type { ApiFailure, JsonPatchOperation, KubeApi } from '../kube/api.ts';
import type { KubeObject, Resource } from '../kube/object.ts';

export interface WebhookList extends KubeObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig: { readonly caBundle?: string };
  }[];
}

/** What has to be written so that every entry trusts `trust` (PEM); empty = nothing. */
export function planCaBundle(
  { webhooks = [] }: WebhookList,
  trust: string,
): readonly JsonPatchOperation[] {
  const caBundle = Buffer.from(trust).toString('base64');
  return webhooks.flatMap(({ name, clientConfig }, index) =>
    clientConfig.caBundle === caBundle
      ? []
      : [
          { op: 'test', path: `/webhooks/${index}/name`, value: name },
          { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle },
        ],
  );
}

export type CaBundleOutcome = 'kept' | 'written' | 'absent';

export interface CaBundleOptions {
  readonly api: Pick<KubeApi, 'get' | 'jsonPatch'>;
  /** MutatingWebhookConfigurations. */
  readonly resource: Resource;
  readonly name: string;
  /** PEM text. */
  readonly trust: string;
  readonly signal: AbortSignal;
}

/** Somebody else changes the list at the same time; more often than this is no coincidence. */
const ATTEMPTS = 5;

/** `absent`: there is no such configuration, and we never create one. Throws ApiFailure. */
export async function keepCaBundle(options: CaBundleOptions): Promise<CaBundleOutcome> {
  const { api, resource, name, trust, signal } = options;
  for (let attempt = 1; ; attempt += 1) {
    const found = await api.get<WebhookList>(resource, { name }, signal).catch(absentWhenMissing);
    if (found === undefined) return 'absent';
    const operations = planCaBundle(found, trust);
    if (operations.length === 0) return 'kept';
    try {
      await api.jsonPatch<WebhookList>(resource, { name }, { operations, signal });
      return 'written';
    } catch (error) {
      // The list was changed since it was read: an entry is not where it was.
      const isStale = hasCode(error, UNPROCESSABLE) || hasCode(error, CONFLICT);
      if (!isStale || attempt === ATTEMPTS) throw error;
    }
  }
}

const NOT_FOUND = 404;
const CONFLICT = 409;
const UNPROCESSABLE = 422;

function absentWhenMissing(error: unknown): undefined {
  if (hasCode(error, NOT_FOUND)) return undefined;
  throw error;
}

function hasCode(error: unknown, code: ApiFailure['code']): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
