// Hot path. One server, one connection. ioredis does the protocol; what it would queue, replay or wait for is
// switched off, because a decision that comes late is worth less than none, and one sent twice charges twice.
import { Command, Redis, type RedisOptions } from 'ioredis';
import type { Clock } from './clock.ts';
import { encodeCommand } from './resp.ts';
import type { Credentials, HostPort, TlsSettings } from '../../contract/store-settings.ts';
import type { StoreNode } from './store.ts';

const CONNECT_TIMEOUT_MS = 500;
/** Between attempts to connect; recovery has to show within 2 s. */
const MAX_RECONNECT_MS = 250;
/** An answer this late never comes: the peer is frozen or the path swallows packets. Without it every probe of the breaker would stay in ioredis' queue for ever. */
const STALL_US = 1_000_000;
const WATCH_MS = 250;
/** How long a closing socket may take before it is destroyed. */
const DISCONNECT_TIMEOUT_MS = 100;

export interface RedisNodeOptions {
  readonly name: string;
  readonly redis: RedisOptions;
  readonly script: string;
  readonly clock: Clock;
  /** A connection was established. */
  readonly onReady: (node: RedisNode) => void;
  /** The connection was lost, or could not be made. */
  readonly onLost: (node: RedisNode) => void;
}

/** Who is told how a command ended. */
export interface CommandSink {
  onReply(reply: unknown): void;
  onError(error: Error): void;
}

/** A connection to one server, as a call needs it. */
export interface CommandChannel {
  readonly isReady: boolean;
  /** Why there is no connection, in the client's own words. */
  readonly lastError: string;
  /** Sends one command. `sink` is told once, or never if the connection never says. */
  send(name: string, args: readonly (string | number)[], sink: CommandSink): void;
  /** Drops the socket and connects anew, through the sentinels where there are some. */
  reconnect(): void;
}

const NOTHING = Buffer.alloc(0);

/** A command that is already written: ioredis would copy, count and join every argument of a batch once more. */
class WrittenCommand extends Command {
  #bytes: Buffer;

  constructor(name: string, bytes: Buffer) {
    super(name, []);
    this.#bytes = bytes;
  }

  /** Once: nothing is sent again, and a batch's bytes are not worth keeping until its answer. */
  override toWritable(): Buffer {
    const bytes = this.#bytes;
    this.#bytes = NOTHING;
    return bytes;
  }
}

export class RedisNode implements StoreNode, CommandChannel, Disposable {
  readonly name: string;
  readonly #redis: Redis;
  readonly #clock: Clock;
  readonly #watch: NodeJS.Timeout;
  #isDisposed = false;
  #unanswered = 0;
  /** Since when nothing was answered, or a handshake has been going on. */
  #stalledSinceUs = 0;
  #lastError = 'not connected yet';

  constructor(options: RedisNodeOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#redis = new Redis({
      ...commonOptions,
      ...options.redis,
      lazyConnect: true,
      replyMapping: 'legacy',
    });
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error.message;
    });
    this.#redis.on('connect', () => {
      this.#stalledSinceUs = this.#clock.nowUs();
    });
    this.#redis.on('ready', () => {
      this.#unanswered = 0;
      // A server that forgot the script or never had it says NOSCRIPT; this only spares that round trip.
      this.#redis.script('LOAD', options.script).catch(ignore);
      options.onReady(this);
    });
    this.#redis.on('close', () => {
      this.#unanswered = 0;
      options.onLost(this);
    });
    this.#redis.on('end', () => {
      this.#connectLater();
    });
    this.#connect();
    this.#watch = setInterval(() => {
      this.#dropIfStalled();
    }, WATCH_MS);
    this.#watch.unref();
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  get lastError(): string {
    return this.#lastError;
  }

  send(name: string, args: readonly (string | number)[], sink: CommandSink): void {
    if (this.#unanswered === 0) this.#stalledSinceUs = this.#clock.nowUs();
    this.#unanswered += 1;
    const command = new WrittenCommand(name, encodeCommand(name, args));
    command.promise.then(
      (reply: unknown) => {
        this.#onAnswer();
        sink.onReply(reply);
      },
      (error: unknown) => {
        this.#onAnswer();
        sink.onError(error instanceof Error ? error : new Error(String(error)));
      },
    );
    this.#redis.sendCommand(command);
  }

  reconnect(): void {
    if (!this.#isDisposed && this.isReady) this.#redis.disconnect(true);
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    clearInterval(this.#watch);
    this.#redis.disconnect();
  }

  #onAnswer(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    this.#stalledSinceUs = this.#clock.nowUs();
  }

  #dropIfStalled(): void {
    const { status } = this.#redis;
    const isWaiting = status === 'connect' || (status === 'ready' && this.#unanswered > 0);
    if (!isWaiting || this.#clock.nowUs() - this.#stalledSinceUs < STALL_US) return;
    this.#lastError = 'the server does not answer';
    this.#redis.disconnect(true);
  }

  #connect(): void {
    this.#redis.connect().catch((error: unknown) => {
      this.#lastError = error instanceof Error ? error.message : String(error);
    });
  }

  /** ioredis gives up when it is interrupted at the wrong moment; a sidecar never does. */
  #connectLater(): void {
    if (this.#isDisposed) return;
    setTimeout(() => {
      if (!this.#isDisposed && this.#redis.status === 'end') this.#connect();
    }, MAX_RECONNECT_MS).unref();
  }
}

const commonOptions: RedisOptions = {
  // RESP2: its AUTH needs no permission for HELLO, and none of RESP3's types is used.
  protocol: 2,
  connectionName: 'weir',
  disableClientInfo: true,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  maxLoadingRetryTime: MAX_RECONNECT_MS,
  retryStrategy: (times) => Math.min(times * 50, MAX_RECONNECT_MS),
};

/** ioredis' options for one server. */
export function optionsFor(
  address: HostPort,
  credentials: Credentials,
  tls: TlsSettings | undefined,
): RedisOptions {
  return {
    host: address.host,
    port: address.port,
    ...credentials,
    ...(tls === undefined ? {} : { tls: tlsOptions(tls, address.host) }),
  };
}

/** ioredis' options for the master that sentinels name. */
export function sentinelOptions(settings: {
  readonly addresses: readonly HostPort[];
  readonly masterName: string;
  readonly credentials: Credentials;
  readonly sentinelCredentials: Credentials;
  readonly tls?: TlsSettings;
}): RedisOptions {
  const { username, password } = settings.sentinelCredentials;
  const tls = settings.tls === undefined ? undefined : tlsOptions(settings.tls, undefined);
  return {
    sentinels: settings.addresses.map(({ host, port }) => ({ host, port })),
    name: settings.masterName,
    role: 'master',
    ...settings.credentials,
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    // A failover is heard from the sentinels at once, not at the next failed write.
    failoverDetector: true,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    sentinelRetryStrategy: (times) => Math.min(times * 50, MAX_RECONNECT_MS),
    sentinelReconnectStrategy: () => MAX_RECONNECT_MS,
    ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

function tlsOptions(tls: TlsSettings, host: string | undefined): NonNullable<RedisOptions['tls']> {
  const servername = tls.serverName ?? host;
  return {
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
    // An address is no server name (RFC 6066 §3): Node then checks the certificate's IP entries.
    ...(servername === undefined || isAddress(servername) ? {} : { servername }),
  };
}

function isAddress(host: string): boolean {
  return host.includes(':') || /^[\d.]+$/.test(host);
}

function ignore(): void {
  // The answer to a call says it better.
}
