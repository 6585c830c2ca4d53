// What `weir redirect` is asked for: which port of the pod leads to which. Injection writes these arguments, and a pod
// without the right rules looks healthy and limits nothing, so that nothing in them is guessed.
import { WeirError } from '../../contract/errors.ts';

/** TCP connections from outside that come for port `from` are taken by whoever listens on port `to`. */
export interface PortPair {
  readonly from: number;
  readonly to: number;
}

/** Injection takes 16 ports at most, each with a probe's port beside it; twice that is a mistake. */
export const PAIRS_MAX = 64;

export interface WrittenPairs {
  /** `APP:LISTEN`, an app's port and the sidecar's: at least one. */
  readonly forward: readonly string[];
  /** `PROBE:APP`, the port that the kubelet asks and the app's, past the sidecar; only an app's port that is forwarded. */
  readonly probe: readonly string[];
}

/** In the order in which they were written, forwards first. Throws CONFIG_INVALID naming the flag. */
export function parsePairs({ forward, probe }: WrittenPairs): readonly PortPair[] {
  if (forward.length === 0) {
    throw invalid('--forward', 'nothing', 'APP:LISTEN, such as --forward 8080:15100');
  }
  const pairs: PortPair[] = [];
  const take = (where: string, texts: readonly string[]): void => {
    for (const text of texts) {
      const pair = parsePair(where, text);
      if (pairs.some(({ from }) => from === pair.from)) {
        throw invalid(where, text, `port ${pair.from} once: it can lead to one port only`);
      }
      pairs.push(pair);
    }
  };
  take('--forward', forward);
  const forwarded = pairs.map(({ from }) => from);
  take('--probe', probe);
  if (pairs.length > PAIRS_MAX) {
    const given = `${pairs.length} ports`;
    throw invalid('--forward and --probe', given, `${PAIRS_MAX} ports together at most`);
  }
  refuseStray(pairs.slice(forwarded.length), forwarded);
  return pairs;
}

/** A port that is not forwarded is asked as it is: a probe's way to it is a slip, and opens a port that nobody limits. */
function refuseStray(probes: readonly PortPair[], forwarded: readonly number[]): void {
  const stray = probes.find(({ to }) => !forwarded.includes(to));
  if (stray === undefined) return;
  const right = `PROBE:APP whose APP is forwarded: ${forwarded.join(', ')}`;
  throw invalid('--probe', `${stray.from}:${stray.to}`, right);
}

function parsePair(where: string, text: string): PortPair {
  const [, from, to] = /^([1-9][0-9]{0,4}):([1-9][0-9]{0,4})$/.exec(text) ?? [];
  const pair = { from: Number(from), to: Number(to) };
  if (!(pair.from <= PORT_MAX && pair.to <= PORT_MAX)) {
    throw invalid(where, text, 'two ports from 1 to 65535, such as 8080:15100');
  }
  if (pair.from === pair.to) throw invalid(where, text, 'two ports that differ');
  return pair;
}

const PORT_MAX = 65_535;

function invalid(where: string, given: string, right: string): WeirError {
  return new WeirError('CONFIG_INVALID', { where, given, right });
}
