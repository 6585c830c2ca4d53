// Frames as lines of JSON: cutting a byte stream into lines at whatever places it was split, checking what each line
// says, and writing. Pure. It refuses lines longer than a frame may be before they are held, and never throws for
// what a peer sent: everything is an outcome.
import assert from 'node:assert/strict';
import * as z from 'zod/mini';
import type { CompiledPolicy } from './bundle.ts';
import {
  FRAME_BYTES_MAX,
  MESSAGE_MAX,
  PUSHED_POLICIES_MAX,
  type ConfigFrame,
  type DeltaFrame,
  type OperatorFrame,
  type PartFrame,
  type SidecarFrame,
} from './stream.ts';

export type Decoded<Frame> =
  | { readonly kind: 'frame'; readonly frame: Frame }
  /** Valid JSON with a `type` this side does not know: a newer peer. */
  | { readonly kind: 'unknown-type'; readonly type: string }
  /** `nonce` where the line has one, so that the answer can name the push. */
  | {
      readonly kind: 'invalid';
      readonly path: string;
      readonly message: string;
      readonly nonce?: number;
    }
  /** The line is longer than a frame may be: nothing after it can be read. */
  | { readonly kind: 'too-long' };

const NEWLINE = 0x0a;

/** Cuts one direction of a stream into frames. After `too-long` it gives nothing more. */
export class FrameDecoder<Frame> {
  readonly #check: (value: unknown) => Decoded<Frame>;
  #pieces: Uint8Array[] = [];
  #held = 0;
  #isOver = false;

  constructor(check: (value: unknown) => Decoded<Frame>) {
    this.#check = check;
  }

  /** `bytes` may be split anywhere, also inside a character. They are not changed and not kept beyond their line. */
  push(bytes: Uint8Array): Decoded<Frame>[] {
    const decoded: Decoded<Frame>[] = [];
    let from = 0;
    while (!this.#isOver) {
      const end = bytes.indexOf(NEWLINE, from);
      const piece = bytes.subarray(from, end < 0 ? bytes.length : end);
      if (this.#held + piece.length + 1 > FRAME_BYTES_MAX) {
        this.#isOver = true;
        this.#pieces = [];
        decoded.push({ kind: 'too-long' });
        break;
      }
      this.#pieces.push(piece);
      this.#held += piece.length;
      if (end < 0) break;
      from = end + 1;
      const line = this.#takeLine();
      // An empty line is a sign of life.
      if (line.length > 0) decoded.push(this.#decode(line));
    }
    return decoded;
  }

  #takeLine(): Uint8Array {
    const [first] = this.#pieces;
    const line =
      this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#held = 0;
    return line;
  }

  #decode(line: Uint8Array): Decoded<Frame> {
    let value: unknown;
    try {
      value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
    } catch {
      return { kind: 'invalid', path: '', message: 'the line is not JSON in UTF-8' };
    }
    return this.#check(value);
  }
}

/** One line, its newline included. */
export function encodeFrame(frame: SidecarFrame | OperatorFrame): string {
  return `${JSON.stringify(frame)}\n`;
}

/** The first frame of a push without its policies. */
export type PushHead =
  | Omit<ConfigFrame, 'policies' | 'more'>
  | (Omit<DeltaFrame, 'upsert' | 'more'> & { readonly type: 'delta' });

/**
 * The lines of one push, each within FRAME_BYTES_MAX: the head's frame, then as many `part` frames as it takes.
 * `texts` are the policies as JSON, so that a policy that goes to a thousand sidecars is written once.
 */
export function encodePush(head: PushHead, texts: readonly string[]): string[] {
  const field = head.type === 'config' ? 'policies' : 'upsert';
  const lines: string[] = [];
  let open = openLine(head, field);
  let room = roomOf(open);
  let batch: string[] = [];
  for (const text of texts) {
    const size = Buffer.byteLength(text) + 1;
    if (size > room && batch.length > 0) {
      lines.push(`${open}${batch.join(',')}],"more":true}\n`);
      open = openLine({ type: 'part', nonce: head.nonce }, 'policies');
      room = roomOf(open);
      batch = [];
    }
    batch.push(text);
    room -= size;
  }
  lines.push(`${open}${batch.join(',')}]}\n`);
  return lines;
}

function openLine(head: PushHead | Omit<PartFrame, 'policies'>, field: string): string {
  return `${JSON.stringify(head).slice(0, -1)},"${field}":[`;
}

function roomOf(open: string): number {
  return FRAME_BYTES_MAX - Buffer.byteLength(open) - Buffer.byteLength('],"more":true}\n');
}

/** Checks a frame of a sidecar, which is not trusted with anything but its own state. */
export function checkSidecarFrame(value: unknown): Decoded<SidecarFrame> {
  return check<SidecarFrame>(value, sidecarFrames);
}

/**
 * Checks a frame of an operator. Policies are checked no further than `uid` and `generation`: one that is not in
 * order must not take the others with it (see `checkPolicy` in compiled-policy-schema.ts).
 */
export function checkOperatorFrame(value: unknown): Decoded<OperatorFrame> {
  return check<OperatorFrame>(value, operatorFrames);
}

type Schema = z.ZodMiniType;

