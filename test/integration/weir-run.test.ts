import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, it } from 'node:test';
import path from 'node:path';
import { kill as killProcess } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseList } from 'structured-headers';
import { eventually, openRedisServer } from '../support/redis.ts';
import { PolicyFolder, runWeir, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream, closedPort } from '../support/upstream.ts';

interface PolicyShape {
  readonly name?: string;
  readonly capacity?: number;
  readonly refill?: string;
  readonly spec?: string;
  readonly rule?: string;
}

function policy(shape: PolicyShape = {}): string {
  const { name = 'api', capacity = 3, refill = '{ tokens: 1, every: 1h }' } = shape;
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: ${name}, namespace: shop }
spec:
  selector: { matchLabels: { app: api } }
  ${shape.spec ?? ''}
  rules:
    - name: per-client
      ${shape.rule ?? ''}
      key: [{ header: { name: X-Api-Key } }]
      buckets: [{ capacity: ${capacity}, refill: ${refill} }]
`;
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

function openUpstream(): Promise<AnsweringUpstream> {
  return AnsweringUpstream.open(OK);
}

function get(
  sidecar: SidecarProcess,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${sidecar.port}/v1/items`, {
    headers: { 'x-api-key': key, ...headers },
  });
}

async function statuses(sidecar: SidecarProcess, key: string, count: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const response = await get(sidecar, key);
    await response.arrayBuffer();
    seen.push(response.status);
  }
  return seen;
}

describe('a refused request', () => {
  it('is told when to come back, by which bucket, in fields that parse', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ refill: '{ tokens: 1, every: 90s }' }) },
      upstreamPort: upstream.port,
    });
    await statuses(sidecar, 'alice', 3);

    const response = await get(sidecar, 'alice');

    assert.equal(response.status, 429);
    assert.equal(response.headers.get('cache-control'), 'no-store');
    assert.equal(response.headers.get('content-type'), 'application/problem+json');
    const retryAfter = Number(response.headers.get('retry-after'));
    assert(retryAfter >= 85 && retryAfter <= 90, `${retryAfter}`);
    const [[name, state] = []] = parseList(response.headers.get('ratelimit') ?? '');
    assert.equal(name, 'api/per-client/main');
    assert(state instanceof Map);
    assert.equal(state.get('r'), 0);
    assert.equal(state.get('t'), retryAfter);
    const [[policyName, quota] = []] = parseList(response.headers.get('ratelimit-policy') ?? '');
    assert.equal(policyName, 'api/per-client/main');
    assert(quota instanceof Map);
    assert.deepEqual([quota.get('q'), quota.get('w')], [3, 270]);
    assert.deepEqual(await response.json(), {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too Many Requests',
      status: 429,
      'violated-policies': ['api/per-client/main'],
    });
    assert.equal(upstream.heads.length, 3);
  });

  it('passes when it comes back exactly after Retry-After', async () => {
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 1, refill: '{ tokens: 10, every: 11s }' }) },
      upstreamPort: upstream.port,
      flags: ['--redis', redis.url],
    });
    for (let round = 0; round < 3; round += 1) {
      let response = await get(sidecar, 'bob');
      while (response.status === 200) response = await get(sidecar, 'bob');
      const waitMs = Number(response.headers.get('retry-after')) * 1_000;

      await pause(waitMs);

      assert.equal((await get(sidecar, 'bob')).status, 200);
    }
  });

  it('costs Redis fewer than two calls a second while it is hammered', async () => {
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy() },
      upstreamPort: upstream.port,
      flags: ['--redis', redis.url],
    });
    const client = redis.client();
    await statuses(sidecar, 'eve', 4);
    const before = scriptCalls(await client.info('commandstats'));
    const start = performance.now();
    let denied = 0;

    while (performance.now() - start < 3_000) {
      const seen = await statuses(sidecar, 'eve', 20);
      denied += seen.filter((status) => status === 429).length;
    }

    const seconds = (performance.now() - start) / 1_000;
    const calls = scriptCalls(await client.info('commandstats')) - before;
    assert(calls < 2 * seconds, `${calls} calls in ${seconds} s`);
    assert(denied > 100, `${denied} were refused`);
    assert((await sidecar.metric('weir_deny_cache_total')) >= denied - calls);
  });
});

