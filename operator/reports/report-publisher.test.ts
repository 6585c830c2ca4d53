import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import type { KubeApi } from '../kube/api.ts';
import { failureOf } from '../kube/api-error.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { silentLog } from '../log.ts';
import { SidecarRegistry } from '../stream/sidecar-registry.ts';
import { decodeReports } from './report-codec.ts';
import {
  PUBLISH_EVERY_MS,
  ReportPublisher,
  REPORTS_KEY,
  type ConfigMap,
} from './report-publisher.ts';

const OWNER = { apiVersion: 'v1', kind: 'Pod', name: 'weir-1', uid: 'u' };

/** Takes what is applied and deleted; fails while it is told to. */
class Outlet implements Pick<KubeApi, 'apply' | 'delete'> {
  readonly written: ConfigMap[] = [];
  deleted = 0;
  failure: number | undefined;

  apply<Type extends KubeObject>(_resource: Resource, object: Type): Promise<Type> {
    if (this.failure !== undefined) return Promise.reject(this.#failed(this.failure));
    this.written.push(object);
    return Promise.resolve(object);
  }

  delete(): Promise<void> {
    this.deleted += 1;
    return this.failure === undefined
      ? Promise.resolve()
      : Promise.reject(this.#failed(this.failure));
  }

  get pods(): readonly (readonly string[])[] {
    return this.written.map(({ binaryData }) => {
      const reports = decodeReports(Buffer.from(binaryData?.[REPORTS_KEY] ?? '', 'base64'));
      return [...(reports ?? [])].map(([pod]) => pod);
    });
  }

  #failed(code: number): Error {
    return failureOf({ method: 'PATCH', path: '/' }, { code, body: '' });
  }
}

interface Scene extends AsyncDisposable {
  readonly clock: SteppedClock;
  readonly outlet: Outlet;
  readonly registry: SidecarRegistry;
  readonly publisher: ReportPublisher;
}

function open({ isInPod = true } = {}): Scene {
  const clock = new SteppedClock();
  const outlet = new Outlet();
  const registry = new SidecarRegistry(() => clock.nowMs());
  const publisher = new ReportPublisher({
    ...{ api: outlet, registry, clock, log: silentLog(), owner: isInPod ? OWNER : undefined },
    ...{ namespace: 'weir-system', name: 'weir-reports-weir-1' },
  });
  return {
    ...{ clock, outlet, registry, publisher },
    [Symbol.asyncDispose]: () => publisher[Symbol.asyncDispose](),
  };
}

function connect(registry: SidecarRegistry, name: string): void {
  const hello = {
    type: 'hello',
    protocol: 1,
    pod: { namespace: 'shop', name, uid: name },
    sidecar: { version: '1', formats: [1] },
    have: { version: 'v0', sources: [], origin: 'stream' },
  } as const;
  registry.report(name, { namespace: 'shop', name }, { kind: 'hello', hello });
}

describe('the reports of a replica', () => {
  it('are written once an interval, with all that was said in it, and owned by its pod', async () => {
    await using scene = open();
    connect(scene.registry, 'a');
    connect(scene.registry, 'b');
    await scene.clock.advance(PUBLISH_EVERY_MS - 1);
    const early = scene.outlet.written.length;

    await scene.clock.advance(1);

    assert.deepEqual([early, scene.outlet.pods], [0, [['a', 'b']]]);
    const metadata = scene.outlet.written[0]?.metadata;
    assert.ok(metadata);
    assert.deepEqual(metadata.labels, { 'weir.dev/reports': 'true' });
    assert.deepEqual(metadata.ownerReferences, [OWNER]);
  });

  it('are not written again without news', async () => {
    await using scene = open();
    connect(scene.registry, 'a');
    await scene.clock.advance(PUBLISH_EVERY_MS);

    connect(scene.registry, 'a');
    await scene.clock.advance(2 * PUBLISH_EVERY_MS);

    assert.deepEqual(scene.outlet.pods, [['a']]);
  });

  it('are tried again when they could not be written, with what is news then', async () => {
    await using scene = open();
    scene.outlet.failure = 503;
    await scene.clock.advance(PUBLISH_EVERY_MS);
    connect(scene.registry, 'a');
    scene.outlet.failure = undefined;

    await scene.clock.advance(PUBLISH_EVERY_MS);

    assert.deepEqual(scene.outlet.pods, [['a']]);
  });

  it('have no owner outside of a pod', async () => {
    await using scene = open({ isInPod: false });

    await scene.clock.advance(PUBLISH_EVERY_MS);

    assert.deepEqual(
      scene.outlet.written.map(({ metadata }) => metadata.ownerReferences),
      [undefined],
    );
  });

  it('are taken away at the end, and nothing is written after it', async () => {
    for (const failure of [undefined, 404, 503]) {
      const scene = open();
      scene.outlet.failure = failure;
      connect(scene.registry, 'a');

      await scene.publisher[Symbol.asyncDispose]();
      connect(scene.registry, 'b');
      await scene.clock.advance(2 * PUBLISH_EVERY_MS);

      assert.deepEqual([scene.outlet.deleted, scene.outlet.written], [1, []]);
    }
  });
});
