// The ways through a sidecar: one listener, gate and proxy for each port of the application. They share the limiter and
// their numbers, and are drained and stopped together.
import type { SecureContextOptions } from 'node:tls';
import type { Log } from './log.ts';
import { EnforcingGate } from './enforcement/enforcing-gate.ts';
import { type AccessLine, AccessLog } from './proxy/access-log.ts';
import type { ProxyCounters } from './proxy/proxy-counters.ts';
import type { ProxyOptions } from './proxy/proxy-options.ts';
import { openProxy, type Proxy, type ProxyDependencies } from './proxy/proxy.ts';
import { UpstreamComplaints } from './proxy/upstream-complaints.ts';
import { Address, Networks, readAddress } from './rules/address.ts';
import type { RunConfig } from './run-config.ts';
import { CertificateFiles } from './tls/certificate-files.ts';
import type { CertificateTexts } from './tls/certificate-files.ts';
import { formatHostPort, type HostPort } from '../contract/setting.ts';
import { systemClock } from './store/clock.ts';
import type { Limiter } from './store/limiter.ts';
import type { GuardedPort } from './policy/bundle-switch.ts';

/** One gate for each upstream, with numbers in common. */
export function openGates(
  config: RunConfig,
  limiter: Limiter,
  onForwarded: (policy: string, rule: string) => void,
): readonly GuardedPort[] {
  const networks = config.debugFrom.length === 0 ? undefined : new Networks(config.debugFrom);
  const address = new Address();
  const gates: GuardedPort[] = [];
  for (const { port } of config.upstream) {
    const gate = new EnforcingGate({
      limiter,
      nowUs: () => systemClock.nowUs(),
      mayDebug:
        networks === undefined
          ? undefined
          : (peer) => readAddress(peer, address) && networks.has(address),
      onForwarded,
      numbers: gates[0]?.gate,
    });
    gates.push({ gate, port });
  }
  return gates;
}

export interface RoutesOptions {
  readonly log: Log;
  /** False = connections are handed in through `adopt`. */
  readonly listens: boolean;
  /** Of a process that follows another one and will be followed. */
  readonly certificate?: CertificateHandover | undefined;
}

export interface CertificateHandover {
  readonly inherited: CertificateTexts | undefined;
  readonly onInForce: (texts: CertificateTexts) => void;
}

export class Routes implements AsyncDisposable {
  readonly counters: ProxyCounters;
  readonly #proxies: readonly Proxy[];
  /** Ends after the proxies. */
  readonly #beside: AsyncDisposable;

  private constructor(proxies: readonly Proxy[], counters: ProxyCounters, beside: AsyncDisposable) {
    this.#proxies = proxies;
    this.counters = counters;
    this.#beside = beside;
  }

  /** Throws LISTEN_FAILED, CERTIFICATE_INVALID. */
  static async open(
    config: RunConfig,
    gates: readonly GuardedPort[],
    { log, listens, certificate: handover }: RoutesOptions,
  ): Promise<Routes> {
    await using stack = new AsyncDisposableStack();
    const beside = stack.use(new AsyncDisposableStack());
    const proxies: Proxy[] = [];
    const renew = (context: SecureContextOptions): void => {
      for (const proxy of proxies) proxy.renewTls(context);
    };
    const certificate = await openCertificate(config, { log, renew, handover });
    if (certificate !== undefined) beside.use(certificate);
    for (const [i, { gate }] of gates.entries()) {
      const listen = listens ? config.listen[i] : undefined;
      const tls = certificate === undefined ? {} : { tls: certificate.context };
      const options = { ...proxyOptions(config, i, listen), ...tls };
      const dependencies = proxyDependencies(config, log, proxies[0]?.counters);
      proxies.push(stack.use(await openProxy(options, gate, dependencies)));
    }
    const [first] = proxies;
    if (first === undefined) throw new RangeError('a sidecar without a route');
    beside.use(complainOf(first.counters, config, log));
    // From here on they are the caller's.
    stack.move();
    return new Routes(proxies, first.counters, beside);
  }

