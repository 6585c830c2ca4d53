// A sample of the responses, for whoever reads logs. Off by default: then nobody asks for it, and nothing is measured.
// A query can hold tokens, so only the path is shown; field values never are.
import type { RequestView } from '../rules/request-view.ts';

export interface AccessLine {
  readonly peer: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  readonly status: number;
  /** From the request's head to the response's. */
  readonly tookMs: number;
}

export interface AccessLogOptions {
  /** 0..1: the share of responses that is written. */
  readonly share: number;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly write: (line: AccessLine) => void;
}

export class AccessLog {
  readonly #options: AccessLogOptions;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** `tookMs` is looked at only for a response that is in the sample. */
  record(request: RequestView, status: number, tookMs: number): void {
    const { share, random, write } = this.#options;
    if (random() >= share) return;
    const { peerAddress: peer, method, target } = request;
    const path = target.replace(/[?#].*$/s, '');
    write({ peer, method, path, status, tookMs: Math.round(tookMs * 1_000) / 1_000 });
  }
}
