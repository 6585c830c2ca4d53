// A proxy in front of an upstream of the test's choosing, with a clock that only the test moves.
import assert from 'node:assert/strict';
import type { Gate } from '../../sidecar/proxy/gate.ts';
import { sweepIntervalMs } from '../../sidecar/proxy/proxy-options.ts';
import type { ProxyOptions } from '../../sidecar/proxy/proxy-options.ts';
import { openProxy } from '../../sidecar/proxy/proxy.ts';
import type { Proxy } from '../../sidecar/proxy/proxy.ts';
import { RawSocket } from './raw-socket.ts';
import { FieldGate } from './simple-gate.ts';

interface FixtureOptions extends Omit<Partial<ProxyOptions>, 'upstream'> {
  /** Whether the test wants faults; otherwise one fails it. */
  readonly expectsFaults?: true;
}

export class ProxyFixture<G extends Gate = FieldGate> implements AsyncDisposable {
  readonly proxy: Proxy;
  readonly gate: G;
  readonly faults: unknown[];
  readonly #clock: { ms: number };
  readonly #clients: RawSocket[] = [];
  readonly #expectsFaults: boolean;

  private constructor(
    proxy: Proxy,
    gate: G,
    own: { faults: unknown[]; clock: { ms: number }; expectsFaults: boolean },
  ) {
    this.proxy = proxy;
    this.gate = gate;
    this.faults = own.faults;
    this.#clock = own.clock;
    this.#expectsFaults = own.expectsFaults;
  }

  static async open(
    upstream: { readonly port: number; readonly host?: string },
    options: FixtureOptions = {},
  ): Promise<ProxyFixture> {
    return ProxyFixture.openWith(upstream, new FieldGate(), options);
  }

  static async openWith<G extends Gate>(
    upstream: { readonly port: number; readonly host?: string },
    gate: G,
    options: FixtureOptions = {},
  ): Promise<ProxyFixture<G>> {
    const faults: unknown[] = [];
    const clock = { ms: 0 };
    const { expectsFaults, ...given } = options;
    const proxy = await openProxy(
      {
        listen: { host: '127.0.0.1', port: 0 },
        upstream: { host: upstream.host ?? '127.0.0.1', port: upstream.port },
        ...given,
      },
      gate,
      {
        now: () => clock.ms,
        wallClock: () => Date.UTC(2026, 0, 2, 3, 4, 5),
        onFault: (error) => faults.push(error),
      },
    );
    const own = { faults, clock, expectsFaults: expectsFaults ?? false };
    return new ProxyFixture(proxy, gate, own);
  }

  /** A client connection, closed with the fixture. */
  async connect(): Promise<RawSocket> {
    const client = await RawSocket.connect(this.proxy.address.port);
    this.#clients.push(client);
    return client;
  }

  /** Moves the clock as a process sees it that is never held up: sweep by sweep. */
  advance(ms: number): void {
    for (let left = ms; left > 0; left -= sweepIntervalMs) {
      this.#clock.ms += Math.min(left, sweepIntervalMs);
      this.proxy.sweep();
    }
  }

  /** Moves the clock at once, as after a freeze. */
  jump(ms: number): void {
    this.#clock.ms += ms;
    this.proxy.sweep();
  }

  /** Moves the clock and the timers of a test that has taken them over from the process. */
  tick(ms: number, timers: { tick(ms: number): void }): void {
    this.#clock.ms += ms;
    timers.tick(ms);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    await this.proxy[Symbol.asyncDispose]();
    assert.equal(this.proxy.counters.connectionsOpen, 0);
    assert.equal(this.proxy.counters.tunnelsOpen, 0);
    if (!this.#expectsFaults) assert.deepEqual(this.faults, []);
  }
}
