// The API server's promise about one Lease, kept in memory: versions, conflicts, and calls that a test lets through or
// fails when it likes.
import { once } from 'node:events';
import { ApiError } from '../../operator/kube/api-error.ts';
import type { KubeApi } from '../../operator/kube/api.ts';
import type { KubeObject } from '../../operator/kube/object.ts';

type LeaseCalls = Pick<KubeApi, 'get' | 'create' | 'replace'>;

/** Before a call reaches the server, or after it did and before its answer is back: may take its time, or throw. */
export type Passage = (where: 'before' | 'after', signal: AbortSignal) => Promise<void>;

export class LeaseApi {
  #lease: KubeObject | undefined;
  #version = 0;
  /** Successful writes. */
  writes = 0;

  get lease(): KubeObject | undefined {
    return this.#lease;
  }

  /** How one client sees it. */
  through(pass: Passage = () => Promise.resolve()): LeaseCalls {
    // A caller that gives up hears nothing more; its request may reach the server all the same.
    const call = async (work: () => KubeObject, signal: AbortSignal): Promise<KubeObject> => {
      signal.throwIfAborted();
      const travel = async (): Promise<KubeObject> => {
        await pass('before', signal);
        const answer = structuredClone(work());
        await pass('after', signal);
        return answer;
      };
      return Promise.race([travel(), rejectedBy(signal)]);
    };
    // The fake keeps what it is given: the caller's type.
    const typed = async <Type>(work: () => KubeObject, signal: AbortSignal): Promise<Type> =>
      (await call(work, signal)) as Type;
    return {
      get: (_resource, _name, signal) => typed(() => this.#read(), signal),
      create: (_resource, object, signal) => typed(() => this.#create(object), signal),
      replace: (_resource, object, signal) => typed(() => this.#replace(object), signal),
    };
  }

  #read(): KubeObject {
    if (this.#lease === undefined) throw refusal(404);
    return this.#lease;
  }

  #create(object: KubeObject): KubeObject {
    if (this.#lease !== undefined) throw refusal(409);
    return this.#store(object);
  }

  #replace(object: KubeObject): KubeObject {
    const { resourceVersion } = this.#read().metadata;
    if (object.metadata.resourceVersion !== resourceVersion) throw refusal(409);
    return this.#store(object);
  }

  #store(object: KubeObject): KubeObject {
    this.#version += 1;
    this.writes += 1;
    const metadata = { ...object.metadata, resourceVersion: String(this.#version) };
    this.#lease = structuredClone({ ...object, metadata });
    return this.#lease;
  }
}

async function rejectedBy(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort');
  throw signal.reason;
}

function refusal(code: number): ApiError {
  const request = { method: 'GET', path: '/lease' };
  return new ApiError(request, { code, reason: '' }, { message: `it is ${code}` });
}
