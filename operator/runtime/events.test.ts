import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import { settle, SteppedClock } from '../../test/support/stepped-clock.ts';
import { ApiError } from '../kube/api-error.ts';
import type { JsonPatchOperation } from '../kube/api.ts';
import type { KubeObject } from '../kube/object.ts';
import { silentLog } from '../log.ts';
import { EventSeries, type Occurrence } from './event-series.ts';
import { cutNote, openEventRecorder, type EventRecorder } from './events.ts';

const occurrence: Occurrence = {
  regarding: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    namespace: 'shop',
    name: 'Cart',
    uid: 'u',
  },
  type: 'Warning',
  reason: 'Bypassable',
  action: 'CheckServices',
  note: 'the Service cart goes around the sidecar',
};

describe('a series of Events', () => {
  it('writes the first, counts the rest, and begins anew after six quiet minutes', () => {
    const series = new EventSeries();

    assert.deepEqual(series.plan(occurrence, 0), { act: 'create' });
    series.written(occurrence, 'cart.1');
    assert.deepEqual(series.plan(occurrence, 1), { act: 'count', eventName: 'cart.1', count: 2 });
    assert.deepEqual(series.plan(occurrence, 360_001), {
      act: 'count',
      eventName: 'cart.1',
      count: 3,
    });

    assert.deepEqual(series.plan(occurrence, 720_002), { act: 'create' });
  });

  it('holds back the 26th of one object, lets one go in five minutes, and loses no count', () => {
    const series = new EventSeries();
    series.plan(occurrence, 0);
    series.written(occurrence, 'cart.1');
    const acts = (count: number): readonly string[] =>
      Array.from({ length: count }, () => series.plan(occurrence, 0).act);
    assert.deepEqual(new Set(acts(24)), new Set(['count']));

    assert.deepEqual(acts(2), ['hold', 'hold']);
    assert.equal(series.plan(occurrence, 299_999).act, 'hold');
    assert.deepEqual(series.plan(occurrence, 300_000), {
      act: 'count',
      eventName: 'cart.1',
      count: 29,
    });
  });

  it('bounds each object by itself, over all that is said of it', () => {
    const series = new EventSeries();
    const other = { ...occurrence, regarding: { ...occurrence.regarding, name: 'other' } };
    for (let said = 0; said < 25; said += 1) {
      series.plan({ ...occurrence, note: `note ${said}` }, 0);
    }

    assert.equal(series.plan({ ...occurrence, note: 'one more' }, 0).act, 'hold');
    assert.equal(series.plan(other, 0).act, 'create');
  });
});

interface Written {
  readonly created: KubeObject[];
  readonly patched: { readonly name: string; readonly operations: readonly JsonPatchOperation[] }[];
  /** Thrown by the next calls, one each. */
  readonly failures: Error[];
}

function open(): { recorder: EventRecorder; written: Written; clock: SteppedClock } {
  const written: Written = { created: [], patched: [], failures: [] };
  const clock = new SteppedClock();
  const fail = (): void => {
    const failure = written.failures.shift();
    if (failure !== undefined) throw failure;
  };
  const recorder = openEventRecorder({
    api: {
      create: async (_resource, object) => {
        fail();
        written.created.push(object);
        return object;
      },
      jsonPatch: async <Type>(
        _resource: unknown,
        { name }: { name: string },
        { operations }: { operations: readonly JsonPatchOperation[] },
      ) => {
        fail();
        written.patched.push({ name, operations });
        return {} as Type;
      },
    },
    instance: 'weir-operator-0',
    clock,
    random: () => 0.5,
    log: silentLog(),
    metrics: new prometheus.Registry(),
  });
  return { recorder, written, clock };
}

const refusal = (code: number): ApiError =>
  new ApiError({ method: 'POST', path: '/x' }, { code, reason: '' }, { message: 'no' });

describe('the event recorder', () => {
  it('writes what the API wants, and counts up what is said again', async () => {
    const { recorder, written } = open();

    recorder.record(occurrence);
    recorder.record(occurrence);
    await settle();

    assert.deepEqual(written.created, [
      {
        metadata: { namespace: 'shop', name: 'cart.8000000080000000' },
        eventTime: '2026-01-01T00:00:01.000000Z',
        reportingController: 'weir.dev/operator',
        reportingInstance: 'weir-operator-0',
        action: 'CheckServices',
        reason: 'Bypassable',
        type: 'Warning',
        note: occurrence.note,
        regarding: occurrence.regarding,
      },
    ]);
    assert.deepEqual(written.patched, [
      {
        name: 'cart.8000000080000000',
        operations: [
          {
            op: 'add',
            path: '/series',
            value: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' },
          },
        ],
      },
    ]);
    await recorder[Symbol.asyncDispose]();
  });

  it('writes the Event anew when the server has forgotten it', async () => {
    const { recorder, written } = open();
    recorder.record(occurrence);
    await settle();
    written.failures.push(refusal(404));

    recorder.record(occurrence);
    await settle();

    assert.deepEqual([written.created.length, written.patched.length], [2, 0]);
  });

  it('tries again when the server is away, and drops what it refuses', async () => {
    const { recorder, written, clock } = open();
    written.failures.push(refusal(0), refusal(503), refusal(422));
    recorder.record(occurrence);
    recorder.record({ ...occurrence, note: 'another' });

    await clock.advance(1_000);
    assert.equal(written.created.length, 0);
    await clock.advance(2_000);

    // The third attempt was refused for good; the other Event went through.
    assert.equal(written.created.length, 1);
    assert.equal(written.failures.length, 0);
    await recorder[Symbol.asyncDispose]();
  });

  it('writes what is pending when it closes, for three seconds at most, and takes nothing more', async () => {
    const { recorder, written, clock } = open();
    written.failures.push(...Array.from({ length: 9 }, () => refusal(503)));
    recorder.record(occurrence);
    let isClosed = false;

    const closed = recorder[Symbol.asyncDispose]().then(() => {
      isClosed = true;
    });
    recorder.record(occurrence);
    await clock.advance(2_999);
    assert.equal(isClosed, false);
    await clock.advance(1);
    await closed;

    assert.equal(written.created.length, 0);
  });

  it('cuts a note at 1 024 bytes between characters', () => {
    assert.equal(cutNote('x'.repeat(1024)), 'x'.repeat(1024));
    assert.equal(cutNote('x'.repeat(1025)), `${'x'.repeat(1021)}…`);
    assert.equal(cutNote('😀'.repeat(300)), `${'😀'.repeat(255)}…`);
  });
});
