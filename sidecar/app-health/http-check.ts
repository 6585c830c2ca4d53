// The kubelet's httpGet, done for it: a status from 200 to 399 is success, redirects are followed on the same host only,
// and a redirect elsewhere is success as it is.
import { request, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { AppCheck } from '../../contract/app-probe.ts';
import { isLoopbackAddress } from '../admin/loopback.ts';
import { SUCCEEDED, failed, outcomeOf, type CheckOutcome } from './check-outcome.ts';
import { connectLoopback, secured } from './loopback-connection.ts';

type HttpCheck = Extract<AppCheck, { kind: 'http' }>;

/** Who asks: the app is to see the request that the kubelet would have sent. */
export interface Asker {
  /** The pod's address that was asked. */
  readonly podAddress: string;
  readonly userAgent: string;
}

/** As many as the kubelet follows. */
const REDIRECTS_MAX = 10;
/** What the kubelet reads of a body; a check that sends more is not waited for. */
const BODY_BYTES_MAX = 10_240;

interface Target {
  readonly scheme: 'HTTP' | 'HTTPS';
  readonly port: number;
  /** With its query, in ASCII. */
  readonly path: string;
}

/** Never rejects. */
export async function checkHttp(
  check: HttpCheck,
  asker: Asker,
  signal: AbortSignal,
): Promise<CheckOutcome> {
  try {
    return await follow(check, asker, signal);
  } catch (error) {
    return outcomeOf(error, signal);
  }
}

async function follow(check: HttpCheck, asker: Asker, signal: AbortSignal): Promise<CheckOutcome> {
  let target: Target = { ...check, path: writtenPath(check.path) };
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const { status, location } = await ask(target, fieldsFor(check, asker), signal);
    if (status < 200 || status > 399) return { kind: 'failed', why: `HTTP ${status}`, status };
    const next = location === undefined ? undefined : redirected(target, location, asker);
    if (next === undefined) return SUCCEEDED;
    target = next;
  }
  return failed(`more than ${REDIRECTS_MAX} redirects`);
}

/** Probes are written by hand: what a request line cannot hold is encoded, as the kubelet does. */
function writtenPath(path: string): string {
  const [withoutFragment = ''] = path.split('#', 1);
  const rooted = withoutFragment.startsWith('/') ? withoutFragment : `/${withoutFragment}`;
  return rooted.replaceAll(/[^!-~]/gu, (character) => encodeURIComponent(character));
}

/** Undefined for one that leads elsewhere, or is none. */
function redirected(target: Target, location: string, asker: Asker): Target | undefined {
  const { podAddress } = asker;
  const base = `${target.scheme}://${bracketed(podAddress)}:${target.port}${target.path}`;
  if (!URL.canParse(location, base)) return undefined;
  const { protocol, hostname, port, pathname, search } = new URL(location, base);
  const host = hostname.replaceAll(/^\[|\]$/g, '');
  if (!isSameHost(host, podAddress) || !/^https?:$/.test(protocol)) return undefined;
  const scheme = protocol === 'https:' ? 'HTTPS' : 'HTTP';
  const usual = scheme === 'HTTPS' ? 443 : 80;
  return { scheme, port: port === '' ? usual : Number(port), path: `${pathname}${search}` };
}

function isSameHost(host: string, podAddress: string): boolean {
  return host === podAddress || host === 'localhost' || isLoopbackAddress(host);
}

/** Names and values in turn. */
function fieldsFor({ headers, port }: HttpCheck, { podAddress, userAgent }: Asker): string[] {
  const usual = {
    Host: `${bracketed(podAddress)}:${port}`,
    'User-Agent': userAgent,
    Accept: '*/*',
  };
  const written = new Set(headers.map(({ name }) => name.toLowerCase()));
  const added = Object.entries(usual).filter(([name]) => !written.has(name.toLowerCase()));
  // An empty one takes the usual one away.
  const kept = headers.filter(({ value }) => value !== '').map(({ name, value }) => [name, value]);
  return [...added, ...kept, ['Connection', 'close']].flat();
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

interface Answer {
  readonly status: number;
  /** Of a redirect. */
  readonly location?: string;
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

async function ask(target: Target, fields: string[], signal: AbortSignal): Promise<Answer> {
  const socket = await connectLoopback(target.port, signal);
  try {
    const connection = target.scheme === 'HTTPS' ? await secured(socket) : socket;
    const response = await head(connection, target.path, { fields, signal });
    await readBody(response);
    const status = response.statusCode ?? 0;
    const { location } = response.headers;
    return { status, ...(location === undefined || !REDIRECTS.has(status) ? {} : { location }) };
  } finally {
    socket.destroy();
  }
}

function head(
  connection: Socket,
  path: string,
  { fields, signal }: { readonly fields: string[]; readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { createConnection: () => connection, path, headers: fields, signal };
  const asked = request(options).once('response', resolve).on('error', reject);
  // An answer that changes the protocol is none to us, and ends without an error.
  asked.once('close', () => {
    reject(new Error('no answer'));
  });
  asked.end();
  return promise;
}

/** An app that stops in the middle of an answer is not well. */
async function readBody(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const chunk of response) {
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes > BODY_BYTES_MAX) return;
  }
}
