// Certificates from a folder: a Secret of cert-manager's that is mounted, or files of one's own. The kubelet swaps a
// symbolic link, which file notices miss, so the contents are read and compared.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Registry } from 'prom-client';
import { checkPair, invalid, validityOf } from '../../contract/certificate.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { openCertificateMetrics } from './certificate-metrics.ts';
import { IdentityListeners } from './certificate-source.ts';
import type { CertificateSource, ServingIdentity } from './certificate-source.ts';
import { repeatLook } from './repeated-look.ts';

/** The kubelet takes up to a minute to bring a new Secret; ten seconds more are nothing, and three small reads neither. */
const LOOK_EVERY_MS = 10_000;

const CERTIFICATE_FILES = { cert: 'tls.crt', key: 'tls.key', trust: 'ca.crt' } as const;

export interface CertificateFilesOptions {
  /** Holds `tls.crt`, `tls.key` and `ca.crt`. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
}

/** Resolves with a certificate in hand. Throws CERTIFICATE_INVALID naming the file. */
export async function openCertificateFiles(
  options: CertificateFilesOptions,
): Promise<CertificateSource> {
  const files = new CertificateFiles(options);
  await files.read();
  files.start();
  return files;
}

class CertificateFiles implements CertificateSource {
  readonly #options: CertificateFilesOptions;
  readonly #listeners: IdentityListeners;
  readonly #setMetrics: (identity: ServingIdentity) => void;
  #identity: ServingIdentity | undefined;
  #hash = '';
  #looking: AsyncDisposable | undefined;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
    this.#setMetrics = openCertificateMetrics(options.metrics);
    this.#listeners = new IdentityListeners((error) => {
      options.log.error({ err: error }, 'a listener of the certificate failed');
    });
  }

  start(): void {
    const { clock } = this.#options;
    this.#looking = repeatLook({ clock, everyMs: LOOK_EVERY_MS, look: () => this.refresh() });
  }

  current(): ServingIdentity {
    if (this.#identity === undefined) throw new Error('no certificate before the source is open');
    return this.#identity;
  }

  onChange(listener: (identity: ServingIdentity) => void): Disposable {
    return this.#listeners.add(listener);
  }

  async refresh(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      this.#options.log.error({ err: error }, 'the certificate stays as it is');
    }
  }

  /** Between two files of a change they do not fit; the next look finds both. */
  async read(): Promise<void> {
    const { folder, clock } = this.#options;
    const cert = await readPem(folder, CERTIFICATE_FILES.cert);
    const key = await readPem(folder, CERTIFICATE_FILES.key);
    const trust = await readPem(folder, CERTIFICATE_FILES.trust);
    const hash = createHash('sha256')
      .update(JSON.stringify([cert, key, trust]))
      .digest('hex');
    if (hash === this.#hash) return;
    const what = path.join(folder, CERTIFICATE_FILES.cert);
    checkPair({ cert, key }, what, clock.wallMs());
    validityOf(trust, path.join(folder, CERTIFICATE_FILES.trust));
    const { notAfterMs } = validityOf(cert, what);
    this.#hash = hash;
    this.#identity = { cert, key, trust, notAfterMs };
    this.#setMetrics(this.#identity);
    this.#listeners.tell(this.#identity);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#looking?.[Symbol.asyncDispose]();
  }
}

async function readPem(folder: string, name: string): Promise<string> {
  const file = path.join(folder, name);
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw invalid(file, 'it cannot be read', cause);
  }
}
