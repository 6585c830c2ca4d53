// One timer for all deadlines. It fires at most once per deadline while the store answers, and costs a request
// nothing. A deadline that falls due first lets one poll phase pass: after a stall of the event loop the answers
// may already be in the socket, and a plain timer would have thrown them away unread.
import type { Clock, ScheduledTask, Scheduler } from './clock.ts';

export interface AlarmOwner {
  /** When the oldest that still waits began to wait, in µs; undefined when nobody does. */
  oldestUs(): number | undefined;
  /** Ends the wait of everybody whose deadline has passed. `lagUs`: how late the event loop itself was. */
  expire(nowUs: number, lagUs: number): void;
}

export class Alarm {
  readonly #owner: AlarmOwner;
  /** For waits that begin from now on; those before may end a little early or late. */
  deadlineUs: number;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  #task: ScheduledTask | undefined = undefined;
  #dueUs = 0;
  #lagUs = 0;
  readonly #ring = (): void => {
    this.#onDue();
  };
  readonly #afterPoll = (): void => {
    this.#owner.expire(this.#clock.nowUs(), this.#lagUs);
    this.#rearm();
  };

  constructor(owner: AlarmOwner, deadlineUs: number, clock: Clock, scheduler: Scheduler) {
    this.#owner = owner;
    this.deadlineUs = deadlineUs;
    this.#clock = clock;
    this.#scheduler = scheduler;
  }

  /** Somebody waits from `nowUs` on. */
  arm(nowUs: number): void {
    if (this.#task === undefined) this.#set(nowUs + this.deadlineUs, nowUs);
  }

  stop(): void {
    this.#task?.cancel();
    this.#task = undefined;
  }

  #onDue(): void {
    const nowUs = this.#clock.nowUs();
    const oldestUs = this.#owner.oldestUs();
    if (oldestUs !== undefined && oldestUs + this.deadlineUs <= nowUs) {
      this.#lagUs = Math.max(0, nowUs - this.#dueUs);
      // The task stays set meanwhile, so that nobody arms a second timer.
      this.#scheduler.atEndOfTurn(this.#afterPoll);
      return;
    }
    this.#rearm();
  }

  #rearm(): void {
    this.#task = undefined;
    const oldestUs = this.#owner.oldestUs();
    if (oldestUs !== undefined) this.#set(oldestUs + this.deadlineUs, this.#clock.nowUs());
  }

  #set(dueUs: number, nowUs: number): void {
    this.#dueUs = Math.max(dueUs, nowUs);
    const ms = Math.ceil((this.#dueUs - nowUs) / 1_000);
    this.#task = this.#scheduler.after(Math.max(1, ms), this.#ring);
  }
}
