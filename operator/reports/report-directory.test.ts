import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { SidecarReport } from '../policy/sidecar-report.ts';
import { SidecarRegistry } from '../stream/sidecar-registry.ts';
import { decodeReports, encodeReports, type PeerReport } from './report-codec.ts';
import { ReportDirectory } from './report-directory.ts';

const REPORT: SidecarReport = {
  generations: new Map([['p1', 3]]),
  refusals: [],
  tooOld: [],
  store: 'up',
  clientIpIsProxy: [],
};

function peer(generation: number, isConnected = true): Map<string, PeerReport> {
  const report = { ...REPORT, generations: new Map([['p1', generation]]) };
  return new Map([['pod', { isConnected, report }]]);
}

function generationIn(directory: ReportDirectory): number | undefined {
  return directory.reportOf('pod')?.generations.get('p1');
}

function directoryWith(own?: { readonly connected: boolean }): ReportDirectory {
  const registry = new SidecarRegistry(() => 0);
  if (own !== undefined) {
    const hello = {
      type: 'hello',
      protocol: 1,
      pod: { namespace: 'shop', name: 'api-1', uid: 'pod' },
      sidecar: { version: 'own', formats: [1] },
      have: { version: 'v0', sources: [{ uid: 'p1', generation: 1 }], origin: 'stream' },
    } as const;
    registry.report('pod', { namespace: 'shop', name: 'api-1' }, { kind: 'hello', hello });
    if (!own.connected) registry.disconnect('pod');
  }
  return new ReportDirectory((uid) => registry.get(uid));
}

describe('what is known of a sidecar', () => {
  it('is nothing when nobody heard of it', () => {
    assert.equal(directoryWith().reportOf('pod'), undefined);
  });

  it('comes from the replica it is connected to', () => {
    const directory = directoryWith({ connected: false });
    directory.setPeer('peer-1', peer(2, false));
    directory.setPeer('peer-2', peer(3));

    assert.equal(generationIn(directory), 3);
  });

  it('is known first-hand while it is connected here', () => {
    const directory = directoryWith({ connected: true });
    directory.setPeer('peer', peer(3));

    assert.equal(generationIn(directory), 1);
  });

  it('is the last word of one that nobody is connected to', () => {
    const directory = directoryWith();
    directory.setPeer('peer', peer(2, false));

    assert.equal(generationIn(directory), 2);
    directory.setPeer('peer', undefined);
    assert.equal(directory.reportOf('pod'), undefined);
  });

  it('changes for the pods of which a peer says something else', () => {
    const directory = directoryWith();
    const [said, news] = [peer(1).get('pod'), peer(2).get('pod')];
    assert.ok(said && news);
    directory.setPeer(
      'peer',
      new Map([
        ['a', said],
        ['b', said],
        ['c', said],
      ]),
    );

    const changed = directory.setPeer(
      'peer',
      new Map([
        ['a', { ...said }],
        ['b', news],
        ['d', said],
      ]),
    );

    assert.deepEqual(changed.toSorted(), ['b', 'c', 'd']);
  });
});

describe('reports on their way to another replica', () => {
  const report: fc.Arbitrary<PeerReport> = fc.record({
    isConnected: fc.boolean(),
    report: fc.record({
      generations: fc
        .array(fc.tuple(fc.uuid(), fc.nat()), { maxLength: 3 })
        .map((pairs) => new Map(pairs)),
      refusals: fc.constantFrom(
        [],
        [{ uid: 'p', generation: 2, path: 'spec', code: 'Invalid' as const, message: 'äöü' }],
      ),
      tooOld: fc.constantFrom([], [{ uid: 'p9', generation: 1, features: ['ports'] }]),
      store: fc.constantFrom('up' as const, 'down' as const, undefined),
      clientIpIsProxy: fc.constantFrom([], ['shop/api/rule']),
    }),
  });
  const reports = fc
    .array(fc.tuple(fc.uuid(), report), { maxLength: 20 })
    .map((pairs) => new Map(pairs));

  it('arrive as they were', () => {
    fc.assert(
      fc.property(reports, (given) => {
        assert.deepEqual(sorted(decodeReports(encodeReports(given))), sorted(given));
      }),
    );
  });

  it('are the same bytes in any order', () => {
    fc.assert(
      fc.property(reports, (given) => {
        const turned = new Map([...given].toReversed());
        assert.deepEqual(encodeReports(turned), encodeReports(given));
      }),
    );
  });

  it('are nothing when they are not what a replica wrote', () => {
    assert.equal(decodeReports(Buffer.from('no gzip')), undefined);
    assert.equal(decodeReports(Buffer.alloc(0)), undefined);
  });
});

function sorted(reports: ReadonlyMap<string, PeerReport> | undefined): unknown {
  return [...(reports ?? [])]
    .map(([pod, { isConnected, report }]) => [
      pod,
      { isConnected, ...report, generations: [...report.generations].toSorted() },
    ])
    .toSorted();
}
