// What a reflector asks of the API server: pages of a list, and the bytes of a watch.
import type { KubeObject, Resource } from './object.ts';

/** Which objects of a resource are meant. */
export interface Collection {
  readonly resource: Resource;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Asks the server for metadata only; objects then hold nothing else. */
  readonly isMetadataOnly?: boolean;
}

export interface ListPage<Type extends KubeObject> {
  readonly resourceVersion: string;
  /** Absent on the last page. */
  readonly continueToken?: string;
  readonly items: readonly Type[];
}

export interface PageRequest {
  /** Absent: everything in one answer. */
  readonly limit?: number;
  readonly continueToken?: string;
}

export interface WatchRequest {
  readonly resourceVersion: string;
  readonly timeoutSeconds: number;
}

export interface KubeCollections {
  /** Throws ApiFailure; code 410 when the continue token is too old. */
  listPage<Type extends KubeObject>(
    collection: Collection,
    page: PageRequest,
    signal: AbortSignal,
  ): Promise<ListPage<Type>>;
  /**
   * Resolves with the body once the server has accepted the watch; throws ApiFailure when it has not, and from the
   * body when the connection breaks. Aborting the signal ends both.
   */
  openWatch(
    collection: Collection,
    from: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>>;
}