function scriptCalls(commandstats: string): number {
  const found = [...commandstats.matchAll(/cmdstat_eval(?:sha)?:calls=([0-9]+)/g)];
  return found.reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe('an allowed request', () => {
  it('carries the tightest bucket and reaches the upstream as it came', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy() },
      upstreamPort: upstream.port,
    });

    const response = await get(sidecar, 'alice');

    assert.equal(
      response.headers.get('ratelimit')?.startsWith('"api/per-client/main";r=2;t='),
      true,
    );
    assert.match(upstream.heads[0] ?? '', /^GET \/v1\/items HTTP\/1\.1\r\n/);
    assert.match(upstream.heads[0] ?? '', /\r\nx-api-key: alice\r\n/i);
  });

  it('says which rules met it to who may ask, and to nobody else', async () => {
    await using upstream = await openUpstream();
    const files = { 'a.yaml': policy() };
    const upstreamPort = upstream.port;
    const flags = ['--debug-from', '127.0.0.0/8'];
    await using open = await SidecarProcess.open({ files, upstreamPort, flags });
    await using closed = await SidecarProcess.open({ files, upstreamPort });

    const told = (await get(open, 'alice', { 'weir-debug': '1' })).headers.get('weir-debug');
    const untold = (await get(closed, 'alice', { 'weir-debug': '1' })).headers.get('weir-debug');

    assert.match(told ?? '', /^"api\/per-client\/main";tier="-";key="[\w-]{22}";tokens=2$/);
    assert.equal(untold, null);
  });
});

describe('the access log', () => {
  it('is written for every response when its share is 1, own answers included', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 1 }) },
      upstreamPort: upstream.port,
      flags: ['--access-log', '1'],
    });

    await statuses(sidecar, 'alice', 2);

    await eventually('both are logged', () => sidecar.events('access').length === 2);
    const seen = sidecar
      .events('access')
      .map((line) => [line['method'], line['path'], line['status']]);
    assert.deepEqual(seen, [
      ['GET', '/v1/items', 200],
      ['GET', '/v1/items', 429],
    ]);
    assert.equal(JSON.stringify(sidecar.log).includes('alice'), false);
  });
});

describe('an application that cannot be reached', () => {
  it('is named in the log, once for many requests', async () => {
    const upstreamPort = await closedPort();
    await using sidecar = await SidecarProcess.open({
      ...{ files: { 'api.yaml': policy() }, upstreamPort },
    });

    assert.deepEqual(await statuses(sidecar, 'a', 2), [503, 503]);

    await eventually('it is said', () => Promise.resolve(sidecar.events('upstream').length > 0));
    const [line] = sidecar.events('upstream');
    assert.equal(line?.level, 'warn');
    assert.equal(line['upstream'], `127.0.0.1:${upstreamPort}`);
    assert.deepEqual(Object.keys(line['failures'] as object), ['connect']);
  });
});

