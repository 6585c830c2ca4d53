// Events of controllers that could not create pods: the only place where a quota, a limit range or a Pod Security level
// that refuses our container is told.
import type { Change } from '../kube/object-store.ts';
import type { KubeObject, ObjectReference } from '../kube/object.ts';
import type { FailedCreate } from '../policy/failed-creation.ts';
import { eventResource } from '../runtime/events.ts';
import type { ClusterWatch } from './cluster-watch.ts';

interface EventObject extends KubeObject {
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: ObjectReference;
}

export class FailedCreations {
  readonly #listeners = new Set<(event: FailedCreate) => void>();

  /** Before the watch is started. `namespaces` empty = all. */
  constructor(watch: Pick<ClusterWatch, 'add'>, namespaces: readonly string[]) {
    watch.add<EventObject>({
      options: {
        resource: eventResource,
        fieldSelector: 'reason=FailedCreate',
        ...(namespaces.length === 0 ? {} : { namespaces }),
        transform: ({ metadata, reason, note, regarding }) => ({
          metadata,
          ...(reason === undefined ? {} : { reason }),
          ...(note === undefined ? {} : { note }),
          ...(regarding === undefined ? {} : { regarding }),
        }),
      },
      onChange: (change) => {
        this.#tell(change);
      },
    });
  }

  onFailure(listener: (event: FailedCreate) => void): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  #tell({ after }: Change<EventObject>): void {
    const { reason = '', note = '', regarding } = after ?? {};
    if (regarding === undefined) return;
    for (const listener of this.#listeners) listener({ reason, note, regarding });
  }
}
