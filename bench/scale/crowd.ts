// Connections that were used once and then keep silent, as browsers and pools leave them.
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { requestText } from '../lane.ts';
import type { Meter } from '../meter.ts';
import { residentMb } from '../pinned-process.ts';
import type { Stage } from '../stage.ts';
import { loadWithWrk } from '../wrk.ts';
import { startAlone } from './growth.ts';
import type { CrowdFacts } from './scale-result.ts';

/** For those who ask beside the crowd. */
const ROOM = 100;
/** Opened at once: below the backlog of the listener, so that none waits for a retransmission. */
const BATCH = 200;
/** For what opening them leaves to settle. */
const SETTLE_MS = 3_000;
const LOAD = { connections: 32, seconds: 3, keys: { key: 'hot' } } as const;
const WARM_UP_SECONDS = 2;

export async function measureCrowd(
  stage: Stage,
  meter: Meter,
  connections: number,
): Promise<CrowdFacts> {
  await using stack = new AsyncDisposableStack();
  const flags = [
    ...['--max-connections', String(connections + ROOM)],
    // Longer than this takes: nobody of the crowd is to be sent away.
    ...['--idle-timeout', '10m'],
  ];
  const weir = await startAlone({ ...stage, stack }, { name: 'crowd', flags });
  const [process] = weir.processes;
  if (process === undefined) throw new Error('the sidecar has no process');
  const load = { port: weir.port, ...LOAD };
  await loadWithWrk({ ...load, seconds: WARM_UP_SECONDS });
  const alone = await meter.load(weir, load);
  const beforeMb = await residentMb(process.id);
  const crowd: Socket[] = [];
  stack.defer(() => {
    for (const socket of crowd) socket.destroy();
  });
  while (crowd.length < connections) {
    crowd.push(...(await Promise.all(Array.from({ length: BATCH }, () => askOnce(weir.port)))));
  }
  await delay(SETTLE_MS);
  const crowdedMb = await residentMb(process.id);
  const beside = await meter.load(weir, load);
  const lost = crowd.filter(({ readyState }) => readyState !== 'open').length;
  if (lost > 0) throw new Error(`${String(lost)} idle connections were closed`);
  return { connections, beforeMb, crowdedMb, alone, beside };
}

/** Connects, asks once, and keeps the connection. Rejects when the answer is not 200. */
async function askOnce(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.write(requestText(port, 'crowd'));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (answer.toString('latin1', 9, 12) !== '200') throw new Error(answer.toString('latin1'));
  socket.resume();
  return socket;
}