/** What passed the schema is the frame: fields that the schema does not know stay and mean nothing. */
function check<Frame>(value: unknown, schemas: Readonly<Record<string, Schema>>): Decoded<Frame> {
  const head = headSchema.safeParse(value);
  if (!head.success) return { kind: 'invalid', ...describeIssue(head.error) };
  const { type, nonce } = head.data;
  const schema = Object.hasOwn(schemas, type) ? schemas[type] : undefined;
  if (schema === undefined) return { kind: 'unknown-type', type };
  const parsed = schema.safeParse(value);
  // The schema has just said so.
  if (parsed.success) return { kind: 'frame', frame: value as Frame };
  const number = typeof nonce === 'number' && Number.isSafeInteger(nonce) ? { nonce } : {};
  return { kind: 'invalid', ...describeIssue(parsed.error), ...number };
}

/** Where, and what would be right. */
export function describeIssue(error: z.core.$ZodError): {
  readonly path: string;
  readonly message: string;
} {
  const [issue] = error.issues;
  assert(issue !== undefined, 'zod names what it refuses');
  const path = issue.path.map(String).join('.');
  return { path, message: `${path === '' ? 'the frame' : path}: ${describeRule(issue)}` };
}

function describeRule(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `must be ${issue.expected}`;
  if (issue.code === 'invalid_value')
    return `must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'too_big') return `must be at most ${String(issue.maximum)}`;
  if (issue.code === 'too_small') return `must be at least ${String(issue.minimum)}`;
  return `is not in order (${issue.code})`;
}

// Kubernetes: names of at most 253 characters, uids of 36; a uid from a file holds two names.
const name = z.string().check(z.maxLength(253));
const uid = z.string().check(z.minLength(1), z.maxLength(600));
const version = z.string().check(z.maxLength(128));
const generation = z.int().check(z.gte(0));
const nonce = z.int().check(z.gte(0));
const message = z.string().check(z.maxLength(MESSAGE_MAX));
/** The longest PEM bundle: some ten certificates of the largest keys, twice. */
const pem = z.string().check(z.maxLength(65_536));
const url = z.string().check(z.maxLength(8_192));
/** A rule can be reported by each of 64 rules of each policy; a sidecar that says more says nothing new. */
const REPORTED_RULES_MAX = 1_024;
const FEATURES_MAX = 512;

function list<Item extends Schema>(item: Item, most: number): z.ZodMiniArray<Item> {
  return z.array(item).check(z.maxLength(most));
}

const headSchema = z.looseObject({
  type: z.string().check(z.maxLength(64)),
  nonce: z.optional(z.unknown()),
});

const origin = z.enum(['stream', 'cache', 'seed', 'file', 'none']);

const sidecarFrames: Readonly<Record<SidecarFrame['type'], Schema>> = {
  hello: z.object({
    protocol: z.int(),
    pod: z.object({ namespace: name, name, uid: z.string().check(z.maxLength(128)) }),
    sidecar: z.object({
      version,
      formats: list(z.int(), 64),
      features: z.optional(list(z.string().check(z.maxLength(64)), FEATURES_MAX)),
    }),
    have: z.object({
      version,
      sources: list(z.object({ uid, generation }), PUSHED_POLICIES_MAX),
      origin,
    }),
  }),
  ack: z.object({ nonce, version }),
  nack: z.object({
    nonce,
    version,
    code: z.enum(['Policies', 'UnknownFrame', 'BadFrame', 'UnknownBase']),
    refusals: list(
      z.object({
        uid,
        generation,
        path: z.string().check(z.maxLength(MESSAGE_MAX)),
        code: z.enum(['Invalid', 'Unsupported', 'Internal']),
        message,
      }),
      PUSHED_POLICIES_MAX,
    ),
  }),
  state: z.object({
    version,
    origin,
    store: z.optional(z.enum(['up', 'down', 'none'])),
    storeProblem: z.optional(message),
    clientIpIsProxy: list(z.string().check(z.maxLength(600)), REPORTED_RULES_MAX),
  }),
};

const policies = list(
  z.looseObject({ uid, generation, namespace: name, name }),
  PUSHED_POLICIES_MAX,
);
const uids = list(uid, PUSHED_POLICIES_MAX);

export const settingsSchema: Schema = z.object({
  store: z.optional(
    z.object({
      url,
      partitions: z.optional(z.int().check(z.gte(1), z.lte(1_024))),
      tls: z.optional(
        z.object({ ca: z.optional(pem), cert: z.optional(pem), key: z.optional(pem) }),
      ),
    }),
  ),
  deadlineMs: z.optional(z.int().check(z.gte(1), z.lte(60_000))),
});

const operatorFrames: Readonly<Record<OperatorFrame['type'], Schema>> = {
  config: z.object({
    nonce,
    version,
    unchanged: z.optional(z.literal(true)),
    policies,
    held: z.optional(uids),
    settings: settingsSchema,
    ca: z.optional(pem),
    issuedAt: z.string().check(z.maxLength(64)),
    regressed: z.optional(z.literal(true)),
    more: z.optional(z.literal(true)),
  }),
  part: z.object({ nonce, policies, more: z.optional(z.literal(true)) }),
  delta: z.object({
    nonce,
    base: version,
    version,
    upsert: policies,
    remove: uids,
    held: z.optional(uids),
    issuedAt: z.string().check(z.maxLength(64)),
    more: z.optional(z.literal(true)),
  }),
  bye: z.object({
    // A reason of a newer operator is a reason all the same.
    reason: z.string().check(z.maxLength(64)),
    retryAfterMs: z.int().check(z.gte(0), z.lte(3_600_000)),
  }),
};

/** The policies of a push frame. */
export function policiesOf(frame: ConfigFrame | PartFrame | DeltaFrame): readonly CompiledPolicy[] {
  return frame.type === 'delta' ? frame.upsert : frame.policies;
}
