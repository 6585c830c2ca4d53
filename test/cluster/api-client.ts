// Plain requests to an API server, for the tests' own arranging and looking. Deliberately not the operator's client:
// a test of that one must not see through its eyes.
import { KubeConfig } from '@kubernetes/client-node';
import type { OutgoingHttpHeaders } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { exchangeJson, type JsonAnswer } from './json-exchange.ts';

export interface ApiRequest {
  /** JSON unless it is text already. */
  readonly body?: unknown;
  /** `application/json` unless given. */
  readonly contentType?: string;
}

export class ApiClient implements Disposable {
  readonly url: string;
  readonly caPem: string;
  readonly #auth: string | null | undefined;
  readonly #headers: OutgoingHttpHeaders;
  readonly #agent: Agent;

  private constructor(url: string, options: RequestOptions) {
    const { auth, ca, cert, key, headers = {}, rejectUnauthorized } = options;
    this.url = url;
    this.caPem = Buffer.isBuffer(ca) ? ca.toString() : '';
    this.#auth = auth;
    this.#headers = Object.fromEntries(Object.entries(headers));
    this.#agent = new Agent({ keepAlive: true, ca, cert, key, rejectUnauthorized });
  }

  /** Asks as the current user of the kubeconfig. */
  static async open(kubeconfig: string): Promise<ApiClient> {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw new Error(`${kubeconfig} has no current cluster`);
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    return new ApiClient(cluster.server.replace(/\/$/, ''), options);
  }

  /** Rejects only when no answer comes. `path` with its query, e.g. `/api/v1/pods?limit=1`. */
  async request(method: string, path: string, asked: ApiRequest = {}): Promise<JsonAnswer> {
    const { body, contentType = 'application/json' } = asked;
    const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
    const headers: OutgoingHttpHeaders = { ...this.#headers, accept: 'application/json' };
    if (text !== undefined) {
      headers['content-type'] = contentType;
      headers['content-length'] = Buffer.byteLength(text);
    }
    const options = { auth: this.#auth, agent: this.#agent, method, headers };
    return exchangeJson(this.url + path, options, text);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
