import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import type { KubeApi } from '../kube/api.ts';
import type { KubeObject } from '../kube/object.ts';
import { decodeAckSummary, encodeAckSummary, SUMMARY_BYTES_MAX } from '../policy/ack-summary.ts';
import type { SidecarReport } from '../policy/sidecar-report.ts';
import {
  AckExchange,
  PUBLISH_INTERVAL_MS,
  type AcksObject,
  type LocalReport,
} from './ack-exchange.ts';

const { signal } = new AbortController();

function report(generation: number, rest: Partial<SidecarReport> = {}): SidecarReport {
  return {
    generations: new Map([['u', generation]]),
    refusals: [],
    tooOld: [],
    store: 'up',
    clientIpIsProxy: [],
    ...rest,
  };
}

class Replica {
  readonly clock = new SteppedClock();
  readonly local = new Map<string, LocalReport>();
  readonly applied: AcksObject[] = [];
  readonly changes: (readonly string[])[] = [];
  readonly exchange: AckExchange;

  constructor(name: string) {
    const apply = async <Type extends KubeObject>(_: unknown, object: Type): Promise<Type> => {
      this.applied.push(object);
      return object;
    };
    const api: Pick<KubeApi, 'apply'> = { apply };
    this.exchange = new AckExchange({
      api,
      clock: this.clock,
      namespace: 'weir-system',
      replica: name,
      owner: undefined,
      localOf: (uid) => this.local.get(uid),
      connected: () => [...this.local].filter(([, { connected }]) => connected),
      onChange: (pods) => this.changes.push([...pods]),
    });
  }

  hear(uid: string, generation: number, connected = true): void {
    this.local.set(uid, { ...report(generation), connected });
  }

  generationOf(uid: string): number | undefined {
    return this.exchange.reportOf(uid)?.generations.get('u');
  }
}

describe('replicas', () => {
  it('tell each other what their sidecars run', async () => {
    const [a, b] = [new Replica('a'), new Replica('b')];
    a.hear('pod-1', 7);

    await a.exchange.publish(signal);
    b.exchange.apply('weir-system/weir-acks-a', a.applied[0]);

    assert.deepEqual([b.generationOf('pod-1'), b.changes], [7, [['pod-1']]]);
    assert.equal(a.applied[0]?.metadata.name, 'weir-acks-a');
  });

  it('believe a live stream of their own, then one elsewhere, then what they remember', () => {
    const b = new Replica('b');
    const data = { acks: encodeAckSummary([['pod-1', report(7)]]) };
    const object = { metadata: { labels: { 'weir.dev/acks-of': 'a' } }, data };
    const generations: (number | undefined)[] = [];
    b.hear('pod-1', 8);
    b.exchange.apply('k', object);
    generations.push(b.generationOf('pod-1'));
    b.hear('pod-1', 8, false);
    generations.push(b.generationOf('pod-1'));
    b.exchange.apply('k', undefined);
    generations.push(b.generationOf('pod-1'));

    assert.deepEqual(generations, [8, 7, 8]);
  });

  it('write only what changed, and not faster than they are read', async () => {
    const a = new Replica('a');
    a.hear('pod-1', 1);
    await a.exchange.publish(signal);
    const same = await a.exchange.publish(signal);
    a.hear('pod-1', 2);
    await a.clock.advance(PUBLISH_INTERVAL_MS - 1);
    const early = await a.exchange.publish(signal);
    await a.clock.advance(1);
    await a.exchange.publish(signal);

    assert.deepEqual([same, early, a.applied.length], [undefined, { requeueAfterMs: 1 }, 2]);
  });

  it('do not read their own, nor what is not theirs', () => {
    const a = new Replica('a');
    const data = { acks: encodeAckSummary([['pod-1', report(7)]]) };

    a.exchange.apply('k', { metadata: { labels: { 'weir.dev/acks-of': 'a' } }, data });
    a.exchange.apply('x', { metadata: {}, data: { acks: '{"format":2}' } });

    assert.deepEqual([a.generationOf('pod-1'), a.changes], [undefined, []]);
  });
});

describe('a summary', () => {
  it('gives back every report, and the same text for the same reports', () => {
    const refusals = [
      { uid: 'u', generation: 1, path: 'spec', code: 'Invalid', message: 'm' },
    ] as const;
    const reports: [string, SidecarReport][] = [
      ['b', report(2, { refusals, store: 'down', clientIpIsProxy: ['shop/one/all'] })],
      ['a', report(1, { tooOld: [{ uid: 'u', generation: 1, features: ['ports'] }] })],
    ];

    const text = encodeAckSummary(reports);

    assert.deepEqual(decodeAckSummary(text), new Map(reports));
    assert.equal(encodeAckSummary(reports.toReversed()), text);
  });

  it('stays within its bound, and says how many found no room', () => {
    const long = 'x'.repeat(SUMMARY_BYTES_MAX / 10);
    const reports = Array.from({ length: 12 }, (_, index): [string, SidecarReport] => [
      `pod-${String(index).padStart(2, '0')}`,
      report(index, { clientIpIsProxy: [long] }),
    ]);

    const text = encodeAckSummary(reports);

    assert.ok(Buffer.byteLength(text) <= SUMMARY_BYTES_MAX);
    assert.equal(decodeAckSummary(text)?.size, 9);
    assert.match(text, /"left":3\}$/);
  });
});
