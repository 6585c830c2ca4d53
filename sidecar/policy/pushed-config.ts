// What an operator gives a sidecar, whichever way it came: over the stream, from the cache of an earlier one, or as a
// seed.
import type { Bundle } from '../../contract/bundle.ts';
import type { PolicyRefusal, SidecarSettings, StateFrame } from '../../contract/stream.ts';
import type { ConfigOrigin } from '../metrics.ts';

export interface PushedConfig {
  readonly bundle: Bundle;
  readonly settings: SidecarSettings;
  readonly origin: ConfigOrigin;
}

/** What a sidecar says of itself beside its policies. */
export type SidecarReport = Pick<StateFrame, 'store' | 'storeProblem' | 'clientIpIsProxy'>;

/** Whatever runs a configuration: this process' data path, or all workers of this one. */
export interface ConfigTarget {
  /**
   * Empty when the configuration is in force in every process. Else nothing of it has to be: these of its policies do
   * not compile, and the caller brings another one.
   */
  apply(config: PushedConfig): Promise<readonly PolicyRefusal[]>;
  report(): SidecarReport;
}
