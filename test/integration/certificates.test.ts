import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, symlink, unlink, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { createAuthority, issueLeaf } from '../../operator/certificates/authority.ts';
import type { KeyPair } from '../../operator/certificates/authority.ts';
import { openCertificateFiles } from '../../operator/certificates/certificate-files.ts';
import type { CertificateSource } from '../../operator/certificates/certificate-source.ts';
import { openOwnCertificates } from '../../operator/certificates/own-certificates.ts';
import { CA_LIFE_MS, LEAF_LIFE_MS, OVERLAP_MS } from '../../operator/certificates/rotation.ts';
import type { Clock } from '../../operator/clock.ts';
import { silentLog } from '../../operator/log.ts';
import { SecretApi } from '../support/secret-api.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

/** Time that jumps by months: nobody is woken on the way, a test asks for a look where it wants one. */
class Calendar implements Clock {
  #passedMs = 0;

  nowMs(): number {
    return this.#passedMs;
  }

  wallMs(): number {
    return Date.UTC(2026, 0, 1) + this.#passedMs;
  }

  after(): Disposable {
    return { [Symbol.dispose]: () => undefined };
  }

  pass(ms: number): void {
    this.#passedMs += ms;
  }
}

const { signal } = new AbortController();
const NAMES = ['weir-operator.weir-system.svc', '10.0.0.7', 'fd00::7'];

interface Replica {
  readonly isLeader?: boolean;
  readonly metrics?: Registry;
}

function open(api: SecretApi, clock: Calendar, replica: Replica = {}): Promise<CertificateSource> {
  return openOwnCertificates(
    {
      ...{ api: api.calls, namespace: 'weir-system', names: NAMES, clock, random: () => 0 },
      ...{ isLeader: () => replica.isLeader ?? false, log: silentLog() },
      metrics: replica.metrics ?? new Registry(),
    },
    signal,
  );
}

function authorities(trust: string): readonly X509Certificate[] {
  const texts = trust.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  return texts.map((text) => new X509Certificate(text));
}

function isTrusted(cert: string, trust: string): boolean {
  const leaf = new X509Certificate(cert);
  return authorities(trust).some(
    (authority) => leaf.checkIssued(authority) && leaf.verify(authority.publicKey),
  );
}

async function refreshAt(source: CertificateSource, clock: Calendar, ms: number): Promise<void> {
  clock.pass(ms);
  await source.refresh(signal);
}

const DAY_MS = 86_400_000;

describe('certificates of our own authority', () => {
  it('are for every name and address that was asked for, and signed by what is in the Secret', async () => {
    const api = new SecretApi();
    const clock = new Calendar();

    await using source = await open(api, clock);

    const { cert, trust, notAfterMs } = source.current();
    const leaf = new X509Certificate(cert);
    assert.equal(leaf.checkHost('weir-operator.weir-system.svc'), 'weir-operator.weir-system.svc');
    assert.equal(leaf.checkIP('10.0.0.7'), '10.0.0.7');
    assert.equal(leaf.checkIP('fd00::7'), 'fd00::7');
    assert.equal(leaf.ca, false);
    assert.ok(isTrusted(cert, trust));
    assert.ok(Math.abs(notAfterMs - clock.wallMs() - LEAF_LIFE_MS) <= 1_000);
    assert.equal(authorities(trust)[0]?.ca, true);
  });

  it('have one authority, whoever of several replicas comes first', async () => {
    const api = new SecretApi();
    const clock = new Calendar();

    const sources = await Promise.all([1, 2, 3].map(() => open(api, clock)));

    await using _all = new AsyncDisposableStack();
    for (const source of sources) _all.use(source);
    assert.equal(api.writes, 1);
    assert.equal(new Set(sources.map((source) => source.current().trust)).size, 1);
    assert.equal(new Set(sources.map((source) => source.current().cert)).size, 3);
  });

  it('are renewed at two thirds of their life, and listeners hear of it', async () => {
    const api = new SecretApi();
    const clock = new Calendar();
    await using source = await open(api, clock);
    const heard: string[] = [];
    source.onChange(() => {
      throw new Error('a listener that fails');
    });
    source.onChange(({ cert }) => heard.push(cert));
    const first = source.current().cert;

    await refreshAt(source, clock, (LEAF_LIFE_MS * 2) / 3 - DAY_MS);
    assert.equal(source.current().cert, first);
    await refreshAt(source, clock, DAY_MS);

    assert.notEqual(source.current().cert, first);
    assert.deepEqual(heard, [source.current().cert]);
  });

  it('follow the authority through its three steps, which only the leader takes', async () => {
    const api = new SecretApi();
    const clock = new Calendar();
    await using leader = await open(api, clock, { isLeader: true });
    await using other = await open(api, clock);
    const first = other.current();

    clock.pass((CA_LIFE_MS * 2) / 3);
    await other.refresh(signal);
    assert.equal(api.writes, 1);
    await leader.refresh(signal);
    await other.refresh(signal);
    const introduced = other.current();
    assert.equal(authorities(introduced.trust).length, 2);
    assert.ok(isTrusted(introduced.cert, first.trust), 'the first authority still signs');

    clock.pass(OVERLAP_MS);
    await leader.refresh(signal);
    await other.refresh(signal);
    const promoted = other.current();
    assert.ok(!isTrusted(promoted.cert, first.trust), 'the next one signs');
    assert.ok(isTrusted(promoted.cert, introduced.trust), 'who was told of it trusts it');
    assert.ok(isTrusted(introduced.cert, promoted.trust), 'what was signed before is trusted');

    clock.pass(LEAF_LIFE_MS + 3_600_000);
    await leader.refresh(signal);
    await other.refresh(signal);
    assert.equal(authorities(other.current().trust).length, 1);
    assert.equal(api.writes, 4);
  });

  it('are there again after a year of sleep, without a leader', async () => {
    const api = new SecretApi();
    const clock = new Calendar();
    await (await open(api, clock))[Symbol.asyncDispose]();
    clock.pass(CA_LIFE_MS + DAY_MS);

    await using source = await open(api, clock);

    assert.ok(source.current().notAfterMs > clock.wallMs());
    assert.ok(isTrusted(source.current().cert, source.current().trust));
  });

  it('stay as they are while the Secret cannot be used, and do not begin with one', async () => {
    const api = new SecretApi();
    const clock = new Calendar();
    await using source = await open(api, clock);
    const good = source.current();
    api.secret = { metadata: { name: 'weir-ca' }, ...{ data: { 'ca.crt': 'bm9uZQ==' } } };

    await source.refresh(signal);

    assert.deepEqual(source.current(), good);
    await assert.rejects(open(api, clock), { code: 'CERTIFICATE_INVALID' });
  });

  it('say when they end', async () => {
    const metrics = new Registry();
    const clock = new Calendar();
    await using source = await open(new SecretApi(), clock, { metrics });

    const text = await metrics.metrics();

    const end = source.current().notAfterMs / 1_000;
    assert.match(text, new RegExp(`weir_tls_not_after_seconds\\{certificate="serving"\\} ${end}`));
    assert.match(text, /weir_tls_not_after_seconds\{certificate="authority"\} \d+/);
  });
});