describe('a policy folder', () => {
  it('is reloaded on every change, and nobody gets a fresh bucket by it', async () => {
    await using upstream = await openUpstream();
    await using folder = await PolicyFolder.open({ 'a.yaml': policy({ capacity: 3 }) });
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });
    assert.deepEqual(await statuses(sidecar, 'alice', 4), [200, 200, 200, 429]);

    await folder.write('a.yaml', policy({ capacity: 5 }));
    await sidecar.untilCapacity(5);

    // The growth of two tokens is hers; the three she has spent are not given back.
    assert.deepEqual(await statuses(sidecar, 'alice', 3), [200, 200, 429]);
  });

  it('with one bad file keeps serving the others and the last good version of that one', async () => {
    await using upstream = await openUpstream();
    await using folder = await PolicyFolder.open({
      'a.yaml': policy({ name: 'a', capacity: 2 }),
      'b.yaml': policy({ name: 'b', capacity: 5 }),
    });
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });

    await folder.write(
      'a.yaml',
      policy({ name: 'a', capacity: 2 }).replace('capacity: 2', 'capacity: 0'),
    );
    await eventually('the mistake is reported', () => sidecar.events('policy-invalid').length > 0);
    const afterMistake = await statuses(sidecar, 'alice', 3);
    await folder.write('b.yaml', policy({ name: 'b', capacity: 1 }));
    await eventually('the other file is reloaded', () => sidecar.events('policies').length > 1);
    const afterEdit = await statuses(sidecar, 'bob', 2);

    assert.deepEqual(afterMistake, [200, 200, 429]);
    assert.deepEqual(afterEdit, [200, 429]);
    const [mistake] = sidecar.events('policy-invalid');
    assert.match(String(mistake?.['at']), /a\.yaml:11:\d+$/);
    assert.equal(mistake?.['path'], 'spec.rules[0].buckets[0].capacity');
    assert.equal(await sidecar.metric('weir_config_rejected_total'), 1);
  });

  it('says of a file that is away its name, for there is no line', async () => {
    await using upstream = await openUpstream();
    await using folder = await PolicyFolder.open({ 'a.yaml': policy() });
    const file = path.join(folder.path, 'a.yaml');
    await using sidecar = await SidecarProcess.open({
      ...{ source: ['--policy', file], upstreamPort: upstream.port },
    });

    await folder.remove('a.yaml');
    await eventually('it is reported', () => sidecar.events('policy-invalid').length > 0);

    assert.equal(sidecar.events('policy-invalid')[0]?.['at'], file);
  });

  it('lifts the limit of a file that is removed, and enforces one that is added', async () => {
    await using upstream = await openUpstream();
    await using folder = await PolicyFolder.open({
      'a.yaml': policy({ name: 'a', capacity: 1 }),
      'b.yaml': policy({ name: 'b', capacity: 50 }),
    });
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });
    assert.deepEqual(await statuses(sidecar, 'alice', 2), [200, 429]);

    await folder.remove('a.yaml');
    await eventually('the removal is noticed', () => sidecar.events('policies').length > 1);
    const lifted = await statuses(sidecar, 'alice', 3);
    await folder.write('c.yaml', policy({ name: 'c', capacity: 1 }));
    await eventually('the new file is noticed', () => sidecar.events('policies').length > 2);

    assert.deepEqual(lifted, [200, 200, 200]);
    assert.deepEqual(await statuses(sidecar, 'carol', 2), [200, 429]);
  });

  it('applies only what is meant for this pod', async () => {
    await using upstream = await openUpstream();
    const files = { 'a.yaml': policy({ capacity: 1 }) };
    const start = (...flags: string[]): Promise<SidecarProcess> =>
      SidecarProcess.open({ files, upstreamPort: upstream.port, flags });
    await using mine = await start('--namespace', 'shop', '--labels', 'app=api');
    await using otherNamespace = await start('--namespace', 'bank');
    await using otherLabels = await start('--labels', 'app=web');

    assert.deepEqual(await statuses(mine, 'alice', 2), [200, 429]);
    assert.deepEqual(await statuses(otherNamespace, 'alice', 2), [200, 200]);
    assert.deepEqual(await statuses(otherLabels, 'alice', 2), [200, 200]);
    assert.equal(otherLabels.events('policies-elsewhere').length, 1);
  });
});

describe('a start that fails', () => {
  it('shows the line of a policy that is not in order, and exits 1', async () => {
    await using folder = await PolicyFolder.open({
      'bad.yaml': policy().replace('capacity: 3', 'capacity: none'),
    });

    const run = await runWeir(['run', '--policy', folder.path, '--upstream', 'localhost:1']);

    assert.equal(run.code, 1);
    assert.match(run.stderr, /bad\.yaml:11:\d+: spec\.rules\[0\]\.buckets\[0\]\.capacity: /);
    assert.match(run.stderr, /\n {2}11 \| .*capacity: none/);
  });

  const mistakes: Readonly<Record<string, readonly [readonly string[], number, RegExp]>> = {
    'says that no policy was named': [['run', '--upstream', 'a:1'], 2, /--policy: got nothing/],
    'names the flag that is wrong': [
      ['run', '--policy', 'x', '--upstream', 'a:1', '--deadline', 'soon'],
      2,
      /--deadline: got soon; expected a duration/,
    ],
    'names a flag nobody knows': [['run', '--polcy', 'x'], 2, /unknown option '--polcy'/],
    'names a command nobody knows': [['walk'], 2, /unknown command/],
    'names a policy file that is not there': [
      ['run', '--policy', '/nonexistent/p.yaml', '--upstream', 'a:1'],
      1,
      /\/nonexistent\/p\.yaml/,
    ],
    'names the address that cannot be listened on': [
      [
        'run',
        '--policy',
        'examples/shortest.yaml',
        '--upstream',
        'a:1',
        '--listen',
        '192.0.2.1:80',
      ],
      1,
      /LISTEN_FAILED/,
    ],
    'says what a store URL should look like': [
      ['run', '--policy', 'examples/shortest.yaml', '--upstream', 'a:1', '--redis', 'http://x'],
      2,
      /--redis: got no known scheme in "http:\/\/x"; expected redis:\/\/host:6379.*STORE_SETTINGS_INVALID/,
    ],
    'says that scope Workload needs its owner': [
      ['run', '--policy', 'test/support/workload-scope.yaml', '--upstream', 'a:1'],
      1,
      /spec\.scope.*\n.*--workload kind\/name/,
    ],
  };
  for (const [claim, [args, code, words]] of Object.entries(mistakes)) {
    it(claim, async () => {
      const run = await runWeir(args);

      assert.equal(run.code, code, run.stderr);
      assert.match(run.stderr, words);
      assert.doesNotMatch(run.stderr, /\n {4}at /);
    });
  }

  it('refuses a variable it does not know', async () => {
    const run = await runWeir(['run'], { WEIR_UPSTREEM: 'a:1' });

    assert.equal(run.code, 2);
    assert.match(run.stderr, /WEIR_UPSTREEM.*did you mean WEIR_UPSTREAM/);
  });

  it('prints its configuration with secrets redacted, and does not start', async () => {
    const env = {
      WEIR_REDIS: 'redis://:hunter2@localhost:6379',
      WEIR_POLICY: 'p',
      WEIR_UPSTREAM: 'a:1',
    };

    const run = await runWeir(['run', '--print-config'], env);

    assert.equal(run.code, 0);
    const printed = JSON.parse(run.stdout) as Record<string, unknown>;
    assert.equal(printed['redis'], 'redis://:***@localhost:6379');
    assert.equal(run.stdout.includes('hunter2'), false);
  });
});

