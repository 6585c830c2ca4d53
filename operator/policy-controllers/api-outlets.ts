// The outlets at the API server: server-side apply of statuses, evictions.
import { PLURAL } from '../../crds/crd.ts';
import { API_GROUP, API_VERSION, KIND } from '../../crds/policy.ts';
import { isApiError } from '../kube/api-error.ts';
import type { KubeApi } from '../kube/api.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import type { PolicyStatus } from '../policy/policy-status.ts';
import type { Evictor, StatusWriter } from './outlets.ts';

export const policyResource: Resource = {
  group: API_GROUP,
  version: API_VERSION,
  plural: PLURAL,
  kind: KIND,
  isNamespaced: true,
  isCustom: true,
};

interface PolicyWithStatus extends KubeObject {
  readonly status: PolicyStatus;
}

/** Not there any more, or another one of that name. */
const GONE: ReadonlySet<number> = new Set([404, 409]);

export function openStatusWriter(api: Pick<KubeApi, 'apply'>): StatusWriter {
  return {
    async write({ namespace, name, uid }, status, signal) {
      const object: PolicyWithStatus = {
        apiVersion: `${API_GROUP}/${API_VERSION}`,
        kind: KIND,
        // With the uid, the status of a deleted policy is never written on one that took its name.
        metadata: { namespace, name, uid },
        status,
      };
      try {
        await api.apply(policyResource, object, { subresource: 'status', signal });
      } catch (error) {
        if (!isApiError(error) || !GONE.has(error.code)) throw error;
      }
    },
  };
}

/** 429 = a PodDisruptionBudget does not allow it now. */
const NOT_NOW: ReadonlySet<number> = new Set([404, 409, 429]);

export function openEvictor(api: Pick<KubeApi, 'post'>): Evictor {
  return {
    async evict({ namespace, name, uid }, signal) {
      const body = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace, name },
        deleteOptions: { preconditions: { uid } },
      };
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
      try {
        await api.post(path, body, signal);
        return true;
      } catch (error) {
        if (isApiError(error) && NOT_NOW.has(error.code)) return false;
        throw error;
      }
    },
  };
}
