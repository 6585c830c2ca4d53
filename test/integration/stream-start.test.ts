import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { encodeSeed } from '../../contract/seed.ts';
import { bundleWith, compiledPolicy } from '../support/compiled-policy.ts';
import { OperatorStream } from '../support/operator-stream.ts';
import { eventually, openRedisServer } from '../support/redis.ts';
import { runWeir, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';
import { RawSocket } from '../support/raw-socket.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

async function statuses(port: number, key: string, count: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-api-key': key } });
    await response.arrayBuffer();
    seen.push(response.status);
  }
  return seen;
}

interface Folder extends AsyncDisposable {
  readonly path: string;
}

async function openFolder(): Promise<Folder> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-cache-'));
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A server that takes connections and says nothing. */
function openSilence(): Promise<AnsweringUpstream> {
  return AnsweringUpstream.open('');
}

function readiness(sidecar: SidecarProcess): Promise<number> {
  return sidecar.ask('/readyz').then(({ status }) => status);
}

describe('a sidecar that starts while the operator is away', () => {
  it('has what was pushed before, and reaches its store', async () => {
    await using redis = await openRedisServer();
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    await using cache = await openFolder();
    operator.world.policies = [compiledPolicy({ capacity: 3, failureMode: 'Closed' })];
    operator.world.settings = { store: { url: redis.url } };
    const source = [...(await operator.enlist('pod-1')), '--config-cache', cache.path];
    {
      await using first = await SidecarProcess.open({ source, upstreamPort: upstream.port });
      assert.deepEqual(await statuses(first.port, 'a', 2), [200, 200]);
      await eventually('it is cached', async () =>
        (await readdir(cache.path)).includes('config.json'),
      );
    }
    await operator.stop();

    await using second = await SidecarProcess.open({ source, upstreamPort: upstream.port });

    assert.deepEqual(await statuses(second.port, 'a', 2), [200, 429]);
    assert.equal(await readiness(second), 200);
    assert.equal(await second.metric('weir_config_origin', '{origin="cache"}'), 1);
    await operator.start();
    await eventually('the stream confirms it', async () => {
      return (await second.metric('weir_config_origin', '{origin="stream"}')) === 1;
    });
    assert.equal(second.events('policies').length, 1, 'nothing was compiled again');
    assert.equal((await stat(path.join(cache.path, 'config.json'))).mode & 0o777, 0o600);
  });

  it('does not wait long for one that is silent', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using silence = await openSilence();
    await using operator = await OperatorStream.open();
    await using folder = await openFolder();
    const seed = path.join(folder.path, 'seed');
    const encoded = encodeSeed(bundleWith(compiledPolicy({ scope: 'Pod', capacity: 2 })));
    assert(encoded.kind === 'seed');
    await writeFile(seed, encoded.text);
    const flags = await operator.enlist('pod-1');
    const source = [
      ...flags.map((one) => (one === operator.url ? `https://127.0.0.1:${silence.port}` : one)),
      '--seed',
      seed,
    ];

    await using sidecar = await SidecarProcess.open({ source, upstreamPort: upstream.port });

    assert.deepEqual(await statuses(sidecar.port, 'a', 3), [200, 200, 429]);
    assert.equal(await sidecar.metric('weir_config_origin', '{origin="seed"}'), 1);
    assert.equal(await readiness(sidecar), 200);
  });

  const spoilt: Readonly<Record<string, (text: string) => string>> = {
    'with a byte changed': (text) => text.replace('"capacity":1', '"capacity":9'),
    'cut short': (text) => text.slice(0, -20),
    'that is empty': () => '',
  };
  for (const [which, spoil] of Object.entries(spoilt)) {
    it(`does not use a cache ${which}`, async () => {
      await using upstream = await AnsweringUpstream.open(OK);
      await using operator = await OperatorStream.open();
      await using cache = await openFolder();
      operator.world.policies = [compiledPolicy({ scope: 'Pod', capacity: 1 })];
      const source = [...(await operator.enlist('pod-1')), '--config-cache', cache.path];
      const file = path.join(cache.path, 'config.json');
      {
        await using first = await SidecarProcess.open({ source, upstreamPort: upstream.port });
        await eventually('it is cached', async () =>
          (await readdir(cache.path)).includes('config.json'),
        );
        assert.equal(await readiness(first), 200);
      }
      await operator.stop();
      await writeFile(file, spoil(await readFile(file, 'utf8')));

      await using second = await SidecarProcess.open({ source, upstreamPort: upstream.port });

      assert.equal(await readiness(second), 503);
      assert.equal(second.events('cache-unusable').length, 1);
    });
  }

  it('does not use the cache of another pod', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    await using cache = await openFolder();
    operator.world.policies = [compiledPolicy({ scope: 'Pod', capacity: 1 })];
    const flags = ['--config-cache', cache.path];
    {
      await using first = await operator.sidecar('pod-1', { upstreamPort: upstream.port, flags });
      await eventually('it is cached', async () =>
        (await readdir(cache.path)).includes('config.json'),
      );
      assert.equal(await readiness(first), 200);
    }
    await operator.stop();

    await using second = await operator.sidecar('pod-2', { upstreamPort: upstream.port, flags });

    assert.equal(await readiness(second), 503);
    assert.match(String(second.events('cache-unusable')[0]?.['reason']), /another pod/);
  });

  it('answers 503 and is not ready without any rules, until they come', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    await operator.stop();
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });
    const ready = await readiness(sidecar);
    await using client = await RawSocket.connect(sidecar.port);

    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const answer = await client.until('\r\n\r\n');

    assert.equal(ready, 503);
    assert.match(answer, /^HTTP\/1\.1 503 Service Unavailable\r\n/);
    assert.match(answer, /\r\nRetry-After: 1\r\n/i);
    assert.match(answer, /\r\nConnection: close\r\n/i);
    assert.equal(upstream.heads.length, 0);
    await operator.start();
    await eventually('it is ready', async () => (await readiness(sidecar)) === 200);
    assert.deepEqual(await statuses(sidecar.port, 'a', 1), [200]);
  });

  it('forwards and is ready without any rules when told so, and says so', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy({ scope: 'Pod', capacity: 1 })];
    await operator.stop();
    await using sidecar = await operator.sidecar('pod-1', {
      upstreamPort: upstream.port,
      flags: ['--on-no-config', 'allow'],
    });

    assert.deepEqual(await statuses(sidecar.port, 'a', 3), [200, 200, 200]);
    assert.equal(await readiness(sidecar), 200);
    assert.equal(await sidecar.metric('weir_config_origin', '{origin="none"}'), 1);
    assert.match(String(sidecar.events('no-config')[0]?.msg), /every request is forwarded/);
    await operator.start();
    await eventually('rules have come', async () => {
      return (await sidecar.metric('weir_config_origin', '{origin="stream"}')) === 1;
    });
    assert.deepEqual(await statuses(sidecar.port, 'a', 2), [200, 429]);
  });
});

