// Rounds of the fuzzer, several at once, against one real `weir run`: until the time is over or somebody finds something.
import { SidecarProcess } from '../support/sidecar.ts';
import { randomFrom } from '../support/http1-messages.ts';
import { marksIn } from './dialect.ts';
import type { Answer, Dialect, FuzzedApplication, Round, SeenRequest } from './dialect.ts';
import { FuzzedRound } from './fuzzed-round.ts';

/** Rounds under way at once: their connections share the sidecar's connections to the application. */
const AT_ONCE = 12;
/** Silence is decided after a second, so that a round that leads to it is over soon. */
const TIMEOUTS = [
  ...['--header-timeout', '1s', '--idle-timeout', '1s', '--body-timeout', '1s'],
  ...['--upstream-timeout', '1s', '--stream-timeout', '1s', '--tunnel-timeout', '1s'],
];
/**
 * A turn of the event loop that takes longer leaves clients in the middle of a frame, or before their first byte, until the
 * sidecar's second is nearly over: what becomes of them says nothing about the sidecar.
 */
const HELD_UP_MS = 400;
const BEAT_MS = 100;
/** How often a round that was struck by such a turn is played again, until what it found counts. */
const MOST_PLAYS = 4;
/** Requests without a mark that are still known: more than those of all rounds under way. */
const MOST_UNMARKED = 50_000;
/** Connections whose requests are still known after their round. */
const MOST_RETIRED = 1_000;
const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: all }
spec:
  selector: {}
  rules:
    - { name: all, buckets: [{ capacity: 100000000, refill: { tokens: 1000000, every: 1s } }] }
    - name: deny
      match: [{ path: { type: Prefix, value: /deny } }]
      buckets: [{ capacity: 1, refill: { tokens: 1, every: 1h } }]
