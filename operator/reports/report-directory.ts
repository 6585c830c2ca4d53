// Who runs what, over all replicas: every sidecar holds its stream to one of them, and the one that writes status has
// to know of all. A sidecar that is connected here is known first-hand; one that another replica is connected to is
// known from there; one that nobody is connected to is believed what it said last.
import type { SidecarReport } from '../policy/sidecar-report.ts';
import type { SidecarState } from '../stream/sidecar-registry.ts';
import type { PeerReport } from './report-codec.ts';

export type Reports = ReadonlyMap<string, PeerReport>;

export class ReportDirectory {
  readonly #own: (podUid: string) => SidecarState | undefined;
  readonly #peers = new Map<string, Reports>();

  constructor(own: (podUid: string) => SidecarState | undefined) {
    this.#own = own;
  }

  reportOf(podUid: string): SidecarReport | undefined {
    const own = this.#own(podUid);
    if (own?.connected === true) return reportFrom(own);
    let disconnected: SidecarReport | undefined;
    for (const reports of this.#peers.values()) {
      const peer = reports.get(podUid);
      if (peer?.isConnected === true) return peer.report;
      disconnected ??= peer?.report;
    }
    return own === undefined ? disconnected : reportFrom(own);
  }

  /** Replaces what a peer said; undefined = it is gone. Returns the pods of which something else is said now. */
  setPeer(name: string, reports: Reports | undefined): readonly string[] {
    const before = this.#peers.get(name) ?? NOTHING;
    if (reports === undefined) this.#peers.delete(name);
    else this.#peers.set(name, reports);
    const after = reports ?? NOTHING;
    const pods = new Set([...before.keys(), ...after.keys()]);
    return [...pods].filter((pod) => !isSame(before.get(pod), after.get(pod)));
  }
}

const NOTHING: Reports = new Map();

export function reportFrom(state: SidecarState): SidecarReport {
  const { generations, refusals, tooOld, clientIpIsProxy } = state;
  return { generations, refusals, tooOld, store: storeOf(state), clientIpIsProxy };
}

/** Without a store there is none to be up or down, and the operator knows that itself; but it may have been refused. */
function storeOf({ store, storeProblem }: SidecarState): SidecarReport['store'] {
  if (store !== 'none') return store;
  return storeProblem === undefined ? undefined : 'down';
}

function isSame(a: PeerReport | undefined, b: PeerReport | undefined): boolean {
  return textOf(a) === textOf(b);
}

function textOf(peer: PeerReport | undefined): string {
  if (peer === undefined) return '';
  const { isConnected, report } = peer;
  return JSON.stringify([isConnected, report, [...report.generations]]);
}
