// The API server's promise about Secrets, kept in memory: versions, conflicts, and who came first.
import { ApiError } from '../../operator/kube/api-error.ts';
import type { KubeApi } from '../../operator/kube/api.ts';
import type { KubeObject } from '../../operator/kube/object.ts';

export class SecretApi {
  #secret: KubeObject | undefined;
  #version = 0;
  writes = 0;

  get secret(): KubeObject | undefined {
    return this.#secret;
  }

  set secret(secret: KubeObject | undefined) {
    this.#secret = secret === undefined ? undefined : this.#versioned(secret);
  }

  get calls(): Pick<KubeApi, 'get' | 'create' | 'replace'> {
    const api = {
      get: async () => structuredClone(this.#found()),
      create: async (_resource: unknown, secret: KubeObject) => {
        // Another replica may come in between.
        await Promise.resolve();
        if (this.#secret !== undefined) throw failure(409, 'AlreadyExists');
        return this.#write(secret);
      },
      replace: async (_resource: unknown, secret: KubeObject) => {
        const { resourceVersion } = this.#found().metadata;
        if (secret.metadata.resourceVersion !== resourceVersion) throw failure(409, 'Conflict');
        return this.#write(secret);
      },
    };
    // There is one kind of object here, and the callers ask for no other.
    return api as unknown as Pick<KubeApi, 'get' | 'create' | 'replace'>;
  }

  #found(): KubeObject {
    if (this.#secret === undefined) throw failure(404, 'NotFound');
    return this.#secret;
  }

  #write(secret: KubeObject): KubeObject {
    this.writes += 1;
    this.#secret = this.#versioned(secret);
    return structuredClone(this.#secret);
  }

  #versioned(secret: KubeObject): KubeObject {
    this.#version += 1;
    const metadata = { ...secret.metadata, resourceVersion: String(this.#version) };
    return structuredClone({ ...secret, metadata });
  }
}

function failure(code: number, reason: string): ApiError {
  return new ApiError({ method: 'GET', path: '/secrets' }, { code, reason }, { message: reason });
}
