// The redirect rules in a network of the test's own: a pod with an app and a sidecar, and a client elsewhere.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import {
  addresses,
  openPodNetwork,
  whyNoNetwork,
  type Ended,
  type Namespace,
} from '../support/pod-network.ts';

const root = path.join(import.meta.dirname, '..', '..');
const weir = [
  process.execPath,
  process.env['WEIR_TEST_BUNDLE'] ?? path.join(root, 'cli', 'main.ts'),
];
const PAIRS = ['--forward', '8080:15100', '--probe', '15300:8080'];

const skip = whyNoNetwork() ?? false;
if (skip !== false) process.stdout.write(`the redirect rules are not tested here: ${skip}\n`);

/** A server that says which port it listens on. */
const SERVER = `
  const port = Number(process.argv[1]);
  require('node:http')
    .createServer((request, response) => response.end(String(port)))
    .listen(port, '::', () => console.log('listening'));`;

async function startServer(pod: Namespace, port: number): Promise<void> {
  await pod.start([process.execPath, '-e', SERVER, String(port)]);
}

const ASK = `
  fetch(process.argv[1], { signal: AbortSignal.timeout(5000) })
    .then((answer) => answer.text(), (error) => error.cause?.code ?? error.name)
    .then((text) => process.stdout.write(text));`;

/** The port that answered, or the code of the fault. */
async function ask(from: Namespace, host: string, port: number): Promise<string> {
  const name = host.includes(':') ? `[${host}]` : host;
  const { stdout } = await from.run([process.execPath, '-e', ASK, `http://${name}:${port}/`]);
  return stdout;
}

function redirect(pod: Namespace, flags: readonly string[] = PAIRS): Promise<Ended> {
  return pod.run([...weir, 'redirect', ...flags]);
}

async function rulesOf(pod: Namespace, program: string): Promise<readonly string[]> {
  const { stdout } = await pod.run([program, '-t', 'nat', '-S']);
  return stdout.split('\n').filter((line) => line.includes('WEIR'));
}

