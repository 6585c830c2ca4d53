// The recorded baseline of bench:micro.
import type { MachineFacts } from './machine.ts';

export interface MicroResult {
  readonly at: string;
  readonly machine: MachineFacts;
  readonly benches: readonly { readonly name: string; readonly ns: number }[];
}
