// What all connections of one proxy share.
import type { Backlog } from '../http2/backlog.ts';
import type { AccessLog } from './access-log.ts';
import type { Gate } from './gate.ts';
import type { ProxyCounters } from './proxy-counters.ts';
import type { ProxySettings } from './proxy-options.ts';

export interface ProxyContext {
  readonly settings: ProxySettings;
  readonly gate: Gate;
  readonly counters: ProxyCounters;
  /** Monotonic, milliseconds, for measuring. */
  readonly now: () => number;
  /** The sweep's time in ms: it stands still between sweeps, so reading it costs nothing. */
  sweptMs: number;
  /** Bytes of heads that have begun and not ended, over all client connections. */
  pendingHeadBytes: number;
  /** What waits for clients of HTTP/2, and what they sent before the application took its stream. */
  readonly backlog: Backlog;
  /** `Date: …\r\n`, renewed by the sweep. */
  dateLine: string;
  /** `Via: 1.1 <name>\r\n`, or empty. */
  readonly viaLine: string;
  /** Every response from now on closes its connection. */
  draining: boolean;
  /** Stopping: a connection ends as soon as it has nothing under way. */
  stopping: boolean;
  /** Undefined = responses are not logged. */
  readonly accessLog: AccessLog | undefined;
  /** Told about bugs; the connection they struck is closed, no other is touched. */
  readonly onFault: (error: unknown) => void;
}
