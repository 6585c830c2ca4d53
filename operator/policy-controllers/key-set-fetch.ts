// Fetches a key set over https. It resolves the name itself, looks at every address, and connects to the very address
// it looked at, so that a name that answers differently the second time gains nothing. No redirects, no proxy, bounded
// in time and size; what came is never quoted.
import assert from 'node:assert/strict';
import { lookup as resolveName } from 'node:dns/promises';
import { request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { LookupFunction } from 'node:net';
import { addressFault, hostFault, type AllowedHosts } from '../policy/key-set-address.ts';
import { KEY_SET_BYTES_MAX, type FetchOutcome } from '../policy/key-set-plan.ts';

/** The whole of it, name and handshake included: an issuer answers a static file. */
const FETCH_TIMEOUT_MS = 10_000;

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export interface KeySetFetchOptions {
  readonly allowedHosts: AllowedHosts;
  /** PEM of further roots; absent = those of the runtime. */
  readonly ca?: string;
  /** Absent = the machine's resolver. */
  readonly resolve?: (hostname: string) => Promise<readonly ResolvedAddress[]>;
  /** Why an address may not be connected to; absent = `addressFault`. */
  readonly judge?: (address: string) => string | undefined;
  readonly timeoutMs?: number;
}

export type KeySetFetch = (uri: string, signal: AbortSignal) => Promise<FetchOutcome>;

/** Never rejects. */
export function openKeySetFetch(options: KeySetFetchOptions): KeySetFetch {
  return async (uri, signal) => {
    const url = URL.parse(uri);
    if (url?.protocol !== 'https:') return { kind: 'refused', message: 'is no https address' };
    if (url.username !== '' || url.password !== '') {
      return { kind: 'refused', message: 'holds a user or a password' };
    }
    const fault = hostFault(url.hostname, options.allowedHosts);
    if (fault !== undefined) return { kind: 'refused', message: fault };
    const timeout = AbortSignal.timeout(options.timeoutMs ?? FETCH_TIMEOUT_MS);
    try {
      return await ask(url, options, AbortSignal.any([signal, timeout]));
    } catch (error) {
      return failureOf(error, timeout);
    }
  };
}

async function ask(
  url: URL,
  options: KeySetFetchOptions,
  signal: AbortSignal,
): Promise<FetchOutcome> {
  const response = await headOf(url, { ...options, signal });
  try {
    return await answerOf(response);
  } finally {
    response.destroy();
  }
}

async function answerOf(response: IncomingMessage): Promise<FetchOutcome> {
  const { statusCode = 0, headers } = response;
  const status = String(statusCode);
  if (statusCode >= 300 && statusCode < 400) {
    return unavailable(`answers with a redirect (${status}), which is not followed`);
  }
  if (statusCode !== 200) return unavailable(`answers ${status}`);
  const text = await textOf(response);
  if (text === undefined) {
    return unavailable(`is larger than ${String(KEY_SET_BYTES_MAX)} bytes`);
  }
  const cacheControl = headers['cache-control'];
  return { kind: 'fetched', text, ...(cacheControl === undefined ? {} : { cacheControl }) };
}

function headOf(
  url: URL,
  options: KeySetFetchOptions & { readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  const { ca, signal } = options;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const settings: RequestOptions = {
    // One connection for one request: its address was looked at.
    agent: false,
    lookup: checkedLookup(options),
    headers: {
      accept: 'application/jwk-set+json, application/json',
      'user-agent': 'weir-operator',
    },
    signal,
    ...(ca === undefined ? {} : { ca }),
  };
  request(url, settings).on('response', resolve).on('error', reject).end();
  return promise;
}

class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

// Asked for names only: an address in the URL was looked at before.
function checkedLookup({
  resolve = resolveAll,
  judge = addressFault,
}: KeySetFetchOptions): LookupFunction {
  return (hostname, { all }, callback) => {
    const judged = async (): Promise<readonly ResolvedAddress[]> => {
      const addresses = await resolve(hostname);
      const faults = addresses.map(({ address }) => judge(address));
      const fault = faults.find((one) => one !== undefined);
      // One bad address among good ones is somebody trying.
      if (fault !== undefined) throw new AddressRefused(`resolves to an address that ${fault}`);
      if (addresses.length === 0) throw new Error('no address');
      return addresses;
    };
    judged().then(
      (addresses) => {
        const [first] = addresses;
        if (all === true) callback(null, [...addresses]);
        else callback(null, first?.address ?? '', first?.family ?? 0);
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error('not resolved'), []);
      },
    );
  };
}

function resolveAll(hostname: string): Promise<readonly ResolvedAddress[]> {
  return resolveName(hostname, { all: true });
}

/** Undefined when it is too large. */
async function textOf(response: IncomingMessage): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response) {
    assert(chunk instanceof Uint8Array, 'no encoding is set');
    size += chunk.length;
    if (size > KEY_SET_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function failureOf(error: unknown, timeout: AbortSignal): FetchOutcome {
  if (error instanceof AddressRefused) return { kind: 'refused', message: error.message };
  if (timeout.aborted) return unavailable('does not answer in time');
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return unavailable(
    typeof code === 'string' ? `cannot be reached (${code})` : 'cannot be reached',
  );
}

function unavailable(message: string): FetchOutcome {
  return { kind: 'unavailable', message };
}
