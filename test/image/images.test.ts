// The images as a cluster would run them: an arbitrary user, a read-only root, no capability.
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { targets, type Target } from '../../scripts/images/build-images.ts';
import { readSavedConfig } from '../../scripts/images/image-archive.ts';
import { filesOf, OF_THE_ENGINE, openImages } from './image-under-test.ts';
import type { ImageEntry, ImagesUnderTest } from './image-under-test.ts';

const SIDECAR_BUDGET_BYTES = 80_000_000;
const MACHINE_NAME_MIN = 6;
const root = path.join(import.meta.dirname, '..', '..');
const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: three }
spec: { selector: {}, rules: [{ name: all, buckets: [{ capacity: 3, refill: { tokens: 1, every: 1h } }] }] }
`;

let folder = '';
let images: ImagesUnderTest;
/** Of redirect-init, which has what the others have and more. */
let files: ReadonlyMap<string, ImageEntry> = new Map();

before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'weir-image-test-'));
  await chmod(folder, 0o755);
  await writeFile(path.join(folder, 'policy.yaml'), POLICY);
  images = await openImages(folder);
  files = await filesOf(images, tagOf('redirect-init'), folder);
});

after(async () => {
  await images[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function tagOf(target: Target): string {
  return images.built.images[target].tag;
}

/** As restricted as Pod Security's `restricted` and more: no network but its own loopback. */
const RESTRICTED = [
  ...['--network', 'none', '--read-only', '--cap-drop', 'ALL'],
  ...['--security-opt', 'no-new-privileges'],
];
/** No entry in any passwd; group 0, as OpenShift gives it. */
const SOMEBODY = ['--user', '1000680000:0'];

/** The command with the flags of its first line, of which a first line in the image could have one; the operator has none. */
async function entryPointOf(target: Target): Promise<readonly string[]> {
  const [first = ''] = (await readFile(path.join(root, 'cli', 'main.ts'), 'utf8')).split('\n', 1);
  const flags = first.split(' ').filter((word) => word.startsWith('--'));
  return ['/usr/local/bin/node', ...(target === 'operator' ? [] : flags), '/usr/local/bin/weir'];
}

function run(args: readonly string[]): Promise<string> {
  return images.docker.run(['run', '--rm', ...RESTRICTED, ...args]);
}

/** A container that runs until the test ends. */
async function start(t: TestContext, args: readonly string[]): Promise<string> {
  const container = (await images.docker.run(['run', '--detach', ...RESTRICTED, ...args])).trim();
  t.after(() => images.docker.run(['rm', '--force', container]));
  return container;
}

function text(file: string): string {
  const entry = files.get(file);
  assert.ok(entry, `${file} is in the image`);
  return entry.contents.toString('utf8');
}

describe('what is in the images', () => {
  it('is no shell and no tool that a shell would use', () => {
    const programs = [...files].filter(([, { type }]) => type !== 'directory');
    const names = new Set(programs.map(([file]) => path.basename(file)));

    for (const name of [
      'sh',
      'bash',
      'dash',
      'busybox',
      'env',
      'npm',
      'perl',
      'apt-get',
      'dpkg',
      'curl',
    ]) {
      assert.ok(!names.has(name), `there is ${name}`);
    }
  });

  it('is no script that would want one', () => {
    const scripts = [...files].filter(
      ([file, { contents, mode }]) =>
        (mode & 0o111) !== 0 &&
        contents.subarray(0, 2).toString() === '#!' &&
        !file.startsWith('/usr/share/doc/'),
    );

    assert.deepEqual(
      scripts.map(([file, { contents }]) => [file, contents.toString('utf8').split('\n', 1)[0]]),
      [['/usr/local/lib/weir/weir.mjs', '#!/usr/local/bin/node --max-semi-space-size=4']],
    );
  });

  it('gives nobody rights of somebody else', () => {
    const set = [...files].filter(([, { mode, type }]) => type === 'file' && (mode & 0o6000) !== 0);

    assert.deepEqual(
      set.map(([file]) => file),
      [],
    );
  });

  it('can be written by root alone, but for the temporary folders', () => {
    const writable = [...files].filter(
      ([file, { mode, uid, type }]) =>
        ['file', 'directory'].includes(type) &&
        ((mode & 0o022) !== 0 || uid !== 0) &&
        !OF_THE_ENGINE.includes(file),
    );

    // All of them are folders that Debian's base-files brings; the root is read-only in a pod.
    const expected = ['/tmp', '/var/local', '/var/lock', '/var/tmp'];
    assert.deepEqual(
      writable.map(([file]) => file).filter((file) => !expected.includes(file)),
      [],
    );
  });

  it('can be read by everybody', () => {
    const hidden = [...files].filter(
      ([, { mode, type }]) =>
        (type === 'file' && (mode & 0o004) === 0) ||
        (type === 'directory' && (mode & 0o005) !== 0o005),
    );

    assert.deepEqual(
      hidden.map(([file]) => file),
      [],
    );
  });

  it('names neither this machine nor a place on it', () => {
    const places = [`${root}/`, `${homedir()}/`, '/weir/node_modules/'];
    // A short name is a word of some other text as well.
    const words = hostname().length < MACHINE_NAME_MIN ? places : [...places, hostname()];
    const ours = [...files].filter(
      ([file, { type }]) =>
        type === 'file' &&
        file !== '/usr/local/bin/node' &&
        !OF_THE_ENGINE.includes(file) &&
        /^\/(etc|usr\/local|usr\/share\/doc\/weir|var)\//.test(file),
    );

    for (const [file, { contents }] of ours) {
      const found = words.filter((word) => contents.includes(word));
      assert.deepEqual(found, [], `${file} names ${found.join(', ')}`);
    }
  });

  it('trusts the authorities of its CA package and no other', () => {
    const own = [...files].filter(([file]) =>
      file.startsWith('/usr/share/ca-certificates/mozilla/'),
    );
    const packaged = own.map(([, { contents }]) => contents.toString('utf8')).join('');
    const trusted = text('/etc/ssl/certs/ca-certificates.crt').split('-----END CERTIFICATE-----');

    for (const certificate of trusted) assert.ok(packaged.includes(certificate.trim()));
  });
});

interface Contents {
  readonly bomFormat: string;
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly licenses?: readonly unknown[];
    readonly properties?: readonly { readonly name: string; readonly value: string }[];
  }[];
}

describe('the list of contents', () => {
  const contents = (): Contents =>
    JSON.parse(text('/usr/share/doc/weir/sbom.cdx.json')) as Contents;

  it('names Node.js, the packages of the bundle and those of Debian', () => {
    const { bomFormat, components } = contents();
    const names = components.map(({ name }) => name);

    assert.equal(bomFormat, 'CycloneDX');
    for (const name of [
      'node',
      'zod',
      'ioredis',
      'libc6',
      'libatomic1',
      'iptables',
      'libxtables12',
    ]) {
      assert.ok(names.includes(name), `${name} is listed`);
    }
  });

  it('names every Debian package that a scanner would find, once', () => {
    const found = [...files.keys()]
      .filter((file) => file.startsWith('/var/lib/dpkg/status.d/'))
      .map((file) => path.basename(file));
    const listed = contents().components.filter(({ purl }) => purl.startsWith('pkg:deb/'));

    assert.deepEqual(
      listed.map(({ name }) => name).sort(),
      found.filter((name) => files.get(`/var/lib/dpkg/status.d/${name}`)?.type === 'file').sort(),
    );
  });

  it('gives every component a licence, whose text is in the image', () => {
    for (const { name, version, licenses = [], properties = [] } of contents().components) {
      assert.equal(licenses.length, 1, `${name} ${version} has a licence`);
      const file = properties.find((one) => one.name === 'weir:licence-file')?.value ?? '';
      assert.ok(text(file).length > 100, `${file} has the text`);
    }
  });
});

describe('each image', () => {
  it('says who it is, runs as a number and leaves health to probes', async () => {
    for (const target of targets) {
      const { tags, config } = await readSavedConfig(images.built.images[target].archive);
      const labels = config.config.Labels ?? {};

      assert.deepEqual(tags, [`weir.dev/${target}:${images.built.version}`]);
      assert.equal(config.config.User, '65532:65532');
      assert.deepEqual(config.config.Entrypoint, await entryPointOf(target));
      assert.equal(config.config.Healthcheck, undefined);
      assert.equal(labels['org.opencontainers.image.title'], `Weir ${target}`);
      assert.equal(labels['org.opencontainers.image.version'], images.built.version);
      for (const name of ['description', 'revision', 'licenses', 'base.name']) {
        assert.ok(labels[`org.opencontainers.image.${name}`], `${target} has the label ${name}`);
      }
    }
  });

  it('keeps variables of the build to the build', async () => {
    for (const target of targets) {
      const { config } = await readSavedConfig(images.built.images[target].archive);
      const said = `${JSON.stringify(config.config.Env)} ${JSON.stringify(config.history)}`;

      assert.doesNotMatch(said, /proxy|NODE_EXTRA_CA_CERTS|https?:\/\//i);
    }
  });

  it('is small: the sidecar keeps its budget, redirect-init adds little to it', (t) => {
    const { sidecar, operator, 'redirect-init': redirect } = images.built.images;
    t.diagnostic(
      `sidecar ${sidecar.compressedBytes}, redirect-init beyond it ${redirect.extraCompressedBytes}`,
    );

    assert.ok(sidecar.compressedBytes <= SIDECAR_BUDGET_BYTES);
    assert.equal(operator.extraCompressedBytes, 0);
    assert.ok(redirect.extraCompressedBytes < 2_000_000);
  });

  it('runs for any user on a read-only root', async () => {
    for (const target of targets) {
      const said = await run([...SOMEBODY, tagOf(target), '--version']);

      assert.equal(said.trim(), images.built.version);
    }
  });
});

describe('the sidecar image', () => {
  const mounted = (): readonly string[] => ['--volume', `${folder}/policy.yaml:/policy.yaml:ro`];

  it('checks a policy', async () => {
    const said = await run([...SOMEBODY, ...mounted(), tagOf('sidecar'), 'check', '/policy.yaml']);

    assert.match(said, /^Policy .*three/);
  });

  it('obeys NODE_OPTIONS beside the flags of its entry point', async () => {
    const script = 'console.log(Math.round(v8.getHeapStatistics().heap_size_limit / 2 ** 20))';
    const limits = await Promise.all(
      ['--max-old-space-size=100', '--max-old-space-size=200'].map(async (flag) =>
        run([
          '--env',
          `NODE_OPTIONS=${flag}`,
          '--entrypoint',
          'node',
          tagOf('sidecar'),
          '-e',
          script,
        ]),
      ),
    );

    assert.equal(Number(limits[1]) - Number(limits[0]), 100);
    const said = await run([
      '--env',
      'NODE_OPTIONS=--max-old-space-size=100',
      tagOf('sidecar'),
      '--version',
    ]);
    assert.equal(said.trim(), images.built.version);
  });

  it('serves: three requests of a bucket of three, and refuses the fourth', async (t) => {
    const options = ['run', '--policy', '/policy.yaml', '--upstream', '127.0.0.1:3000'];
    const container = await start(t, [...SOMEBODY, ...mounted(), tagOf('sidecar'), ...options]);
    await images.docker.run(['exec', container, 'weir', 'wait', '--admin', '127.0.0.1:15090']);
    const memory = await images.docker.run(['exec', container, 'node', '-p', RESIDENT]);
    t.diagnostic(`resident when idle: ${memory.trim()} MiB`);

    const answers = await images.docker.run(['exec', container, 'node', '-e', ASK]);

    assert.deepEqual(JSON.parse(answers), [200, 200, 200, 429]);
  });
});

/** Of the first process. */
const RESIDENT = `Math.round(/VmRSS:\\s+(\\d+)/.exec(fs.readFileSync('/proc/1/status', 'utf8'))[1] / 1024)`;
/** Is the application, asks for it through the sidecar, and writes the statuses. */
const ASK = `
const server = http.createServer((_, response) => response.end('ok')).listen(3000, async () => {
  const statuses = [];
  for (let i = 0; i < 4; i += 1) statuses.push((await fetch('http://127.0.0.1:8080/')).status);
  console.log(JSON.stringify(statuses));
  process.exit();
});`;

describe('the redirect-init image', () => {
  const NET_ADMIN = ['--user', '0', '--cap-add', 'NET_ADMIN'];

  it('writes its rules with NET_ADMIN alone, for both families', async () => {
    const args = ['redirect', '--forward', '8080:15100', '--output', 'json'];
    const said = await run([...NET_ADMIN, tagOf('redirect-init'), ...args]);
    const { families } = JSON.parse(said) as {
      readonly families: readonly { readonly kind: string }[];
    };

    assert.equal(families[0]?.kind, 'in-force');
    assert.notEqual(families[1]?.kind, undefined);
  });

  it('says what is missing as the user of the image', async () => {
    const args = ['redirect', '--forward', '8080:15100'];

    await assert.rejects(
      run(['--cap-add', 'NET_ADMIN', tagOf('redirect-init'), ...args]),
      /set runAsUser: 0 and runAsNonRoot: false/,
    );
  });

  it('has the programs of both interfaces of the kernel, with all they are linked against', async () => {
    for (const program of [
      'iptables-nft',
      'ip6tables-nft',
      'iptables-legacy',
      'ip6tables-legacy',
    ]) {
      const said = await run(['--entrypoint', program, tagOf('redirect-init'), '--version']);

      assert.match(said, /^ip6?tables v1\./);
    }
  });
});