`;

export interface Finding {
  readonly round: Round;
  /** Undefined for a round that was given. */
  readonly number: number | undefined;
  readonly what: readonly string[];
}

export interface FuzzOptions {
  readonly dialect: Dialect;
  readonly seed: number;
  /** Asked before each round whether another one shall begin. */
  readonly goesOn: (rounds: number) => boolean;
  /** Rounds to play first. */
  readonly given?: readonly Round[];
  readonly onFinding?: (finding: Finding) => void;
}

export interface FuzzReport {
  /** Those that were played again included. */
  readonly rounds: number;
  /** Because this process, and with it every client, was held up. */
  readonly playedAgain: number;
  readonly connections: number;
  readonly bytes: number;
  readonly findings: readonly Finding[];
  /** Heads that the application saw, and requests that the sidecar admitted, retries included. */
  readonly seen: number;
  readonly admitted: number;
  readonly faults: number;
  /** By reason, as `weir_refusals_total` has them. */
  readonly refusals: Readonly<Record<string, number>>;
}

/** A fuzzing sidecar with its application; `run` may be called once. */
export class FuzzCampaign implements AsyncDisposable {
  readonly #options: FuzzOptions;
  readonly #sidecar: SidecarProcess;
  readonly #application: FuzzedApplication;
  readonly #active = new Map<string, FuzzedRound>();
  /** Start lines and bodies of all requests without a mark that clients have sent whole. */
  readonly #unmarked = new Set<string>();
  readonly #findings: Finding[] = [];
  readonly #retired: string[] = [];
  #rounds = 0;
  #playedAgain = 0;
  /** Turns of the event loop that took too long. */
  #heldUp = 0;
  #beatMs = performance.now();
  readonly #beating: NodeJS.Timeout;
  #connections = 0;
  #bytes = 0;

  private constructor(
    options: FuzzOptions,
    sidecar: SidecarProcess,
    application: FuzzedApplication,
  ) {
    this.#options = options;
    this.#sidecar = sidecar;
    this.#application = application;
    application.answering = (request) => this.#answerTo(request);
    this.#beating = setInterval(() => {
      this.#beat();
    }, BEAT_MS);
  }

  static async open(options: FuzzOptions): Promise<FuzzCampaign> {
    await using stack = new AsyncDisposableStack();
    const application = stack.use(await options.dialect.openApplication());
    const sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: application.port,
      flags: TIMEOUTS,
    });
    stack.move();
    return new FuzzCampaign(options, sidecar, application);
  }

  /** The sidecar's resident memory, bytes. */
  residentBytes(): Promise<number> {
    return this.#sidecar.metric('process_resident_memory_bytes');
  }

  get rounds(): number {
    return this.#rounds;
  }

  async run(): Promise<FuzzReport> {
    const given = [...(this.#options.given ?? [])];
    await Promise.all(Array.from({ length: AT_ONCE }, () => this.#keepPlaying(given)));
    const { sidecar, application } = { sidecar: this.#sidecar, application: this.#application };
    for (const what of application.findings.splice(0)) {
      this.#findings.push({
        round: { connections: [], answers: [] },
        number: undefined,
        what: [what],
      });
    }
    const text = await (await sidecar.ask('/metrics')).text();
    return {
      ...{ rounds: this.#rounds, connections: this.#connections, bytes: this.#bytes },
      playedAgain: this.#playedAgain,
      findings: this.#findings,
      seen: application.heads,
      admitted:
        metricIn(text, 'weir_requests_total{verdict="allowed"}') +
        metricIn(text, 'weir_upstream_retries_total'),
      faults: metricIn(text, 'weir_faults_total'),
      refusals: Object.fromEntries(
        [...text.matchAll(/^weir_refusals_total\{reason="(.*)"\} (\d+)$/gm)].map(
          ([, reason = '', count]) => [reason, Number(count)],
        ),
      ),
    };
  }

  #beat(): void {
    const nowMs = performance.now();
    if (nowMs - this.#beatMs > BEAT_MS + HELD_UP_MS) this.#heldUp += 1;
    this.#beatMs = nowMs;
  }

  async #keepPlaying(given: Round[]): Promise<void> {
    while (given.length > 0 || this.#options.goesOn(this.#rounds)) {
      const next = given.shift();
      const number = next === undefined ? this.#rounds : undefined;
      await this.#playUntilHeard(next ?? this.#madeRound(this.#rounds), number);
    }
  }

  #madeRound(number: number): Round {
    const { dialect, seed } = this.#options;
    return makeRound(dialect, roundRandom(seed, number));
  }

  async #playUntilHeard(round: Round, number: number | undefined): Promise<void> {
    for (let plays = 1; ; plays += 1) {
      const heldUp = this.#heldUp;
      const what = await this.#playOne(round, number);
      if (what.length === 0) return;
      // The end of a round may be heard in the very turn that took too long.
      this.#beat();
      if (this.#heldUp === heldUp || plays === MOST_PLAYS) {
        this.#find({ round, number, what });
        return;
      }
      this.#playedAgain += 1;
    }
  }

  async #playOne(round: Round, number: number | undefined): Promise<readonly string[]> {
    const fuzzed = new FuzzedRound(this.#options.dialect, round, this.#rounds);
    fuzzed.onLateFinding = (request) => {
      this.#find({ round, number, what: [`smuggled, late: ${JSON.stringify(request)}`] });
    };
    fuzzed.hasSpoilt = (request) => this.#application.hasSpoilt?.(request) ?? false;
    this.#rounds += 1;
    this.#connections += round.connections.length;
    for (const { mark, pieces, reading } of fuzzed.connections) {
      this.#active.set(mark, fuzzed);
      for (const piece of pieces) this.#bytes += piece.length;
      for (const request of reading.requests) {
        if (markIn(request) === undefined) this.#know(request);
      }
    }
    const what = await fuzzed.play(this.#sidecar.port).catch((error: unknown) => [String(error)]);
    this.#retire(fuzzed);
    return what;
  }

  #know(unmarked: SeenRequest): void {
    const key = keyOf(unmarked);
    // Known anew: the latest to go.
    this.#unmarked.delete(key);
    this.#unmarked.add(key);
    if (this.#unmarked.size <= MOST_UNMARKED) return;
    const [oldest = ''] = this.#unmarked;
    this.#unmarked.delete(oldest);
  }

  /** A request that is under way when its client goes may still come. */
  #retire(fuzzed: FuzzedRound): void {
    for (const { mark } of fuzzed.connections) this.#retired.push(mark);
    for (const mark of this.#retired.splice(0, this.#retired.length - MOST_RETIRED)) {
      this.#active.delete(mark);
    }
  }

  #find(finding: Finding): void {
    this.#findings.push(finding);
    this.#options.onFinding?.(finding);
  }

  #answerTo(request: SeenRequest): { readonly answer: Answer; readonly mark: string } {
    const mark = markIn(request);
    const round = mark === undefined ? undefined : this.#active.get(mark);
    if (mark !== undefined && round !== undefined) {
      return { answer: round.onRequest(request, mark), mark };
    }
    if (mark !== undefined || !this.#unmarked.has(keyOf(request))) {
      this.#application.findings.push(`smuggled: ${JSON.stringify(request)}`);
    }
    return { answer: this.#options.dialect.unmarked, mark: '' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#beating);
    await this.#sidecar[Symbol.asyncDispose]();
    await this.#application[Symbol.asyncDispose]();
  }
}

/** A source of numbers for one round. */
export function roundRandom(seed: number, round: number): () => number {
  return randomFrom(Math.imul(seed, 0x9e37_79b1) + round);
}

export function makeRound(dialect: Dialect, random: () => number): Round {
  const connections = Array.from({ length: 2 + Math.floor(random() * 2) }, () =>
    dialect.connection(random),
  );
  return { connections, answers: Array.from({ length: 12 }, () => dialect.answer(random)) };
}

function markIn({ startLine, body }: SeenRequest): string | undefined {
  return marksIn(startLine + body)[0];
}

function keyOf({ startLine, body }: SeenRequest): string {
  return `${startLine}\n${body}`;
}

function metricIn(text: string, name: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1) ?? 0);
}
