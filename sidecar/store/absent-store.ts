// Stands where no store was given: every decision is by failure mode. Never levels of this process in its place: each
// pod would admit the whole limit, and nobody would see it.
import type { Store, StoreCall, StoreLane, StoreListener, StoreNode } from './store.ts';

export class AbsentStore implements Store, StoreLane {
  readonly partitions = 1;
  readonly node: StoreNode = { name: 'none' };
  readonly synchronous = false;
  listener: StoreListener | undefined = undefined;

  laneOf(): StoreLane {
    return this;
  }

  decide(call: StoreCall): void {
    call.onFailure('down', 'the operator has given no store');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
