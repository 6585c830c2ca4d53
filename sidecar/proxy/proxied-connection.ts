// A client connection as the proxy keeps it, whichever version of HTTP it speaks.
export interface ProxiedConnection {
  /** Sweep time at which `onDeadline` is due. */
  readonly deadlineMs: number;
  /** The deadline has passed: ends what is stuck. */
  onDeadline(): void;
  /** Told at each sweep at which no deadline is due. */
  onSweep(): void;
  /** From now on responses, or the protocol, say that the connection is about to close. */
  startDraining(): void;
  /** Closes now if nothing is under way; otherwise as soon as it has ended. */
  stop(): void;
  /** Ends whatever is under way at once. */
  destroy(): void;
  /** A bug struck it: it ends, others go on. */
  onFault(error: unknown): void;
}