/** A folder as the kubelet makes it: the files are links through a folder that is swapped as a whole. */
class SecretFolder implements AsyncDisposable {
  readonly folder: string;
  #round = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<SecretFolder> {
    const made = new SecretFolder(await mkdtemp(path.join(tmpdir(), 'weir-certs-')));
    for (const name of ['tls.crt', 'tls.key', 'ca.crt']) {
      await symlink(path.join('..data', name), path.join(made.folder, name));
    }
    return made;
  }

  async put({ cert, key }: KeyPair, ca: string): Promise<void> {
    this.#round += 1;
    const round = `..${this.#round}`;
    await mkdir(path.join(this.folder, round));
    const texts = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca };
    for (const [name, text] of Object.entries(texts)) {
      await writeFile(path.join(this.folder, round, name), text);
    }
    const link = path.join(this.folder, '..data');
    await unlink(link).catch(() => undefined);
    await symlink(round, link);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

describe('certificates from files', () => {
  const nowMs = new SteppedClock().wallMs();
  const openFiles = (folder: string, clock: SteppedClock): Promise<CertificateSource> =>
    openCertificateFiles({ folder, clock, log: silentLog(), metrics: new Registry() });

  it('are read again after the kubelet has swapped the folder', async () => {
    await using secret = await SecretFolder.create();
    const clock = new SteppedClock();
    const authority = await createAuthority(nowMs);
    const first = await issueLeaf(authority, { names: NAMES, nowMs });
    const second = await issueLeaf(authority, { names: NAMES, nowMs });
    await secret.put(first, authority.cert);
    await using source = await openFiles(secret.folder, clock);
    const { promise: heard, resolve } = Promise.withResolvers<string>();
    source.onChange(({ cert }) => {
      resolve(cert);
    });

    await secret.put(second, authority.cert);
    await clock.advance(10_000);

    assert.equal(await heard, second.cert);
    assert.equal(source.current().key, second.key);
  });

  it('stay as they are when the new ones do not fit each other or are over', async () => {
    await using secret = await SecretFolder.create();
    const clock = new SteppedClock();
    const authority = await createAuthority(nowMs);
    const good = await issueLeaf(authority, { names: NAMES, nowMs });
    const other = await issueLeaf(authority, { names: NAMES, nowMs });
    const past = await issueLeaf(await createAuthority(nowMs - CA_LIFE_MS), {
      ...{ names: NAMES, nowMs: nowMs - LEAF_LIFE_MS - 1_000 },
    });
    await secret.put(good, authority.cert);
    await using source = await openFiles(secret.folder, clock);

    for (const bad of [{ cert: good.cert, key: other.key }, past, { cert: '', key: '' }]) {
      await secret.put(bad, authority.cert);
      await source.refresh(signal);
      assert.equal(source.current().cert, good.cert);
    }
  });

  it('are asked for by name where they are missing', async () => {
    await using secret = await SecretFolder.create();

    await assert.rejects(openFiles(secret.folder, new SteppedClock()), (error: Error) => {
      assert.ok('details' in error);
      assert.match(JSON.stringify(error.details), /tls\.crt/);
      return true;
    });
  });
});
