// What bench:control and its processes of simulated sidecars say to each other, and the clock they share.
import process from 'node:process';

export interface SimulatedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Of a file, as the kubelet would write it. */
  readonly tokenFile: string;
}

export type FleetCommand = { readonly id: number } & FleetRequest;

export type FleetRequest =
  /** Connect these, all at once. `ca` is PEM text. */
  | {
      readonly kind: 'open';
      readonly url: string;
      readonly ca: string;
      readonly pods: readonly SimulatedPod[];
    }
  /** When `<policy uid> <generation>` or `<policy uid> gone` came into force, for each sidecar that has it. */
  | { readonly kind: 'times'; readonly key: string }
  | { readonly kind: 'mark' }
  /** When the operator first was obeyed after the last mark, for each sidecar that did. */
  | { readonly kind: 'programmed' };

export interface FleetAnswer {
  readonly id: number;
  /** By `sharedNowMs`. */
  readonly times: readonly number[];
}

/** In place of a generation: the policy is not in force any more. */
export const GONE = 'gone';

/** Monotonic, with the same zero in every process of the machine. */
export function sharedNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
