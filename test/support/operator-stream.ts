// A real stream server over TLS in this process, in front of a world that the test writes, and sidecars that are real
// processes with tokens of pods in it.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { KubeApi } from '../../operator/kube/api.ts';
import { openStreamServer, type StreamServer } from '../../operator/stream/server.ts';
import { SidecarRegistry } from '../../operator/stream/sidecar-registry.ts';
import { type Certificates, makeCertificates } from './certificates.ts';
import { SidecarProcess } from './sidecar.ts';
import { StreamWorld, TokenReviews } from './stream-world.ts';

export interface StreamOptions {
  readonly maxClients?: number;
  /** 0 = a free one. */
  readonly port?: number;
  readonly certificates?: Certificates;
  readonly nowMs?: () => number;
  /** A real API server to review tokens; absent = `api`, whose tokens mean what the test says. */
  readonly reviewer?: Pick<KubeApi, 'post'>;
}

export class OperatorStream implements AsyncDisposable {
  readonly world: StreamWorld = new StreamWorld();
  readonly api: TokenReviews = new TokenReviews();
  readonly metrics: Registry = new Registry();
  readonly registry: SidecarRegistry = new SidecarRegistry(() => performance.now());
  readonly folder: string;
  readonly certificates: Certificates;
  port = 0;
  #server: StreamServer | undefined = undefined;
  readonly #options: StreamOptions;

  private constructor(folder: string, certificates: Certificates, options: StreamOptions) {
    this.folder = folder;
    this.certificates = certificates;
    this.#options = options;
  }

  static async open(options: StreamOptions = {}): Promise<OperatorStream> {
    const folder = await mkdtemp(path.join(tmpdir(), 'weir-stream-'));
    const certificates = options.certificates ?? (await makeCertificates());
    const stream = new OperatorStream(folder, certificates, options);
    await stream.start();
    return stream;
  }

  get server(): StreamServer {
    if (this.#server === undefined) throw new Error('the stream server is not running');
    return this.#server;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** Listens again where it did before. */
  async start(): Promise<void> {
    this.metrics.clear();
    this.#server = await openStreamServer({
      listen: { host: '127.0.0.1', port: this.port === 0 ? (this.#options.port ?? 0) : this.port },
      tls: await tlsOf(this.certificates),
      ...{
        api: this.#options.reviewer ?? this.api,
        pods: this.world,
        provider: this.world,
        registry: this.registry,
      },
      ...{ metrics: this.metrics, log: pino({ enabled: false }) },
      ...(this.#options.maxClients === undefined ? {} : { maxClients: this.#options.maxClients }),
      ...(this.#options.nowMs === undefined ? {} : { nowMs: this.#options.nowMs }),
    });
    this.port = this.#server.address.port;
  }

  /** As when the process has gone: every connection breaks. */
  async stop(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
    this.#server = undefined;
  }

  /** Serves another certificate to whoever connects from now on. */
  async serve(certificates: Certificates): Promise<void> {
    this.server.reload(await tlsOf(certificates));
  }

  /** Adds a pod and gives the flags of its sidecar. */
  async enlist(podUid: string, options: EnlistOptions = {}): Promise<string[]> {
    this.world.addPod(podUid);
    const token = path.join(this.folder, `${podUid}.token`);
    await writeFile(token, options.token ?? this.api.issue({ podUid }));
    const ca = path.join(this.folder, `${podUid}.ca`);
    await writeFile(ca, options.ca ?? this.certificates.ca);
    return [
      ...['--operator', this.url, '--operator-ca', ca, '--operator-token', token],
      ...['--pod-namespace', 'shop', '--pod-name', podUid, '--pod-uid', podUid],
    ];
  }

  /** A running sidecar of that pod. */
  async sidecar(podUid: string, options: EnlistOptions & SidecarFlags): Promise<SidecarProcess> {
    const source = await this.enlist(podUid, options);
    const { upstreamPort, flags = [] } = options;
    return SidecarProcess.open({ source, upstreamPort, flags });
  }

  /** A sample of a metric of the server; 0 when there is none. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const metric = await this.metrics.getSingleMetric(name)?.get();
    const wanted = Object.entries(labels);
    const sample = metric?.values.find((one) =>
      wanted.every(([key, value]) => Reflect.get(one.labels, key) === value),
    );
    return sample?.value ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
    if (this.#options.certificates === undefined) await this.certificates[Symbol.asyncDispose]();
  }
}

export interface EnlistOptions {
  readonly token?: string;
  /** PEM text. */
  readonly ca?: string;
}

export interface SidecarFlags {
  readonly upstreamPort: number;
  readonly flags?: readonly string[];
}

async function tlsOf({
  folder,
}: Certificates): Promise<{ readonly cert: string; readonly key: string }> {
  const [cert, key] = await Promise.all([
    readFile(path.join(folder, 'server.crt'), 'utf8'),
    readFile(path.join(folder, 'server.key'), 'utf8'),
  ]);
  return { cert, key };
}
