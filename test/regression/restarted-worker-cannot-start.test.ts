// A worker that crashed while a policy file was not in order could not start again: nothing was served until somebody
// repaired the file, the log did not say why, and connections of clients that had left were kept.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { kill } from 'node:process';
import { describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { makeCertificates } from '../support/certificates.ts';
import { admitted, keyedPolicy } from '../support/keyed-policy.ts';
import { eventually } from '../support/redis.ts';
import { PolicyFolder, runWeir, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

async function workersOf({ pid }: SidecarProcess): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.trim().split(' ').filter(Boolean).map(Number);
}

async function crash(sidecar: SidecarProcess): Promise<void> {
  const before = sidecar.events('worker-crashed').length;
  for (const pid of await workersOf(sidecar)) kill(pid, 'SIGKILL');
  await eventually('it is noticed', () => sidecar.events('worker-crashed').length > before);
}

async function successorOf(worker: number, sidecar: SidecarProcess): Promise<number> {
  let found: number | undefined;
  await eventually('a successor is started', async () => {
    found = (await workersOf(sidecar)).find((pid) => pid !== worker);
    return found !== undefined;
  });
  assert.ok(found !== undefined);
  return found;
}

/** Of the certificate that a new connection is shown. */
async function serialOf(sidecar: SidecarProcess, ca: string): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port: sidecar.port, ca });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

describe('a worker that restarts', () => {
  it('takes over the last good version of a file that is not in order', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    const files = { 'a.yaml': keyedPolicy('one', 2), 'b.yaml': keyedPolicy('two', 30) };
    await using folder = await PolicyFolder.open(files);
    await using sidecar = await SidecarProcess.open({
      ...{ folder, upstreamPort: upstream.port, flags: ['--supervise', 'true'] },
    });
    await folder.write('a.yaml', keyedPolicy('one', 3));
    await sidecar.untilCapacity(3);
    await folder.write('a.yaml', 'oops: [');
    await eventually('it is reported', () => sidecar.events('policy-invalid').length === 1);

    await crash(sidecar);
    const afterCrash = await admitted(sidecar, 'alice', 5);
    await folder.write('a.yaml', keyedPolicy('one', 4));
    await sidecar.untilCapacity(4);

    assert.equal(afterCrash, 3);
    assert.equal(await admitted(sidecar, 'bob', 6), 4);
  });

  it('takes over the policies of a folder that is gone', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using folder = await PolicyFolder.open({ 'a.yaml': keyedPolicy('one', 2) });
    await using sidecar = await SidecarProcess.open({
      ...{ folder, upstreamPort: upstream.port, flags: ['--supervise', 'true'] },
    });
    await rm(folder.path, { recursive: true });

    await crash(sidecar);

    assert.equal(await admitted(sidecar, 'alice', 5), 2);
  });
});

describe('a worker that serves TLS and restarts', () => {
  it('takes over the last good certificate for files that are not in order, until they are', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using certificates = await makeCertificates();
    const [cert, key] = ['server.crt', 'server.key'].map((name) =>
      path.join(certificates.folder, name),
    );
    assert(cert !== undefined && key !== undefined);
    await using sidecar = await SidecarProcess.open({
      ...{ files: { 'a.yaml': keyedPolicy('one', 2) }, upstreamPort: upstream.port },
      flags: ['--workers', '2', '--tls-cert', cert, '--tls-key', key],
    });
    await rm(key);

    await crash(sidecar);
    const before = await serialOf(sidecar, certificates.ca);
    await using next = await makeCertificates();
    await writeFile(cert, await readFile(path.join(next.folder, 'server.crt')));
    await writeFile(key, await readFile(path.join(next.folder, 'server.key')));
    await eventually('the next one is served', async () => {
      const serial = await serialOf(sidecar, next.ca).catch(() => before);
      return serial !== before;
    });

    assert.deepEqual(sidecar.events('worker-failed'), []);
    assert.match(JSON.stringify(sidecar.events('certificate')[0]), /server\.key/);
  });
});

describe('a worker that cannot restart', () => {
  it('is logged with its reason, and tried again', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using certificates = await makeCertificates();
    const ca = path.join(certificates.folder, 'ca.crt');
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': keyedPolicy('one', 2) },
      upstreamPort: upstream.port,
      flags: ['--supervise', 'true', '--redis', 'rediss://127.0.0.1:1', '--redis-ca', ca],
    });
    await rm(ca);

    await crash(sidecar);
    await eventually('its reason is logged', () => sidecar.events('worker-failed').length > 0);
    await writeFile(ca, certificates.ca);
    await eventually(
      'a worker is ready',
      async () => (await sidecar.ask('/readyz')).status === 200,
    );

    const [failed] = sidecar.events('worker-failed');
    assert.equal(failed?.['code'], 'STORE_SETTINGS_INVALID');
    assert.match(JSON.stringify(failed['details']), /ca\.crt/);
  });
});

describe('a connection that waits for a worker', () => {
  it('is closed after the time in which a client has to send a head', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using sidecar = await SidecarProcess.open({
      files: { 'a.yaml': keyedPolicy('one', 2) },
      upstreamPort: upstream.port,
      flags: ['--supervise', 'true', '--header-timeout', '300ms'],
    });
    const [worker = 0] = await workersOf(sidecar);
    await crash(sidecar);
    // Its successor never gets to its first message, so the connection can only wait.
    const next = await successorOf(worker, sidecar);
    kill(next, 'SIGSTOP');
    const socket = connect(sidecar.port, '127.0.0.1');
    socket.on('error', () => undefined);

    await once(socket, 'close');

    kill(next, 'SIGCONT');
    await eventually(
      'a worker is ready',
      async () => (await sidecar.ask('/readyz')).status === 200,
    );
    assert.equal(await admitted(sidecar, 'alice', 3), 2);
  });
});

describe('a worker’s variable in a shell', () => {
  it('is refused in words', async () => {
    const args = ['run', '--policy', 'examples/shortest.yaml', '--upstream', 'a:1'];

    const run = await runWeir(args, { WEIR_WORKER: '1' });

    assert.equal(run.code, 2, run.stderr);
    assert.match(run.stderr, /CONFIG_INVALID[\s\S]*WEIR_WORKER|WEIR_WORKER: got/);
    assert.doesNotMatch(run.stderr, /\n {4}at /);
  });
});
