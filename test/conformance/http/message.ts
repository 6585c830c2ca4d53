// Takes a stream of bytes of the corpus apart into messages. It need not judge: what stands in the corpus is known to be
// valid. Text is Latin-1, one character a byte.

export interface Message {
  /** An empty line before the start line, which a request may have. */
  readonly prefix: string;
  readonly startLine: string;
  /** Field lines as they came, without their CRLF. */
  readonly lines: readonly string[];
  /** Start line, field lines and the empty line, bytes. */
  readonly headLength: number;
  /** After the head, framing included. */
  readonly body: string;
  /** Bytes of content so far, framing of chunks left out. */
  readonly content: number;
  readonly isComplete: boolean;
}

/** How far a stream has come: whole messages, and of the next one whether its head is there and how much of its content. */
export interface Progress {
  readonly complete: number;
  readonly heads: number;
  readonly content: number;
}

export interface ReadingOptions {
  readonly kind: 'request' | 'response';
  /** Of responses: the methods of the requests they answer, in order. */
  readonly methods?: readonly string[];
  /** A protocol switch is part of the exchange: what follows belongs to nobody's messages. */
  readonly tunnels: boolean;
  /** Nothing more will come: a body that ends with its connection is complete. */
  readonly ended: boolean;
}

export function readMessages(text: string, options: ReadingOptions): Message[] {
  const messages: Message[] = [];
  const methods = [...(options.methods ?? [])];
  for (let at = 0; at < text.length;) {
    const message = messageAt(text, at, { ...options, method: methods[0] ?? '' });
    if (message === undefined) break;
    messages.push(message);
    at += message.prefix.length + message.headLength + message.body.length;
    if (isAnswer(message)) methods.shift();
    if (!message.isComplete) break;
  }
  return messages;
}

/** Undefined while its head is not there. */
function messageAt(
  text: string,
  at: number,
  options: ReadingOptions & { readonly method: string },
): Message | undefined {
  const { kind, ended } = options;
  const prefix = kind === 'request' && text.startsWith('\r\n', at) ? '\r\n' : '';
  const from = at + prefix.length;
  const headEnd = text.indexOf('\r\n\r\n', from);
  if (headEnd < 0) return undefined;
  const [startLine = '', ...lines] = text.slice(from, headEnd).split('\r\n');
  const status = kind === 'response' ? statusOf(startLine) : 0;
  const { end, ...body } = bodyAt(
    text,
    headEnd + 4,
    framingOf(lines, { ...options, status }),
    ended,
  );
  const headLength = headEnd + 4 - from;
  return { prefix, startLine, lines, headLength, ...body, body: text.slice(headEnd + 4, end) };
}

function statusOf(startLine: string): number {
  return Number(startLine.slice(9, 12));
}

/** Whether it is what a request waits for: no interim response. */
export function isAnswer({ startLine }: Message): boolean {
  return statusOf(startLine) >= 200 || statusOf(startLine) === 101;
}

export function progressOf(messages: readonly Message[]): Progress {
  const last = messages.at(-1);
  const complete = messages.filter(({ isComplete }) => isComplete).length;
  const content = last === undefined || last.isComplete ? 0 : last.content;
  return { complete, heads: messages.length, content };
}

export function hasReached(now: Progress, due: Progress): boolean {
  if (now.complete !== due.complete) return now.complete > due.complete;
  return now.heads > due.heads || (now.heads === due.heads && now.content >= due.content);
}

/** The value of the first field of that lower-case name. */
export function fieldOf(lines: readonly string[], name: string): string | undefined {
  const line = lines.find((one) => nameOf(one) === name);
  return line?.slice(line.indexOf(':') + 1).trim();
}

/** In lower case. */
export function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase();
}

type Framing = 'none' | 'chunked' | 'close' | number;

interface Facing extends ReadingOptions {
  readonly status: number;
  readonly method: string;
}

function framingOf(lines: readonly string[], { kind, status, method, tunnels }: Facing): Framing {
  const isSwitch = kind === 'response' ? status === 101 : fieldOf(lines, 'upgrade') !== undefined;
  if (tunnels && isSwitch) return 'close';
  if (kind === 'response' && hasNoBody(status, method)) return 'none';
  if (fieldOf(lines, 'transfer-encoding') !== undefined) return 'chunked';
  const length = fieldOf(lines, 'content-length');
  if (length !== undefined) return Number(length);
  return kind === 'response' ? 'close' : 'none';
}

function hasNoBody(status: number, method: string): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304;
}

interface Body {
  readonly end: number;
  readonly content: number;
  readonly isComplete: boolean;
}

function bodyAt(text: string, from: number, framing: Framing, ended: boolean): Body {
  if (framing === 'none') return { end: from, content: 0, isComplete: true };
  if (framing === 'chunked') return chunksAt(text, from);
  if (framing === 'close') {
    return { end: text.length, content: text.length - from, isComplete: ended };
  }
  const content = Math.min(framing, text.length - from);
  return { end: from + content, content, isComplete: content === framing };
}

function chunksAt(text: string, from: number): Body {
  let content = 0;
  let at = from;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return { end: text.length, content, isComplete: false };
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error(`no chunk size at ${text.slice(at, at + 20)}`);
    if (size === 0) return trailersAt(text, lineEnd + 2, content);
    content += Math.min(size, text.length - lineEnd - 2);
    at = lineEnd + 2 + size + 2;
    if (at > text.length) return { end: text.length, content, isComplete: false };
  }
}

function trailersAt(text: string, from: number, content: number): Body {
  const end = text.startsWith('\r\n', from) ? from + 2 : text.indexOf('\r\n\r\n', from) + 4;
  if (end < 4) return { end: text.length, content, isComplete: false };
  return { end, content, isComplete: true };
}