describe('draining', () => {
  it('closes connections with their responses, fails readiness, and keeps the listener open', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 50 }) },
      upstreamPort: upstream.port,
    });
    const admin = `127.0.0.1:${sidecar.adminPort}`;

    const drain = await runWeir(['drain', '--admin', admin]);
    const response = await get(sidecar, 'alice');

    assert.equal(drain.code, 0);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('connection'), 'close');
    assert.equal((await sidecar.ask('/readyz')).status, 503);
    assert.equal((await sidecar.ask('/healthz')).status, 200);
    sidecar.kill('SIGTERM');
    assert.equal(await sidecar.exited, 0);
  });

  it('is refused with a word of advice where no sidecar runs', async () => {
    const drain = await runWeir(['drain', '--admin', '127.0.0.1:9']);

    assert.equal(drain.code, 1);
    assert.match(drain.stderr, /ADMIN_UNREACHABLE[\s\S]*--admin/);
  });
});

describe('waiting', () => {
  it('returns when the sidecar listens', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy() },
      upstreamPort: upstream.port,
    });

    const wait = await runWeir(['wait'], { WEIR_ADMIN: `127.0.0.1:${sidecar.adminPort}` });

    assert.deepEqual([wait.code, wait.stderr], [0, '']);
  });

  it('returns with success when its deadline has passed, and says so', async () => {
    const wait = await runWeir(['wait', '--admin', '127.0.0.1:9', '--deadline', '50ms']);

    assert.equal(wait.code, 0);
    assert.match(wait.stderr, /no sidecar listened on 127\.0\.0\.1:9 within 50ms/);
  });

  it('refuses a deadline it cannot read', async () => {
    const wait = await runWeir(['wait', '--deadline', 'soon']);

    assert.equal(wait.code, 2);
    assert.match(wait.stderr, /--deadline: got soon/);
  });
});

