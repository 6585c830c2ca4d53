// Runs on whatever Node the machine has, before the pinned one: says in words what would otherwise be a loader
// error, and on a fresh Debian or Ubuntu, as root, installs what the tests need. WEIR_INSTALL=0 forbids that.
'use strict';
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '..');
const wantsRedis = process.argv.includes('--redis');
const wantsNode = process.argv.includes('--e2e');

function main() {
  const missing = [];
  if (!pinnedNodeRuns())
    missing.push({ debian: 'libatomic1', why: 'the pinned Node 26 is linked against it' });
  if (wantsRedis && !hasRedis()) {
    missing.push({
      debian: 'redis-tools',
      why: 'it holds the Redis server binary the tests start privately',
    });
  }
  if (missing.length > 0) bring(missing);
  if (wantsRedis && wantsIptables()) bringIfPossible(IPTABLES);
  if (wantsNode) bringNodePrograms();
  if (!pinnedNodeRuns()) {
    fail(
      `Node 26 is needed. On Linux (x64, arm64) it comes with \`npm ci\`; elsewhere install Node >= 26 yourself. ` +
        `This is ${process.platform}-${process.arch} with Node ${process.versions.node}.`,
    );
  }
}

/** The Node that npm scripts will find: the pinned one where the platform has it, the machine's own elsewhere. */
function pinnedNodeRuns() {
  const pinned = path.join(root, 'node_modules', '.bin', 'node');
  const binary = fs.existsSync(pinned) ? pinned : process.execPath;
  const ran = spawnSync(binary, ['-p', 'process.versions.node'], { encoding: 'utf8' });
  return ran.status === 0 && Number.parseInt(ran.stdout, 10) >= 26;
}

function hasRedis() {
  if (process.env.REDIS_URL) return true;
  const names = ['redis-server', 'valkey-server', 'redis-check-rdb'];
  const folders = (process.env.PATH || '').split(path.delimiter);
  return names.some((name) => folders.some((folder) => fs.existsSync(path.join(folder, name))));
}

const IPTABLES = [
  { debian: 'iptables', why: 'the redirect rules are tested with it' },
  { debian: 'iproute2', why: 'the redirect rules are tested in a network made with it' },
];

/** Only root can test the rules; for others these tests are left out, which they say themselves. */
function wantsIptables() {
  if (process.platform !== 'linux' || process.getuid() !== 0) return false;
  const folders = ['/usr/sbin', '/sbin', '/usr/bin', '/bin'];
  const has = (name) => folders.some((folder) => fs.existsSync(path.join(folder, name)));
  return !has('iptables-nft') || !has('ip');
}

/** What builds the images and runs pods; each by a file that tells whether it is there. */
const NODE_PROGRAMS = [
  { debian: 'docker.io', has: 'dockerd', why: 'it builds the images, as a process of our own' },
  { debian: 'containerd', has: 'containerd', why: 'it runs the pods of the tests' },
  { debian: 'runc', has: 'runc', why: 'it starts containers' },
  { debian: 'containernetworking-plugins', has: '/usr/lib/cni/bridge', why: 'it connects pods' },
  { debian: 'iptables', has: 'iptables-nft', why: 'the redirect rules are written with it' },
  { debian: 'nftables', has: 'nft', why: 'Services of the test cluster are rules of nftables' },
  { debian: 'iproute2', has: 'ip', why: 'the network of the test cluster is made with it' },
];

/** Only root can start them; for others the suites that need them say so. */
function bringNodePrograms() {
  if (process.platform !== 'linux' || process.getuid() !== 0) return;
  const folders = [...(process.env.PATH || '').split(path.delimiter), '/usr/sbin', '/sbin'];
  const isThere = (name) => folders.some((folder) => fs.existsSync(path.resolve(folder, name)));
  const missing = NODE_PROGRAMS.filter(({ has }) => !isThere(has));
  if (missing.length > 0) bringIfPossible(missing);
}

function bringIfPossible(missing) {
  try {
    bring(missing);
  } catch {
    console.error('weir: going on without: some tests will be left out.');
  }
}

function bring(missing) {
  const names = missing.map((one) => one.debian);
  const command = `apt-get install -y --no-install-recommends ${names.join(' ')}`;
  for (const one of missing) console.error(`weir: ${one.debian} is missing (${one.why}).`);
  const mayInstall =
    process.env.WEIR_INSTALL !== '0' &&
    typeof process.getuid === 'function' &&
    process.getuid() === 0 &&
    fs.existsSync('/usr/bin/apt-get');
  if (!mayInstall) {
    // Without Redis a container may still serve the tests, so they decide; without libatomic1 nothing runs.
    console.error(`weir: install it with: ${command}   (macOS: brew install redis)`);
    return;
  }
  console.error(`weir: running ${command}`);
  withoutServices(() => install(names));
}

/** Packages like docker.io start a service when they are installed; policy-rc.d is how Debian is told not to. */
function withoutServices(action) {
  const policy = '/usr/sbin/policy-rc.d';
  if (fs.existsSync(policy)) return action();
  fs.writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    action();
  } finally {
    fs.rmSync(policy, { force: true });
  }
}

function install(names) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const quiet = { env, stdio: ['ignore', 'ignore', 'inherit'] };
  try {
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', ...names], {
      ...quiet,
      stdio: 'ignore',
    });
  } catch {
    // A fresh machine has no package lists yet.
    execFileSync('apt-get', ['update', '-q'], quiet);
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', ...names], quiet);
  }
}

function fail(sentence) {
  console.error(`weir: ${sentence}`);
  process.exit(1);
}

main();
