// Puts the frames of one push together. Pure. Nothing of a push is looked at before its last part has come, and a push
// that never ends is bounded.
import { policiesOf } from '../../contract/frame-codec.ts';
import {
  type ConfigFrame,
  type DeltaFrame,
  type PartFrame,
  PUSH_BYTES_MAX,
  PUSHED_POLICIES_MAX,
} from '../../contract/stream.ts';

/** A whole push. Its policies are still unchecked. */
export interface Push {
  readonly head: ConfigFrame | DeltaFrame;
  readonly policies: readonly unknown[];
}

export type Assembled =
  | { readonly kind: 'push'; readonly push: Push }
  | { readonly kind: 'more' }
  /** Of an older nonce: nobody waits for it. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'broken'; readonly nonce: number; readonly message: string };

export class PushAssembly {
  #head: ConfigFrame | DeltaFrame | undefined = undefined;
  #policies: unknown[] = [];
  #bytes = 0;
  #nonce = 0;

  /** `bytes`: what came since the frame before. */
  add(frame: ConfigFrame | DeltaFrame | PartFrame, bytes: number): Assembled {
    if (frame.type === 'part') return this.#addPart(frame, bytes);
    if (frame.nonce <= this.#nonce) return { kind: 'stale' };
    this.#nonce = frame.nonce;
    this.#head = frame;
    this.#policies = [];
    this.#bytes = 0;
    return this.#take(frame, bytes);
  }

  #addPart(frame: PartFrame, bytes: number): Assembled {
    if (this.#head === undefined) return { kind: 'stale' };
    if (frame.nonce !== this.#head.nonce) {
      return this.#giveUp('a part of another push came in between');
    }
    return this.#take(frame, bytes);
  }

  #take(frame: ConfigFrame | DeltaFrame | PartFrame, bytes: number): Assembled {
    const head = this.#head;
    if (head === undefined) return { kind: 'stale' };
    this.#bytes += bytes;
    this.#policies.push(...policiesOf(frame));
    if (this.#bytes > PUSH_BYTES_MAX) return this.#giveUp(`more than ${PUSH_BYTES_MAX} bytes`);
    if (this.#policies.length > PUSHED_POLICIES_MAX) {
      return this.#giveUp(`more than ${PUSHED_POLICIES_MAX} policies`);
    }
    if (frame.more === true) return { kind: 'more' };
    const policies = this.#policies;
    this.#forget();
    return { kind: 'push', push: { head, policies } };
  }

  #giveUp(message: string): Assembled {
    this.#forget();
    return { kind: 'broken', nonce: this.#nonce, message };
  }

  #forget(): void {
    this.#head = undefined;
    this.#policies = [];
  }
}
