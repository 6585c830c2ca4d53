// What is installed is the bundle, so its parts are run once each: the sources' suites say what they do.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { before, after, describe, it } from 'node:test';
import { openRedisServer } from '../support/redis.ts';
import { runWeir, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const root = path.join(import.meta.dirname, '..', '..');

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: all }
spec:
  selector: {}
  rules:
    - name: cel
      match: [{ cel: { expression: "request.path.startsWith('/v1')" } }, { path: { type: Regex, value: "^/v2" } }]
      buckets: [{ capacity: 2, refill: { tokens: 1, every: 1h } }]
`;

describe('the bundle', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'weir-bundle-'));
    const script = path.join(root, 'scripts', 'build.ts');
    const built = spawnSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' });
    assert.equal(built.status, 0, built.stderr);
    process.env['WEIR_TEST_BUNDLE'] = path.join(folder, 'weir.mjs');
  });
  after(async () => {
    delete process.env['WEIR_TEST_BUNDLE'];
    await rm(folder, { recursive: true, force: true });
  });

  it('enforces CEL and RE2 rules over Redis, with its script inside', async () => {
    await using upstream = await AnsweringUpstream.open(
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    );
    await using redis = await openRedisServer();
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': POLICY },
      upstreamPort: upstream.port,
      flags: ['--redis', redis.url],
    });
    const get = async (route: string): Promise<number> =>
      (await fetch(`http://127.0.0.1:${sidecar.port}${route}`)).status;

    assert.deepEqual(
      [await get('/v1'), await get('/v2'), await get('/v1'), await get('/v3')],
      [200, 200, 429, 200],
    );
    assert.equal(await sidecar.metric('weir_requests_total', '{verdict="denied"}'), 1);
    assert((await sidecar.bundle()).version.length > 0);
  });

  it('loads nothing of TLS and fetch for a sidecar that uses neither', async () => {
    const [preload, list] = [path.join(folder, 'tell.mjs'), path.join(folder, 'loaded')];
    const tell = `process.on('exit', () => { writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join('\\n')); });`;
    await writeFile(preload, `import { writeFileSync } from 'node:fs'; ${tell}`);
    await using upstream = await AnsweringUpstream.open(
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    );
    await using redis = await openRedisServer();
    {
      await using sidecar = await SidecarProcess.open({
        files: { 'a.yaml': POLICY },
        upstreamPort: upstream.port,
        flags: ['--redis', redis.url],
        env: { NODE_OPTIONS: `--import=${preload}` },
      });
      assert.equal((await fetch(`http://127.0.0.1:${sidecar.port}/v3`)).status, 200);
    }

    const loaded = (await readFile(list, 'utf8')).split('\n');
    assert(loaded.includes('NativeModule net'));
    assert.deepEqual(
      loaded.filter((name) => /NativeModule (tls|internal\/deps\/undici\/undici)$/.test(name)),
      [],
    );
  });

  it('serves with workers', async () => {
    await using upstream = await AnsweringUpstream.open(
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    );
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': POLICY },
      upstreamPort: upstream.port,
      flags: ['--workers', '2'],
    });

    const seen = await Promise.all(
      Array.from(
        { length: 5 },
        async () => (await fetch(`http://127.0.0.1:${sidecar.port}/v1`)).status,
      ),
    );

    assert.equal(seen.filter((status) => status === 200).length, 2);
  });

  it('checks files and says its version', async () => {
    const check = await runWeir(['check', 'examples/jwt-claims.yaml']);
    const version = await runWeir(['--version']);

    assert.equal(check.code, 0, check.stderr);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
  });
});
