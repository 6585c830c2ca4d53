// What the stream server asks of the rest of the operator. Both are answered from caches, at once.
import type { Bundle } from '../../contract/bundle.ts';
import type { SidecarSettings } from '../../contract/stream.ts';

/** Everything one sidecar is to be told. */
export interface Provision {
  readonly bundle: Bundle;
  /** Policies (`uid`) that exist but cannot be compiled now; see `ConfigFrame.held`. */
  readonly held?: readonly string[];
  /** The same object for as long as it is the same content: it is compared by identity first. */
  readonly settings: SidecarSettings;
  /** PEM bundle to trust from the next connection on. */
  readonly ca?: string;
}

export interface BundleProvider {
  /** Undefined while the pod or its policies are not known: nothing is pushed then, and nothing is taken back. */
  bundleFor(podUid: string): Provision | undefined;
  /** `listener` is told whose provision may have changed. Disposing ends it. */
  onChange(listener: (pods: ReadonlySet<string> | 'all') => void): Disposable;
}

export interface PodIdentity {
  readonly namespace: string;
  readonly name: string;
  /** Absent = not known. */
  readonly serviceAccount?: string;
  /** Phase Succeeded or Failed: its containers will not run again. */
  readonly isTerminal: boolean;
}

export interface PodDirectory {
  find(podUid: string): PodIdentity | undefined;
}
