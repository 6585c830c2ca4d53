// The certificate that clients of the data path are shown, from files that somebody else renews (cert-manager, a mesh).
// A new pair is taken on within seconds and without a restart; one that is not in order leaves the last good one in force.
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { checkAuthorities, checkPair, invalid, validityOf } from '../../contract/certificate.ts';
import { WeirError } from '../../contract/errors.ts';

/** Renewals come hours before an end, and the kubelet takes up to a minute: two seconds more are nothing. */
const LOOK_EVERY_MS = 2_000;

export interface CertificatePaths {
  /** PEM: the server's certificate, then those between it and the root. */
  readonly cert: string;
  /** PEM, unencrypted. */
  readonly key: string;
  /** PEM: whose clients are let in; undefined = everybody's. */
  readonly clientCa: string | undefined;
}

export interface CertificateEvents {
  /** Another pair is in force. */
  readonly onRenewed: (context: SecureContextOptions, notAfterMs: number) => void;
  /** What the files hold now is not used. Told once for each content. */
  readonly onRefused: (error: unknown) => void;
}

export class CertificateFiles implements AsyncDisposable {
  readonly #paths: CertificatePaths;
  readonly #events: CertificateEvents;
  readonly #wallClock: () => number;
  /** What is in force. */
  #text: string;
  #context: SecureContextOptions;
  /** What was last told, until something good comes. */
  #refused = '';
  #looking: NodeJS.Timeout | undefined;
  #look: Promise<void> = Promise.resolve();

  private constructor(
    paths: CertificatePaths,
    events: CertificateEvents,
    { first, wallClock }: { readonly first: Contents; readonly wallClock: () => number },
  ) {
    this.#wallClock = wallClock;
    this.#paths = paths;
    this.#events = events;
    this.#text = first.text;
    this.#context = first.context;
  }

  /** Reads the files, and again every two seconds. Throws CERTIFICATE_INVALID naming the file. */
  static async open(
    paths: CertificatePaths,
    events: CertificateEvents,
    wallClock: () => number,
  ): Promise<CertificateFiles> {
    const first = await readAll(paths);
    judge(paths, first, wallClock());
    const files = new CertificateFiles(paths, events, { first, wallClock });
    files.#looking = setInterval(() => {
      files.#look = files.#look.then(() => files.look());
    }, LOOK_EVERY_MS).unref();
    return files;
  }

  /** What is in force. */
  get context(): SecureContextOptions {
    return this.#context;
  }

  /** Looks whether the files have changed. Never rejects. */
  async look(): Promise<void> {
    try {
      const contents = await readAll(this.#paths);
      if (contents.text === this.#text) {
        this.#refused = '';
        return;
      }
      // What is refused is judged at each look: of two files one is written first, and what is not valid yet will be.
      const notAfterMs = judge(this.#paths, contents, this.#wallClock());
      this.#text = contents.text;
      this.#context = contents.context;
      this.#refused = '';
      this.#events.onRenewed(contents.context, notAfterMs);
    } catch (error) {
      this.#refuse(error);
    }
  }

  // A file that is missing, or no good, stays so for many looks.
  #refuse(error: unknown): void {
    const text = error instanceof WeirError ? JSON.stringify(error.details) : String(error);
    if (text === this.#refused) return;
    this.#refused = text;
    this.#events.onRefused(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking);
    await this.#look;
  }
}

interface Contents {
  /** Of all files, to be compared. */
  readonly text: string;
  readonly context: SecureContextOptions & { readonly cert: string; readonly key: string };
}

async function readAll({ cert, key, clientCa }: CertificatePaths): Promise<Contents> {
  const [certText, keyText] = [await readPem(cert), await readPem(key)];
  const caText = clientCa === undefined ? undefined : await readPem(clientCa);
  return {
    text: [certText, keyText, caText ?? ''].join('\0'),
    context: {
      ...{ cert: certText, key: keyText, minVersion: 'TLSv1.2' },
      ...(caText === undefined ? {} : { ca: caText }),
    },
  };
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw invalid(file, 'it cannot be read', cause);
  }
}

/** When the certificate ends. Throws CERTIFICATE_INVALID. */
function judge(
  { cert, clientCa, ...paths }: CertificatePaths,
  { context }: Contents,
  nowMs: number,
): number {
  checkPair(context, { cert, key: paths.key }, nowMs);
  if (clientCa !== undefined) checkAuthorities(String(context.ca), clientCa);
  try {
    createSecureContext(context);
  } catch (cause) {
    throw invalid(cert, 'OpenSSL does not take it', cause);
  }
  return validityOf(context.cert, cert).notAfterMs;
}
