// The claim of the product: several sidecar processes enforce one limit, exactly, through one Redis.
//
// What is admitted in a window Δt is at most floor(cap + rate·Δt) with Δt from the first request sent to the last
// answer received. Where demand never lets the bucket fill it is also at least floor(rate·δt) with δt from the first
// answer to the last request sent, less what was under way at both ends (one request a connection) and one token
// that was not whole yet.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { driveLoad, type Sent } from '../support/load.ts';
import { openRedisServer } from '../support/redis.ts';
import { PolicyFolder, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const PROCESSES = 4;
const CONNECTIONS_EACH = 8;
const IN_FLIGHT = PROCESSES * CONNECTIONS_EACH;
const SECONDS = 20;
const FILE = 'limit.yaml';

function policy(perSecond: number, failureMode = 'Closed'): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: shared }
spec:
  selector: {}
  failureMode: ${failureMode}
  rules:
    - name: per-client
      key: [{ header: { name: X-Api-Key } }]
      buckets: [{ capacity: ${perSecond}, refill: { tokens: ${perSecond}, every: 1s } }]
`;
}

async function openUpstream(): Promise<AnsweringUpstream> {
  return AnsweringUpstream.open('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
}

interface Fleet extends AsyncDisposable {
  readonly sidecars: readonly SidecarProcess[];
  readonly ports: readonly number[];
}

async function openFleet(
  folders: readonly PolicyFolder[],
  upstreamPort: number,
  flags: readonly string[],
): Promise<Fleet> {
  await using stack = new AsyncDisposableStack();
  const sidecars: SidecarProcess[] = [];
  for (const folder of folders) {
    // A generous deadline: on two busy cores a slow reply is not the subject of these tests.
    const all = ['--log-level', 'info', '--deadline', '2s', ...flags];
    sidecars.push(stack.use(await SidecarProcess.open({ folder, upstreamPort, flags: all })));
  }
  const open = stack.move();
  return {
    sidecars,
    ports: sidecars.map((one) => one.port),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

interface Window {
  readonly outerSeconds: number;
  readonly innerSeconds: number;
  readonly admitted: number;
}

/** Requests sent at `fromMs` or later whose answer came by `toMs`. */
function windowOf(sent: readonly Sent[], fromMs = -Infinity, toMs = Infinity): Window {
  const inside = sent.filter((one) => one.sentMs >= fromMs && one.doneMs <= toMs);
  const sentMs = inside.map((one) => one.sentMs);
  const doneMs = inside.map((one) => one.doneMs);
  const [first, last] = [Math.min(...sentMs), Math.max(...doneMs)];
  return {
    outerSeconds: (last - first) / 1_000,
    innerSeconds: (Math.max(...sentMs) - Math.min(...doneMs)) / 1_000,
    admitted: inside.filter((one) => one.status === 200).length,
  };
}

async function during<Result>(
  load: Omit<Parameters<typeof driveLoad>[0], 'signal'>,
  act: () => Promise<Result>,
): Promise<{ readonly sent: readonly Sent[]; readonly result: Result }> {
  const controller = new AbortController();
  const driving = driveLoad({ ...load, signal: controller.signal });
  const result = await act();
  controller.abort();
  return { sent: await driving, result };
}

function assertOnly(sent: readonly Sent[], ...statuses: readonly number[]): void {
  const others = sent.filter((one) => !statuses.includes(one.status)).map((one) => one.status);
  assert.deepEqual(others, []);
}

describe('four processes on one Redis, one client', () => {
  it('admit exactly what the bucket holds, from a full and from a drained bucket', async () => {
    const rate = 200;
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using folder = await PolicyFolder.open({ [FILE]: policy(rate) });
    const folders = Array.from({ length: PROCESSES }, () => folder);
    await using fleet = await openFleet(folders, upstream.port, ['--redis', redis.url]);
    const load = {
      ports: fleet.ports,
      connectionsEach: CONNECTIONS_EACH,
      rate: 5 * rate,
      key: 'one',
    };

    // The first second drains the bucket; from then on demand is five times the refill.
    const { sent, result: drainedMs } = await during(load, async () => {
      await pause(1_000);
      const drained = performance.now();
      await pause(SECONDS * 1_000);
      return drained;
    });

    assertOnly(sent, 200, 429);
    const whole = windowOf(sent);
    assert(whole.admitted <= Math.floor(rate + rate * whole.outerSeconds), JSON.stringify(whole));
    const drained = windowOf(sent, drainedMs);
    // At most a token per connection lay in the bucket or under way when the window began.
    const most = Math.floor(rate * drained.outerSeconds) + IN_FLIGHT + 1;
    const least = Math.floor(rate * drained.innerSeconds) - IN_FLIGHT - 1;
    assert(drained.admitted <= most, `${drained.admitted} ≤ ${most}`);
    assert(drained.admitted >= least, `${drained.admitted} ≥ ${least}`);
    assert.equal(
      sent.filter((one) => one.status === 200).length,
      upstream.heads.length,
      'the upstream saw exactly the admitted requests',
    );
  });

  it('keep the limit while the policy file is edited down and up', async () => {
    const [low, high] = [100, 300];
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using folder = await PolicyFolder.open({ [FILE]: policy(high) });
    const folders = Array.from({ length: PROCESSES }, () => folder);
    await using fleet = await openFleet(folders, upstream.port, ['--redis', redis.url]);
    const load = {
      ports: fleet.ports,
      connectionsEach: CONNECTIONS_EACH,
      rate: 5 * high,
      key: 'edited',
    };
    const edits = [low, high, low, high];

    const { sent, result: segments } = await during(load, async () => {
      const seen: { perSecond: number; fromMs: number; toMs: number }[] = [];
      for (const perSecond of edits) {
        await folder.write(FILE, policy(perSecond));
        for (const sidecar of fleet.sidecars) await sidecar.untilCapacity(perSecond);
        // A request decided under the old bundle may still be under way.
        await pause(300);
        const fromMs = performance.now();
        await pause((SECONDS * 1_000) / edits.length);
        seen.push({ perSecond, fromMs, toMs: performance.now() });
      }
      return seen;
    });

    assertOnly(sent, 200, 429);
    for (const { perSecond, fromMs, toMs } of segments) {
      const window = windowOf(sent, fromMs, toMs);
      const most = Math.floor(perSecond * window.outerSeconds) + perSecond;
      const least = Math.floor(perSecond * window.innerSeconds) - IN_FLIGHT - 1;
      assert(window.admitted <= most, `at ${perSecond}/s: ${window.admitted} ≤ ${most}`);
      assert(window.admitted >= least, `at ${perSecond}/s: ${window.admitted} ≥ ${least}`);
    }
    // An edit mints at most the growth of each raise, never a full bucket.
    const whole = windowOf(sent);
    const growth = 2 * (high - low);
    assert(whole.admitted <= Math.floor(high + high * whole.outerSeconds) + growth);
  });

  it('obey the newest limit while one process runs an older generation', async () => {
    const [old, current] = [2_000, 200];
    const now = Date.now();
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using newer = await PolicyFolder.open({});
    await newer.write(FILE, policy(current), now);
    await using older = await PolicyFolder.open({});
    await older.write(FILE, policy(old), now - 3_600_000);
    const folders = [older, newer, newer, newer];
    await using fleet = await openFleet(folders, upstream.port, ['--redis', redis.url]);
    const each = { connectionsEach: CONNECTIONS_EACH, rate: 5 * current, key: 'mixed' };
    // The newest generation has been seen once before the race begins.
    await during({ ...each, ports: fleet.ports.slice(1) }, () => pause(500));

    const { sent } = await during({ ...each, ports: fleet.ports }, () => pause(SECONDS * 1_000));

    assertOnly(sent, 200, 429);
    const window = windowOf(sent);
    const most = Math.floor(current + current * window.outerSeconds);
    const least = Math.floor(current * window.innerSeconds) - IN_FLIGHT - 1;
    assert(window.admitted <= most, `${window.admitted} ≤ ${most}`);
    assert(window.admitted >= least, `${window.admitted} ≥ ${least}`);
    const noticed = await fleet.sidecars[0]?.metric('weir_limit_newer_total');
    assert((noticed ?? 0) > 0, 'the older process counts that it obeys a newer limit');
  });

  it('stay below the documented sum while Redis is restarted under failureMode Local', async () => {
    const rate = 200;
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using folder = await PolicyFolder.open({ [FILE]: policy(rate, 'Local') });
    const folders = Array.from({ length: PROCESSES }, () => folder);
    const flags = ['--redis', redis.url, '--replicas', String(PROCESSES)];
    await using fleet = await openFleet(folders, upstream.port, flags);
    const load = {
      ports: fleet.ports,
      connectionsEach: CONNECTIONS_EACH,
      rate: 5 * rate,
      key: 'restarted',
    };
    const restarts = 3;

    const { sent } = await during(load, async () => {
      for (let i = 0; i < restarts; i += 1) {
        await pause(3_000);
        await redis.stop();
        await pause(2_000);
        await redis.start();
      }
      await pause((SECONDS - 5 * restarts) * 1_000);
    });

    assertOnly(sent, 200, 429);
    const window = windowOf(sent);
    const shared = Math.floor(rate + rate * window.outerSeconds);
    const local =
      PROCESSES * Math.floor(rate / PROCESSES + (rate * window.outerSeconds) / PROCESSES);
    // A restart without persistence is a flush: one capacity each.
    const most = shared + local + restarts * rate;
    assert(window.admitted <= most, `${window.admitted} ≤ ${most}`);
    // Local stands in: the limit is served during the outage too, not only afterwards.
    const least = Math.floor(rate * (window.innerSeconds - restarts * 2)) - IN_FLIGHT - 1;
    assert(window.admitted >= least, `${window.admitted} ≥ ${least}`);
    const degraded = await Promise.all(
      fleet.sidecars.map((sidecar) => sidecar.metric('weir_degraded_total')),
    );
    assert(
      degraded.every((count) => count > 0),
      'every process stood in for the store',
    );
  });
});
