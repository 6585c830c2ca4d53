// Who is measured over HTTP/2: the sidecar once it speaks it, and Envoy with its local limit, the cheapest that limits.
import { connect } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Candidate, Contender } from './contender.ts';
import { TITLES } from './contender.ts';
import { startWeirHttp2 } from './contenders.ts';
import { hasHttp2Load } from './http2-load.ts';
import { startEnvoyLocalHttp2 } from './rivals/envoy.ts';
import type { Stage } from './stage.ts';

export interface Http2LineUp {
  readonly contenders: readonly Contender[];
  /** Title, and what would bring it. */
  readonly absent: readonly string[];
}

/** Everybody who can take part, started and proven to limit. */
export async function startHttp2(stage: Stage): Promise<Http2LineUp> {
  if (!(await hasHttp2Load())) {
    return { contenders: [], absent: ['everything over HTTP/2 (Debian package nghttp2-client)'] };
  }
  const contenders: Contender[] = [];
  const absent: string[] = [];
  for (const { name, start } of candidates()) {
    const contender = await start?.(stage);
    if (contender === undefined) absent.push(`${TITLES[name]} (WEIR_BENCH_ENVOY)`);
    else if (await speaksHttp2(contender.port)) contenders.push(contender);
    else absent.push(`${TITLES[name]} (it does not speak HTTP/2 yet)`);
  }
  for (const one of contenders) await proveHttp2Verdicts(one);
  return { contenders, absent };
}

function candidates(): (Pick<Candidate, 'name'> & Partial<Candidate>)[] {
  const envoy = process.env['WEIR_BENCH_ENVOY'];
  return [
    { name: 'weir-http2', start: startWeirHttp2 },
    envoy === undefined
      ? { name: 'envoy-local-http2' }
      : { name: 'envoy-local-http2', start: (stage) => startEnvoyLocalHttp2(envoy, stage) },
  ];
}

/** Longer than any answer on this machine. */
const PATIENCE_MS = 3_000;
/** The first request with the key `deny` is within its limit. */
const ASKED_AT_MOST = 5;

async function speaksHttp2(port: number): Promise<boolean> {
  return statusOf(port, 'proof').then(
    () => true,
    () => false,
  );
}

async function proveHttp2Verdicts({ title, port }: Contender): Promise<void> {
  const seen = [await statusOf(port, 'proof')];
  if (seen[0] !== 200) throw new Error(`${title} answers ${seen.join()} to an allowed key`);
  while (seen.length <= ASKED_AT_MOST && seen.at(-1) !== 429) {
    seen.push(await statusOf(port, 'deny'));
  }
  if (seen.at(-1) !== 429) throw new Error(`${title} refuses nothing: ${seen.join(', ')}`);
}

/** Of one request with prior knowledge; rejects when the answer is not HTTP/2. */
async function statusOf(port: number, key: string): Promise<number> {
  const session = connect(`http://127.0.0.1:${String(port)}`);
  try {
    return await Promise.race([ask(session, key), giveUp()]);
  } finally {
    session.destroy();
  }
}

async function ask(session: ClientHttp2Session, key: string): Promise<number> {
  return new Promise((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({ ':path': '/', 'x-api-key': key });
    stream.on('error', reject);
    stream.on('response', (fields) => {
      resolve(Number(fields[':status']));
    });
    stream.on('close', () => {
      reject(new Error('closed without an answer'));
    });
    stream.resume();
    stream.end();
  });
}

async function giveUp(): Promise<never> {
  await delay(PATIENCE_MS, undefined, { ref: false });
  throw new Error('no answer');
}