/** Stands before the real program and fails as it does on a kernel without it. */
async function openBrokenTools(
  names: readonly string[],
): Promise<{ readonly path: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-tools-'));
  const text = '#!/bin/sh\necho "Failed to initialize nft: Protocol not supported" >&2\nexit 1\n';
  for (const name of names) await writeFile(path.join(folder, name), text, { mode: 0o755 });
  return {
    path: `${folder}:${process.env['PATH'] ?? ''}`,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

describe('weir redirect', { skip }, () => {
  it('leads what comes from outside for the port of the app to the sidecar, in both families', async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await startServer(pod, 8080);
    await startServer(pod, 15_100);
    const before = await ask(client, addresses.pod4, 8080);

    const { code, stderr } = await redirect(pod);

    assert.equal(code, 0, stderr);
    assert.equal(before, '8080');
    assert.equal(await ask(client, addresses.pod4, 8080), '15100');
    assert.equal(await ask(client, addresses.pod6, 8080), '15100');
    assert.equal(await ask(client, addresses.pod4, 15_100), '15100');
  });

  it("leads the probe's port to the app, and leaves the pod's own connections alone", async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await startServer(pod, 8080);
    await startServer(pod, 15_100);

    await redirect(pod);

    assert.equal(await ask(client, addresses.pod4, 15_300), '8080');
    assert.equal(await ask(client, addresses.pod6, 15_300), '8080');
    for (const own of ['127.0.0.1', '::1', addresses.pod4, addresses.pod6]) {
      assert.equal(await ask(pod, own, 8080), '8080', own);
    }
    assert.equal(await ask(pod, '127.0.0.1', 15_300), 'ECONNREFUSED');
  });

  it('leaves what the pod asks of others alone', async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await startServer(pod, 15_100);
    await startServer(client, 8080);

    await redirect(pod);

    assert.equal(await ask(pod, addresses.client4, 8080), '8080');
    assert.equal(await ask(pod, addresses.client6, 8080), '8080');
  });

  it('changes nothing the second time, and puts right what somebody changed', async () => {
    await using network = await openPodNetwork();
    const { pod } = network;
    await redirect(pod);
    const first = await rulesOf(pod, 'iptables-nft');

    const again = await redirect(pod, [...PAIRS, '--output', 'json']);
    const second = await rulesOf(pod, 'iptables-nft');
    await pod.run(['iptables-nft', '-t', 'nat', '-D', 'WEIR_REDIRECT', '1']);
    await pod.run(['iptables-nft', '-t', 'nat', '-I', 'PREROUTING', '-j', 'ACCEPT']);
    await pod.run([...'iptables-nft -t nat -A PREROUTING -p tcp -j WEIR_REDIRECT'.split(' ')]);
    const third = await redirect(pod);

    const report = JSON.parse(again.stdout) as { families: { isChanged: boolean }[] };
    assert.deepEqual(
      report.families.map(({ isChanged }) => isChanged),
      [false, false],
    );
    assert.deepEqual(second, first);
    assert.equal(third.code, 0, third.stderr);
    assert.deepEqual(await rulesOf(pod, 'iptables-nft'), first);
    const { stdout } = await pod.run(['iptables-nft', '-t', 'nat', '-S', 'PREROUTING', '1']);
    assert.equal(stdout, '-A PREROUTING -p tcp -j WEIR_REDIRECT\n');
  });

  it('takes other ports when it is run with others', async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await startServer(pod, 8081);
    await startServer(pod, 15_101);
    await redirect(pod);

    await redirect(pod, ['--forward', '8081:15101']);

    assert.equal(await ask(client, addresses.pod4, 8081), '15101');
    assert.deepEqual(await rulesOf(pod, 'ip6tables-nft'), [
      '-N WEIR_REDIRECT',
      '-A PREROUTING -p tcp -j WEIR_REDIRECT',
      '-A WEIR_REDIRECT -p tcp -m tcp --dport 8081 -j REDIRECT --to-ports 15101',
    ]);
  });

  it('writes legacy rules where the kernel has no nf_tables, on a read-only root too', async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await using tools = await openBrokenTools(['iptables-nft', 'ip6tables-nft']);
    await startServer(pod, 15_100);
    const readOnly = ['unshare', '--mount', 'sh', '-c'];
    const script = `mount -t tmpfs none /run && mount -o remount,ro /run && exec "$@"`;
    const command = [...readOnly, script, 'sh', ...weir, 'redirect', ...PAIRS];

    const { code, stdout, stderr } = await pod.run(command, { PATH: tools.path });

    assert.equal(code, 0, stderr);
    assert.match(stdout, /^IPv4: redirected by iptables-legacy: 8080 to 15100, 15300 to 8080\n/);
    assert.equal(await ask(client, addresses.pod4, 8080), '15100');
    assert.equal(await ask(client, addresses.pod6, 8080), '15100');
    assert.deepEqual(await rulesOf(pod, 'iptables-nft'), []);
  });

  it('lets a pod without IPv6 start without ip6tables, and no other', async () => {
    await using without = await openPodNetwork({ ipv6: false });
    await using withIpv6 = await openPodNetwork();
    await using tools = await openBrokenTools(['ip6tables-nft', 'ip6tables-legacy']);
    const run = (pod: Namespace): Promise<Ended> =>
      pod.run([...weir, 'redirect', ...PAIRS], { PATH: tools.path });

    const [allowed, refused] = [await run(without.pod), await run(withIpv6.pod)];

    assert.equal(allowed.code, 0, allowed.stderr);
    assert.match(allowed.stdout, /\nIPv6: left out: no IPv6 address beyond the link/);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /REDIRECT_FAILED[^]*ip6tables-nft -S: Failed to initialize nft/);
  });

  it('fails without NET_ADMIN, and says what the container needs', async () => {
    await using network = await openPodNetwork();
    const { pod } = network;
    const command = [...weir, 'redirect', ...PAIRS];
    const dropped = ['setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'];
    // It may read the checkout, wherever that is, and has no other capability.
    const reading = ['--inh-caps', '+dac_override', '--ambient-caps', '+dac_override'];
    const asUser = ['setpriv', '--reuid', '65532', '--clear-groups', ...reading];

    const asRoot = await pod.run([...dropped, ...command]);
    const unprivileged = await pod.run([...asUser, ...command]);

    assert.equal(asRoot.code, 1);
    assert.match(asRoot.stderr, /REDIRECT_FAILED[^]*capabilities\.add: \[NET_ADMIN\]/);
    assert.equal(unprivileged.code, 1);
    assert.match(unprivileged.stderr, /REDIRECT_FAILED[^]*user 65532[^]*runAsUser: 0/);
    assert.deepEqual(await rulesOf(pod, 'iptables-nft'), []);
  });

  it('works with NET_ADMIN alone', async () => {
    await using network = await openPodNetwork();
    const { pod, client } = network;
    await startServer(pod, 15_100);
    const alone = [...'setpriv --bounding-set -all,+net_admin --inh-caps -all'.split(' ')];

    const { code, stderr } = await pod.run([...alone, ...weir, 'redirect', ...PAIRS]);

    assert.equal(code, 0, stderr);
    assert.equal(await ask(client, addresses.pod4, 8080), '15100');
  });

  it('prints the commands and runs none with --dry-run', async () => {
    await using network = await openPodNetwork();
    const { pod } = network;

    const { code, stdout } = await redirect(pod, [...PAIRS, '--dry-run']);
    const untouched = await rulesOf(pod, 'iptables-nft');
    for (const line of stdout.trim().split('\n')) await pod.run(line.split(' '));
    const after = await redirect(pod, [...PAIRS, '--output', 'json']);

    assert.equal(code, 0);
    assert.deepEqual(untouched, []);
    // What was printed is all that is needed.
    assert.ok(!after.stdout.includes('"isChanged": true'), after.stdout);
  });
});