describe('a sidecar whose operator goes away', () => {
  it('goes on enforcing, and takes what changed meanwhile when it is back', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using operator = await OperatorStream.open();
    operator.world.policies = [compiledPolicy({ scope: 'Pod', capacity: 2 })];
    await using sidecar = await operator.sidecar('pod-1', { upstreamPort: upstream.port });

    await operator.stop();
    await eventually('it has noticed', () => sidecar.events('operator-away').length > 0);
    const meanwhile = await statuses(sidecar.port, 'a', 3);
    operator.world.set({
      policies: [compiledPolicy({ scope: 'Pod', capacity: 5, generation: 2 })],
    });
    await operator.start();
    await sidecar.untilCapacity(5);

    assert.deepEqual(meanwhile, [200, 200, 429]);
    assert.equal(await readiness(sidecar), 200);
  });
});

describe('settings of an operator', () => {
  const refused: Readonly<Record<string, readonly [readonly string[], RegExp]>> = {
    'beside policy files': [
      ['--policy', 'a.yaml', '--operator', 'https://a:1'],
      /--policy.*--operator/s,
    ],
    'beside a store': [
      ['--redis', 'redis://a', '--operator', 'https://a:1'],
      /--redis.*--operator/s,
    ],
    'without the pod': [['--operator', 'https://a:1'], /--pod-namespace/],
    'over plain HTTP': [['--operator', 'http://a:1'], /https/],
    'and policy files both missing': [[], /--policy.*--operator/s],
    'with listeners that have no upstream': [
      ['--policy', 'a', '--listen', 'a:1', '--listen', 'a:2'],
      /as many of both/,
    ],
  };
  for (const [which, [flags, sentence]] of Object.entries(refused)) {
    it(`${which} are refused with what would be right`, async () => {
      const { code, stderr } = await runWeir(['run', '--upstream', 'localhost:1', ...flags]);

      assert.equal(code, 2);
      assert.match(stderr, sentence);
    });
  }
});
