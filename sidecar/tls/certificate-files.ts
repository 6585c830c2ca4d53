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

/** What the files held, as PEM texts; plain data. */
export interface CertificateTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}

export interface CertificateEvents {
  /** Another pair is in force. */
  readonly onRenewed: (context: SecureContextOptions, notAfterMs: number) => void;
  /** These are in force: the first ones, and each that follows. */
  readonly onInForce?: ((texts: CertificateTexts) => void) | undefined;
  /** What the files hold now is not used. Told once for each content. */
  readonly onRefused: (error: unknown) => void;
}

export interface CertificateOptions {
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  /** What was in force before this process started: it stands in for files that are not in order. */
  readonly inherited?: CertificateTexts | undefined;
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

  /** Reads the files, and again every two seconds. Throws CERTIFICATE_INVALID naming the file, if nothing was inherited. */
  static async open(
    paths: CertificatePaths,
    events: CertificateEvents,
    { wallClock, inherited }: CertificateOptions,
  ): Promise<CertificateFiles> {
    const { first, fault } = await readFirst(paths, wallClock(), inherited);
    const files = new CertificateFiles(paths, events, { first, wallClock });
    if (fault !== undefined) files.#refuse(fault);
    events.onInForce?.(first.texts);
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
      this.#events.onInForce?.(contents.texts);
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

interface First {
  readonly first: Contents;
  /** Why it is not what the files hold. */
  readonly fault?: unknown;
}

async function readFirst(
  paths: CertificatePaths,
  nowMs: number,
  inherited: CertificateTexts | undefined,
): Promise<First> {
  try {
    const first = await readAll(paths);
    judge(paths, first, nowMs);
    return { first };
  } catch (fault) {
    if (inherited === undefined) throw fault;
    return { first: contentsOf(inherited), fault };
  }
}

interface Contents {
  readonly texts: CertificateTexts;
  /** Of all files, to be compared. */
  readonly text: string;
  readonly context: SecureContextOptions & { readonly cert: string; readonly key: string };
}

async function readAll({ cert, key, clientCa }: CertificatePaths): Promise<Contents> {
  return contentsOf({
    ...{ cert: await readPem(cert), key: await readPem(key) },
    clientCa: clientCa === undefined ? undefined : await readPem(clientCa),
  });
}

function contentsOf(texts: CertificateTexts): Contents {
  const { cert, key, clientCa } = texts;
  return {
    texts,
    text: [cert, key, clientCa ?? ''].join('\0'),
    context: {
      ...{ cert, key, minVersion: 'TLSv1.2' },
      ...(clientCa === undefined ? {} : { ca: clientCa }),
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
