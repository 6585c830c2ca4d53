// One key at a fixed rate on two instances in turns, whatever they answer. A process of its own; prints one JSON line.
// usage: node bench/accuracy-load.ts PORT PORT RATE SECONDS KEY
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type { AccuracyCounts } from './accuracy.ts';
import type { LaneAnswer } from './lane.ts';
import { Lane, requestText } from './lane.ts';

/** Per instance: answers may take two and a half seconds at a hundred requests a second. */
const CONNECTIONS = 256;
/** A rate is kept by sending what is due every millisecond. */
const TICK_MS = 1;
/** For the last answers. */
const PATIENCE_MS = 1_000;

interface Load {
  readonly ports: readonly number[];
  readonly perSecond: number;
  readonly seconds: number;
  readonly key: string;
}

class Tally {
  readonly answers: LaneAnswer[] = [];
  sent = 0;
  firstSentAt = NaN;
  lastSentAt = NaN;

  note(): void {
    this.sent += 1;
    this.lastSentAt = performance.now();
    if (this.sent === 1) this.firstSentAt = this.lastSentAt;
  }

  counts(): AccuracyCounts {
    const { answers, sent } = this;
    const withStatus = (wanted: number): number =>
      answers.filter(({ status }) => status === wanted).length;
    const [admitted, refused] = [withStatus(200), withStatus(429)];
    const answeredAt = answers.map((answer) => answer.answeredAt);
    const since = performance.timeOrigin;
    return {
      sent,
      admitted,
      refused,
      failed: sent - admitted - refused,
      firstSentMs: since + this.firstSentAt,
      firstAnsweredMs: since + Math.min(...answeredAt),
      lastSentMs: since + this.lastSentAt,
      lastAnsweredMs: since + Math.max(...answeredAt),
    };
  }
}

async function run({ ports, perSecond, seconds, key }: Load): Promise<AccuracyCounts> {
  const tally = new Tally();
  const targets = ports.map((port) => {
    const idle: Lane[] = [];
    const onAnswer = (lane: Lane, answer: LaneAnswer): void => {
      idle.push(lane);
      tally.answers.push(answer);
    };
    const lanes = Array.from({ length: CONNECTIONS }, () => new Lane(port, onAnswer));
    idle.push(...lanes);
    return { lanes, idle, request: requestText(port, key) };
  });
  const start = performance.now();
  const total = perSecond * seconds;
  let due = 0;
  while (due < total) {
    const target = Math.min(total, Math.floor(((performance.now() - start) * perSecond) / 1_000));
    for (; due < target; due += 1) {
      const instance = targets[due % targets.length];
      const lane = instance?.idle.pop();
      tally.note();
      // Without a free connection the request is one of those that were never answered.
      if (instance !== undefined && lane !== undefined) lane.send(instance.request);
    }
    await delay(TICK_MS);
  }
  const patience = performance.now() + PATIENCE_MS;
  while (tally.answers.length < tally.sent && performance.now() < patience) await delay(TICK_MS);
  for (const { lanes } of targets) for (const lane of lanes) lane.close();
  return tally.counts();
}

if (import.meta.main) {
  const [first, second, rate, seconds, key] = process.argv.slice(2);
  const counts = await run({
    ports: [Number(first), Number(second)],
    perSecond: Number(rate),
    seconds: Number(seconds),
    key: String(key),
  });
  process.stdout.write(`${JSON.stringify(counts)}\n`);
}
