// Bodies: one of a gigabyte in each direction, and many that move slowly. What passes through must not pile up inside.
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import process from 'node:process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Contender } from '../contender.ts';
import { freePort } from '../free-port.ts';
import { loadPaced } from '../paced.ts';
import {
  LOAD_CORE,
  PinnedProcess,
  highWaterMb,
  processorTimeUs,
  residentMb,
  resetHighWater,
} from '../pinned-process.ts';
import type { Stage } from '../stage.ts';
import { startAlone } from './growth.ts';
import type { BodyFacts, SlowFacts } from './scale-result.ts';

const GIGABYTE = 1_000_000_000;
const CHUNK = Buffer.alloc(65_536, 'x');

/** A sidecar before an application of bodies. */
async function startBeforeBodies(stage: Stage): Promise<{ weir: Contender; id: number }> {
  const port = await freePort();
  const program = path.join(import.meta.dirname, '..', 'body-server.ts');
  const server = new PinnedProcess(process.execPath, [program, String(port)], { core: LOAD_CORE });
  stage.stack.use(server);
  await server.listening(port);
  const weir = await startAlone({ ...stage, upstream: port }, { name: 'bodies' });
  const [own] = weir.processes;
  if (own === undefined) throw new Error('the sidecar has no process');
  return { weir, id: own.id };
}

/** One body of a gigabyte through a fresh sidecar. */
export async function measureBody(
  stage: Stage,
  direction: BodyFacts['direction'],
): Promise<BodyFacts> {
  await using stack = new AsyncDisposableStack();
  const { weir, id } = await startBeforeBodies({ ...stage, stack });
  // What a first request costs once is not the body's.
  await pass(weir.port, direction, CHUNK.length);
  const beforeMb = await residentMb(id);
  await resetHighWater(id);
  const [startedAt, usedUs] = [performance.now(), await processorTimeUs(id)];
  await pass(weir.port, direction, GIGABYTE);
  return {
    direction,
    bytes: GIGABYTE,
    seconds: (performance.now() - startedAt) / 1_000,
    processorMs: ((await processorTimeUs(id)) - usedUs) / 1_000,
    beforeMb,
    highWaterMb: await highWaterMb(id),
  };
}

async function pass(port: number, direction: BodyFacts['direction'], bytes: number): Promise<void> {
  const passed = direction === 'up' ? await send(port, bytes) : await receive(port, bytes);
  if (passed !== bytes) throw new Error(`${String(passed)} of ${String(bytes)} bytes came through`);
}

async function send(port: number, bytes: number): Promise<number> {
  const { asked, answer } = open(port, { method: 'POST', path: '/', length: bytes });
  await pipeline(Readable.from(chunksOf(bytes), { objectMode: false }), asked);
  let said = '';
  for await (const chunk of await answer) said += String(chunk);
  return Number(said);
}

async function receive(port: number, bytes: number): Promise<number> {
  const { asked, answer } = open(port, { method: 'GET', path: `/${String(bytes)}` });
  asked.end();
  let count = 0;
  for await (const chunk of await answer) count += (chunk as Buffer).length;
  return count;
}

interface Opened {
  readonly asked: ReturnType<typeof request>;
  readonly answer: Promise<IncomingMessage>;
}

function open(
  port: number,
  { method, path: at, length }: { method: 'GET' | 'POST'; path: string; length?: number },
): Opened {
  const headers = {
    'x-api-key': 'bodies',
    ...(length === undefined ? {} : { 'content-length': length }),
  };
  const asked = request({ host: '127.0.0.1', port, method, path: at, headers, agent: false });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    asked.on('error', reject);
    asked.on('response', resolve);
  });
  return { asked, answer };
}

function* chunksOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    yield left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left);
  }
}

/** Clients at once, each with a body far larger than what may be on the way. */
const SLOW = { clients: 64, bytes: 50_000_000, bytesPerSecond: 65_536 } as const;
/** A piece of a slow body, and how often one goes. */
const PIECE = 16_384;
const PIECE_MS = (1_000 * PIECE) / SLOW.bytesPerSecond;
/** For buffers to fill: slow clients are then only slow. */
const FILL_MS = 2_000;
const BESIDE = { perSecond: 200, seconds: 4, keys: ['beside'] } as const;

/** An open loop without and with clients that take or give their bodies slowly. */
export async function measureSlow(stage: Stage, who: SlowFacts['who']): Promise<SlowFacts> {
  await using stack = new AsyncDisposableStack();
  const { weir, id } = await startBeforeBodies({ ...stage, stack });
  // The same requests in both turns; each is answered with one kilobyte.
  const load = { ports: [weir.port], ...BESIDE, path: '/1024' };
  const alone = await loadPaced(load);
  const beforeMb = await residentMb(id);
  await resetHighWater(id);
  const stop = new AbortController();
  stack.defer(() => {
    stop.abort();
  });
  const crowd = Array.from({ length: SLOW.clients }, () =>
    who === 'readers' ? readSlowly(weir.port, stop.signal) : writeSlowly(weir.port, stop.signal),
  );
  const isOver = Promise.all(crowd).then(() => {
    throw new Error('a slow client came to its end');
  });
  await Promise.race([delay(FILL_MS), isOver]);
  const beside = await Promise.race([loadPaced(load), isOver]);
  const highest = await highWaterMb(id);
  isOver.catch(() => undefined);
  return { who, ...SLOW, beforeMb, highWaterMb: highest, alone, beside };
}

/** Takes a piece now and then, until `signal`. */
async function readSlowly(port: number, signal: AbortSignal): Promise<void> {
  const { asked, answer } = open(port, { method: 'GET', path: `/${String(SLOW.bytes)}` });
  signal.addEventListener('abort', () => asked.destroy());
  asked.end();
  const response = await answer;
  response.on('error', () => undefined);
  while (!signal.aborted && !response.readableEnded) {
    response.read(PIECE);
    await delay(PIECE_MS);
  }
}

/** Gives a piece now and then, until `signal`. */
async function writeSlowly(port: number, signal: AbortSignal): Promise<void> {
  const { asked, answer } = open(port, { method: 'POST', path: '/', length: SLOW.bytes });
  signal.addEventListener('abort', () => asked.destroy());
  answer.catch(() => undefined);
  const piece = CHUNK.subarray(0, PIECE);
  while (!signal.aborted && !asked.destroyed) {
    asked.write(piece);
    await delay(PIECE_MS);
  }
}