describe('a store that is away', () => {
  const modes = {
    Closed: (seen: readonly number[]) => seen.every((status) => status === 503),
    Open: (seen: readonly number[]) => seen.every((status) => status === 200),
    // Half of the capacity of 6 is this pod's share; what the store admitted before has used three of it up.
    Local: (seen: readonly number[]) => seen.filter((status) => status === 200).length <= 3,
  };
  for (const [mode, holds] of Object.entries(modes)) {
    it(`is answered by failureMode ${mode} while it is frozen, and used again when it is back`, async () => {
      await using upstream = await openUpstream();
      await using redis = await openRedisServer();
      await using sidecar = await SidecarProcess.open({
        files: { 'a.yaml': policy({ capacity: 6, spec: `failureMode: ${mode}` }) },
        upstreamPort: upstream.port,
        flags: ['--redis', redis.url, '--replicas', '2'],
      });
      assert.deepEqual(await statuses(sidecar, 'alice', 3), [200, 200, 200]);

      redis.freeze();
      const seen = await statuses(sidecar, 'alice', 20);
      redis.thaw();
      await eventually('the breaker closes', async () => {
        await statuses(sidecar, 'probe', 1);
        return (
          (await sidecar.metric('weir_breaker_state', '{node="' + nodeOf(redis.url) + '"}')) === 0
        );
      });
      const after = await statuses(sidecar, 'bob', 7);

      assert(holds(seen), seen.join(' '));
      assert.deepEqual(after, [200, 200, 200, 200, 200, 200, 429]);
      const transitions = sidecar.events('breaker').filter((line) => line.level !== 'debug');
      assert.deepEqual(
        transitions.map((line) => line['to']),
        ['open', 'closed'],
        'one line for each transition',
      );
    });
  }

  it('does not keep a sidecar from starting, nor from finding it later', async () => {
    await using upstream = await openUpstream();
    await using redis = await openRedisServer();
    await redis.stop();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ spec: 'failureMode: Open' }) },
      upstreamPort: upstream.port,
      flags: ['--redis', redis.url],
    });
    const before = await statuses(sidecar, 'alice', 5);

    await redis.start();
    await eventually('the store is used', async () => {
      return (await statuses(sidecar, 'alice', 1))[0] === 429;
    });

    assert.deepEqual(before, [200, 200, 200, 200, 200]);
    assert.equal(sidecar.events('store-unreachable').length, 1);
  });
});

function nodeOf(url: string): string {
  return url.slice('redis://'.length);
}

describe('several workers', () => {
  it('enforce one limit over the embedded store, and add their numbers up', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 10 }) },
      upstreamPort: upstream.port,
      flags: ['--workers', '2'],
    });

    const all = await Promise.all([1, 2, 3, 4].map(() => statuses(sidecar, 'alice', 5)));

    assert.equal(all.flat().filter((status) => status === 200).length, 10);
    assert.equal(await sidecar.metric('weir_requests_total', '{verdict="allowed"}'), 10);
    assert.equal(await sidecar.metric('weir_requests_total', '{verdict="denied"}'), 10);
  });

  it('share the levels of scope Pod', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 4, spec: 'scope: Pod' }) },
      upstreamPort: upstream.port,
      flags: ['--workers', '2'],
    });

    const all = await Promise.all([1, 2, 3, 4].map(() => statuses(sidecar, 'alice', 3)));

    assert.equal(all.flat().filter((status) => status === 200).length, 4);
  });

  it('refuse no connection when a worker crashes, twice in a row', async () => {
    await using upstream = await openUpstream();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': policy({ capacity: 50 }) },
      upstreamPort: upstream.port,
      flags: ['--supervise', 'true'],
    });

    for (let crash = 1; crash <= 2; crash += 1) {
      killProcess(await workerOf(sidecar), 'SIGKILL');
      // Connections of their own: one that the crashed worker held is gone with it.
      const seen = await Promise.all([1, 2, 3].map(() => statusOnNewConnection(sidecar, 'alice')));
      assert.deepEqual(seen, [200, 200, 200]);
      await eventually('the crash is reported', () => {
        return sidecar.events('worker-crashed').length === crash;
      });
    }

    // The embedded store lives in the parent: six tokens are gone.
    const state = (await get(sidecar, 'alice')).headers.get('ratelimit') ?? '';
    assert.match(state, /;r=43;/);
    sidecar.kill('SIGTERM');
    assert.equal(await sidecar.exited, 0);
  });

  it('end the start with the words of the worker that could not', async () => {
    await using folder = await PolicyFolder.open({ 'bad.yaml': 'kind: Nonsense\n' });

    const run = await runWeir([
      ...['run', '--policy', folder.path, '--upstream', 'a:1', '--workers', '2'],
      ...['--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0'],
    ]);

    assert.equal(run.code, 1);
    assert.match(run.stderr, /bad\.yaml:1:/);
  });
});

async function statusOnNewConnection(sidecar: SidecarProcess, key: string): Promise<number> {
  const headers = { 'x-api-key': key };
  const asked = request({
    host: '127.0.0.1',
    port: sidecar.port,
    path: '/',
    headers,
    agent: false,
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode ?? 0;
}

async function workerOf(sidecar: SidecarProcess): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const file = `/proc/${sidecar.pid}/task/${sidecar.pid}/children`;
  let worker = 0;
  await eventually('a worker runs', async () => {
    worker = Number((await readFile(file, 'utf8')).trim().split(' ')[0] ?? 0);
    return worker > 0;
  });
  return worker;
}