  /** Where requests are taken, port 0 resolved, in the order of --listen. */
  get addresses(): readonly HostPort[] {
    return this.#proxies.map(({ address }) => address);
  }

  /** The proxy of the n-th --listen. */
  proxy(index: number): Proxy | undefined {
    return this.#proxies[index];
  }

  startDraining(): void {
    for (const proxy of this.#proxies) proxy.startDraining();
  }

  async stop(graceMs: number): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.stop(graceMs)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop(0);
    await this.#beside[Symbol.asyncDispose]();
  }
}

/** How often the log is told of an application that fails, at most once a minute. */
const LOOK_EVERY_MS = 1_000;

function complainOf({ upstreamErrors }: ProxyCounters, config: RunConfig, log: Log): Disposable {
  const upstream = config.upstream.map(formatHostPort).join(', ');
  const complaints = new UpstreamComplaints(upstreamErrors, (failures) => {
    log.warn({ event: 'upstream', upstream, failures }, 'requests failed at the application');
  });
  return setInterval(() => {
    complaints.look(performance.now());
  }, LOOK_EVERY_MS).unref();
}

interface CertificateUse {
  readonly log: Log;
  readonly renew: (context: SecureContextOptions) => void;
  readonly handover: CertificateHandover | undefined;
}

/** Undefined without --tls-cert. Throws CERTIFICATE_INVALID. */
async function openCertificate(
  { tlsCert: cert, tlsKey: key, tlsClientCa: clientCa }: RunConfig,
  { log, renew, handover }: CertificateUse,
): Promise<CertificateFiles | undefined> {
  if (cert === undefined || key === undefined) return undefined;
  return CertificateFiles.open(
    { cert, key, clientCa },
    {
      onInForce: handover?.onInForce,
      onRenewed(context, notAfterMs) {
        renew(context);
        const notAfter = new Date(notAfterMs).toISOString();
        log.info({ event: 'certificate', notAfter }, 'another certificate is in force');
      },
      onRefused(error) {
        log.error({ event: 'certificate', err: error }, 'the certificate stays as it is');
      },
    },
    { wallClock: () => Date.now(), inherited: handover?.inherited },
  );
}

function proxyOptions(
  config: RunConfig,
  index: number,
  listen: HostPort | undefined,
): ProxyOptions {
  const upstream = config.upstream[index];
  if (upstream === undefined) throw new RangeError('a listener without an upstream');
  return {
    ...(listen === undefined ? {} : { listen: { ...listen, ipv4Fallback: true } }),
    upstream,
    upstreamProtocol: config.upstreamProtocol[index] ?? config.upstreamProtocol[0] ?? 'auto',
    limits: {
      maxHeadBytes: config.maxHeaderBytes,
      maxFieldLines: config.maxHeaders,
      maxTargetBytes: config.maxUrlBytes,
    },
    timeouts: {
      headMs: config.headerTimeout,
      idleMs: config.idleTimeout,
      connectMs: config.connectTimeout,
      responseMs: config.upstreamTimeout,
      clientStallMs: config.bodyTimeout,
      upstreamStallMs: config.streamTimeout,
      tunnelIdleMs: config.tunnelTimeout,
      upstreamIdleMs: config.upstreamIdleTimeout,
    },
    maxConnections: config.maxConnections,
    ...(config.via === undefined ? {} : { via: config.via }),
  };
}

function proxyDependencies(
  config: RunConfig,
  log: Log,
  counters: ProxyCounters | undefined,
): ProxyDependencies {
  const share = config.accessLog;
  const write = (line: AccessLine): void => {
    log.info({ event: 'access', ...line }, 'access');
  };
  return {
    now: () => performance.now(),
    wallClock: () => Date.now(),
    ...(share === 0 ? {} : { accessLog: new AccessLog({ share, random: Math.random, write }) }),
    onFault: (error) => {
      log.error({ event: 'fault', err: error }, 'a bug was contained in one connection');
    },
    counters,
  };
}
