// A request's head as plain values: for whoever needs it after the view has gone (a token is being verified), and for
// requests that never were on a wire (`weir explain`, `weir simulate`).
import type { RequestView } from './request-view.ts';

export interface RequestFields {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly peerAddress: string;
  /** Field lines in order; names in any case, values Latin-1. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

export class RequestSnapshot implements RequestView {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  readonly peerAddress: string;
  readonly #headers: RequestFields['headers'];

  constructor(fields: RequestFields) {
    this.method = fields.method;
    this.target = fields.target;
    this.host = fields.host;
    this.peerAddress = fields.peerAddress;
    this.#headers = fields.headers;
  }

  static of(view: RequestView): RequestSnapshot {
    const headers: (readonly [string, string])[] = [];
    view.eachHeader((name, value) => headers.push([name, value]));
    const { method, target, host, peerAddress } = view;
    return new RequestSnapshot({ method, target, host, peerAddress, headers });
  }

  header(name: string): string | undefined {
    const lines = this.#lines(name);
    return lines.length === 0 ? undefined : lines.map(([, value]) => value).join(', ');
  }

  headerCount(name: string): number {
    return this.#lines(name).length;
  }

  eachHeader(visit: (name: string, value: string) => void): void {
    for (const [name, value] of this.#headers) visit(name, value);
  }

  #lines(name: string): RequestFields['headers'] {
    return this.#headers.filter(([sent]) => sent.toLowerCase() === name);
  }
}
