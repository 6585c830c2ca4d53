import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import type { KubeCollections } from '../../operator/kube/collection.ts';
import type { Change } from '../../operator/kube/object-store.ts';
import { openReflectorMetrics } from '../../operator/kube/reflector-metrics.ts';
import { Reflector, type ReflectorOptions } from '../../operator/kube/reflector.ts';
import { silentLog } from '../../operator/log.ts';
import {
  ApiServerStandIn,
  configMaps,
  type ConfigMap,
  type Misbehaviour,
} from '../support/api-server.ts';
import { eventually } from '../support/redis.ts';
import { settle, SteppedClock } from '../support/stepped-clock.ts';

interface Fixture extends AsyncDisposable {
  readonly server: ApiServerStandIn;
  readonly reflector: Reflector<ConfigMap>;
  readonly clock: SteppedClock;
  readonly changes: Change<ConfigMap>[];
  readonly registry: prometheus.Registry;
}

const expired: Misbehaviour = { kind: 'status', code: 410 };
const expiredInStream: Misbehaviour = {
  kind: 'bytes',
  text: '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n',
};

/** Nothing is started yet: the test fills the server and its scripts first. */
async function open(options: Partial<ReflectorOptions<ConfigMap>> = {}): Promise<Fixture> {
  const server = await ApiServerStandIn.open();
  const client = server.client();
  const clock = new SteppedClock();
  const changes: Change<ConfigMap>[] = [];
  const registry = new prometheus.Registry();
  const reflector = new Reflector<ConfigMap>(contextOf({ client, clock, registry }), {
    resource: configMaps,
    ...options,
  });
  reflector.onChange((change) => changes.push(change));
  return {
    server,
    reflector,
    clock,
    changes,
    registry,
    [Symbol.asyncDispose]: async () => {
      await reflector[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function contextOf(parts: {
  readonly client: KubeCollections;
  readonly clock: SteppedClock;
  readonly registry: prometheus.Registry;
}): ConstructorParameters<typeof Reflector>[0] {
  return {
    collections: parts.client,
    clock: parts.clock,
    random: () => 0.5,
    log: silentLog(),
    metrics: openReflectorMetrics(parts.registry),
  };
}

const valueOf = (reflector: Reflector<ConfigMap>, key: string): string | undefined =>
  reflector.store.get(key)?.data?.['value'];

const watching = (server: ApiServerStandIn, watches = 1): Promise<void> =>
  eventually('a watch is open', async () => server.openWatches === watches);

/** Moves to the next timer again and again until it is so: what waits goes on, at its own time. */
async function moveUntil(clock: SteppedClock, what: string, isSo: () => boolean): Promise<void> {
  await eventually(what, async () => {
    if (isSo()) return true;
    const { nextInMs } = clock;
    if (nextInMs !== undefined && nextInMs <= 120_000) await clock.advance(nextInMs);
    await settle();
    return isSo();
  });
}

describe('a reflector', () => {
  it('lists page by page, then tells what the watch says, once and in order', async () => {
    await using fixture = await open();
    const { server, reflector, changes } = fixture;
    for (let item = 0; item < 1201; item += 1) server.put('a', `item-${item}`, 'first');

    reflector.start();
    await reflector.synced(AbortSignal.timeout(10_000));
    await watching(server);
    server.put('a', 'item-7', 'second');
    server.put('a', 'more', 'first');
    server.remove('a', 'item-8');
    await eventually('the changes are told', async () => changes.length === 1204);

    assert.equal(reflector.store.size, 1201);
    assert.equal(server.count('list'), 3);
    assert.deepEqual(
      changes
        .slice(-3)
        .map(({ key, before, after }) => [key, before?.data?.['value'], after?.data?.['value']]),
      [
        ['a/item-7', 'first', 'second'],
        ['a/more', undefined, 'first'],
        ['a/item-8', 'gone', undefined],
      ],
    );
    assert.equal(reflector.problem, undefined);
  });

  it('holds objects that know their kind and lost managedFields, from list and watch', async () => {
    await using fixture = await open();
    const { server, reflector, changes } = fixture;
    server.put('a', 'listed', 'x');

    reflector.start();
    await watching(server);
    server.put('a', 'watched', 'x');
    await eventually('both are told', async () => changes.length === 2);

    for (const object of reflector.store.list()) {
      assert.equal(object.kind, 'ConfigMap');
      assert.equal(object.apiVersion, 'v1');
      assert.equal('managedFields' in object.metadata, false);
    }
  });

  it('asks bookmarks and a timeout of 240 to 480 s, and resumes from the last bookmark', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    server.put('a', 'one', 'x');
    reflector.start();
    await watching(server);
    server.bookmark();
    await settle();

    server.endWatches();
    await moveUntil(clock, 'it watches again', () => server.count('watch') === 2);

    const [first, second] = server.requests.filter(({ kind }) => kind === 'watch');
    assert.equal(first?.url.searchParams.get('allowWatchBookmarks'), 'true');
    assert.equal(first.url.searchParams.get('timeoutSeconds'), '360');
    assert.equal(first.url.searchParams.get('resourceVersion'), '101');
    assert.equal(second?.url.searchParams.get('resourceVersion'), '102');
    assert.equal(server.count('list'), 1);
  });

  it('watches again at once when the watch lived two minutes, and waits when it lived less', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    reflector.start();
    await watching(server);

    await clock.advance(120_000);
    server.endWatches();
    await eventually('it watches again', async () => server.count('watch') === 2);
    await watching(server);
    await clock.advance(119_999);
    server.endWatches();
    await eventually('it waits', async () => clock.timers === 1 && server.openWatches === 0);

    assert.equal(server.count('watch'), 2);
    assert.equal(clock.nextInMs, 1200);
  });

  for (const [how, answer] of [
    ['in the status', expired],
    ['in the stream', expiredInStream],
  ] as const) {
    it(`lists anew after 410 ${how}, and tells what it missed with tombstones`, async () => {
      await using fixture = await open();
      const { server, reflector, clock, changes } = fixture;
      server.put('a', 'kept', 'x');
      server.put('a', 'changed', 'x');
      server.put('a', 'deleted', 'last');
      reflector.start();
      await watching(server);
      server.watchScript.push(answer);
      server.cutWatches();
      await eventually('the watch is cut', async () => server.openWatches === 0);
      server.put('a', 'changed', 'y');
      server.put('a', 'added', 'x');
      server.remove('a', 'deleted');
      server.compact();
      changes.length = 0;

      await moveUntil(clock, 'it lists anew', () => server.count('list') === 2);
      await watching(server);

      assert.deepEqual(
        changes.map(({ key, before, after }) => [
          key,
          before?.data?.['value'],
          after?.data?.['value'],
        ]),
        [
          ['a/deleted', 'last', undefined],
          ['a/changed', 'x', 'y'],
          ['a/added', undefined, 'x'],
        ],
      );
    });

    it(`is no tight loop when every watch ends with 410 ${how}`, async () => {
      await using fixture = await open();
      const { server, reflector, clock } = fixture;
      server.watchScript.push(...Array.from({ length: 200 }, () => answer));
      reflector.start();
      const startMs = clock.nowMs();

      await moveUntil(clock, 'ten minutes passed', () => clock.nowMs() - startMs > 600_000);

      // Waits of 1.2, 2.4, 4.8, 9.6, 19.2 s and then 22.5 s each: 25 + 5 in ten minutes, and the first.
      assert.ok(server.count('list') <= 32, `${server.count('list')} lists`);
      assert.ok(server.count('watch') <= 32, `${server.count('watch')} watches`);
    });
  }

  it('is no tight loop when every watch is closed at once', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    const closed: Misbehaviour = { kind: 'bytes', text: '' };
    server.watchScript.push(...Array.from({ length: 200 }, () => closed));
    reflector.start();
    const startMs = clock.nowMs();

    await moveUntil(clock, 'ten minutes passed', () => clock.nowMs() - startMs > 600_000);

    assert.ok(server.count('watch') <= 32, `${server.count('watch')} watches`);
    assert.equal(server.count('list'), 1);
  });

  it('waits as long as a 429 says, on lists and watches', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    const throttled: Misbehaviour = { kind: 'status', code: 429, headers: { 'retry-after': '17' } };
    server.listScript.push(throttled);
    server.watchScript.push(throttled);

    reflector.start();
    await eventually('it waits', async () => clock.timers === 1);
    assert.equal(clock.nextInMs, 17_000);
    await clock.advance(17_000);
    await eventually('the watch waits', async () => server.count('watch') === 1);
    await eventually('it waits', async () => clock.timers === 1);

    assert.equal(clock.nextInMs, 17_000);
    assert.equal(server.count('list'), 2);
  });

  it('aborts a watch that is silent longer than its timeout and 30 s, and resumes it', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    server.put('a', 'one', 'x');
    server.watchScript.push({ kind: 'silence' });
    reflector.start();
    await eventually('the alarm is set', async () => clock.timers === 1);

    await clock.advance(389_999);
    assert.equal(server.openWatches, 1);
    server.put('a', 'meanwhile', 'x');
    await clock.advance(1);
    await eventually('the watch is gone', async () => server.openWatches === 0);
    await moveUntil(clock, 'it watches again', () => reflector.store.size === 2);

    assert.equal(server.count('list'), 1);
    assert.equal(server.mostWatches, 1);
  });

  it('is unhealthy only when nothing at all came for three timeouts', async () => {
    await using fixture = await open();
    const { reflector, clock } = fixture;

    await clock.advance(3 * 480_000);
    assert.equal(reflector.isHealthy, true);
    await clock.advance(1);

    assert.equal(reflector.isHealthy, false);
    assert.equal(reflector.lastEventAgeMs, 3 * 480_000 + 1);
  });

  for (const [what, misbehaviour] of [
    ['a line that is no JSON', { kind: 'bytes', text: '{"type":\n' }],
    ['an object without a name', { kind: 'bytes', text: '{"type":"ADDED","object":{}}\n' }],
    [
      'a Status that is no 410',
      { kind: 'bytes', text: '{"type":"ERROR","object":{"code":500,"message":"odd"}}\n' },
    ],
  ] as const) {
    it(`lists anew after ${what} in the stream`, async () => {
      await using fixture = await open();
      const { server, reflector, clock } = fixture;
      server.watchScript.push(misbehaviour);
      reflector.start();

      await moveUntil(clock, 'it lists anew', () => server.count('list') === 2);
      await watching(server);
      server.put('a', 'one', 'x');

      await eventually('it goes on', async () => reflector.store.size === 1);
    });
  }

  it('resumes without a list after resets, in the middle of a line too', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    server.watchScript.push(
      { kind: 'reset', text: '' },
      { kind: 'reset', text: '{"type":"ADDED","object":{"metadata":{"name":"ha' },
      { kind: 'status', code: 503 },
    );
    reflector.start();

    await moveUntil(clock, 'it watches', () => server.count('watch') === 4);
    await watching(server);
    server.put('a', 'one', 'x');
    await eventually('it goes on', async () => reflector.store.size === 1);

    assert.equal(server.count('list'), 1);
  });

  it('keeps what it knows while the server refuses, and says why', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    server.put('a', 'one', 'x');
    reflector.start();
    await watching(server);
    server.listScript.push(
      ...Array.from({ length: 3 }, () => ({ kind: 'status', code: 403 }) as const),
    );
    server.watchScript.push({ kind: 'status', code: 403 });

    server.endWatches();
    await moveUntil(clock, 'it was refused', () => server.count('list') >= 3);

    assert.equal(valueOf(reflector, 'a/one'), 'x');
    assert.match(reflector.problem ?? '', /GET \/api\/v1\/configmaps.*it is 403/);
  });

  it('starts the list again when its token runs out, in one page then', async () => {
    await using fixture = await open();
    const { server, reflector, clock } = fixture;
    for (let item = 0; item < 501; item += 1) server.put('a', `item-${item}`, 'x');
    const release = Promise.withResolvers<undefined>();
    const held = { kind: 'held', release: release.promise.then(() => undefined) } as const;
    // The first page as usual; the second comes after the compaction.
    server.listScript.push({ kind: 'held', release: Promise.resolve() }, held);
    reflector.start();
    await eventually('the second page is asked', async () => server.count('list') === 2);
    server.put('a', 'late', 'x');
    server.compact();
    release.resolve(undefined);

    await moveUntil(clock, 'it has listed', () => reflector.hasSynced);

    assert.equal(reflector.store.size, 502);
    const last = server.requests.filter(({ kind }) => kind === 'list').at(-1);
    assert.equal(last?.url.searchParams.has('limit'), false);
  });

  it('is not stopped by handlers or transforms that throw; other handlers hear all', async () => {
    await using fixture = await open({
      transform: () => {
        throw new Error('a bug');
      },
    });
    const { server, reflector, changes, registry } = fixture;
    reflector.onChange(() => {
      throw new Error('another bug');
    });
    server.put('a', 'one', 'x');

    reflector.start();
    await watching(server);
    server.put('a', 'two', 'x');
    await eventually('both are told', async () => changes.length === 2);

    assert.match(
      await registry.metrics(),
      /weir_reflector_handler_failures_total\{resource="configmaps"\} 4/,
    );
  });

  it('merges one stream for each namespace into one store', async () => {
    await using fixture = await open({ namespaces: ['a', 'b', 'a'] });
    const { server, reflector, clock } = fixture;
    server.put('a', 'one', 'of a');
    server.put('b', 'one', 'of b');
    server.put('c', 'one', 'of c');
    reflector.start();
    await watching(server, 2);
    server.watchScript.push(expired);

    server.cutWatches();
    await moveUntil(clock, 'one lists anew', () => server.count('list') === 3);
    await moveUntil(clock, 'both watch', () => server.openWatches === 2);

    assert.equal(reflector.store.size, 2);
    assert.equal(valueOf(reflector, 'a/one'), 'of a');
    assert.equal(valueOf(reflector, 'b/one'), 'of b');
    assert.equal(valueOf(reflector, 'c/one'), undefined);
  });

  it('tells a late handler what is held already', async () => {
    await using fixture = await open();
    const { server, reflector } = fixture;
    server.put('a', 'one', 'x');
    reflector.start();
    await reflector.synced(AbortSignal.timeout(10_000));
    const keys: string[] = [];

    reflector.onChange(({ key, before }) => {
      assert.equal(before, undefined);
      keys.push(key);
    });

    assert.deepEqual(keys, ['a/one']);
  });

  it('asks for metadata only and keeps nothing else, even when more is sent', async () => {
    await using fixture = await open({ isMetadataOnly: true, labelSelector: 'a=b' });
    const { server, reflector } = fixture;
    server.put('a', 'one', 'x');

    reflector.start();
    await watching(server);

    assert.equal(reflector.store.get('a/one')?.data, undefined);
    for (const { headers, url } of server.requests) {
      assert.match(String(headers['accept']), /as=PartialObjectMetadata/);
      assert.equal(url.searchParams.get('labelSelector'), 'a=b');
    }
  });

  it('stops within a list, a watch and a wait', async () => {
    for (const script of ['list', 'watch', 'wait'] as const) {
      await using fixture = await open();
      const { server, reflector } = fixture;
      const never = Promise.withResolvers<undefined>();
      const held = { kind: 'held', release: never.promise.then(() => undefined) } as const;
      if (script === 'list') server.listScript.push(held);
      if (script === 'wait') server.listScript.push({ kind: 'status', code: 500 });
      reflector.start();
      await eventually('it began', async () => server.requests.length > 0);

      await reflector[Symbol.asyncDispose]();

      assert.equal(fixture.clock.timers, 0);
    }
  });
});
