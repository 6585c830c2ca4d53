// Node's own parser, llhttp, in its strict mode: the second opinion the engine is held against. It is reachable only
// through an undocumented module, so its shape is written down here and nowhere else.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

interface RawParser {
  [callback: number]: (...values: never[]) => unknown;
  initialize(type: number, resource: object, maxHeaderSize: number, lenientFlags: number): void;
  execute(bytes: Buffer): number | Error;
  finish(): unknown;
}

interface HttpCommon {
  readonly methods: readonly string[];
  readonly HTTPParser: {
    new (): RawParser;
    readonly REQUEST: number;
    readonly RESPONSE: number;
    readonly kOnHeaders: number;
    readonly kOnHeadersComplete: number;
    readonly kOnBody: number;
    readonly kOnMessageComplete: number;
  };
}

// The one cast: Node gives this module no types.
const common = createRequire(import.meta.url)('node:_http_common') as HttpCommon;
const { HTTPParser, methods } = common;

export interface SeenMessage {
  method: string;
  target: string;
  status: number;
  /** Names and values in turn, trailers not included. */
  fields: string[];
  trailers: string[];
  body: string;
  complete: boolean;
  upgrade: boolean;
}

export interface Seen {
  readonly messages: readonly SeenMessage[];
  /** The parser's error code, e.g. `HPE_INVALID_HEADER_TOKEN`. */
  readonly error: string | undefined;
}

export function isKnownMethod(method: string): boolean {
  return methods.includes(method);
}

const LARGE = 1_048_576;

/** What llhttp makes of the text, fed whole. */
export function seenByLlhttp(kind: 'request' | 'response', text: string): Seen {
  const messages: SeenMessage[] = [];
  let current: SeenMessage | undefined;
  let early: string[] = [];
  let earlyTarget = '';
  const parser = new HTTPParser();
  parser.initialize(HTTPParser[kind === 'request' ? 'REQUEST' : 'RESPONSE'], {}, LARGE, 0);
  parser[HTTPParser.kOnHeaders] = (lines: readonly string[], target: string): void => {
    if (current !== undefined) {
      current.trailers.push(...lines);
      return;
    }
    early.push(...lines);
    earlyTarget += target;
  };
  parser[HTTPParser.kOnHeadersComplete] = (...values: readonly unknown[]): number => {
    const [, , lines, method, target, status, , upgrade] = values;
    current = {
      method: typeof method === 'number' ? (methods[method] ?? '') : '',
      target: typeof target === 'string' ? target : earlyTarget,
      status: typeof status === 'number' ? status : 0,
      fields: Array.isArray(lines) ? lines.map(String) : early,
      trailers: [],
      body: '',
      complete: false,
      upgrade: upgrade === true,
    };
    early = [];
    earlyTarget = '';
    messages.push(current);
    return 0;
  };
  parser[HTTPParser.kOnBody] = (bytes: Buffer): void => {
    assert(current !== undefined);
    current.body += bytes.toString('latin1');
  };
  parser[HTTPParser.kOnMessageComplete] = (): void => {
    assert(current !== undefined);
    current.complete = true;
    current = undefined;
  };
  const result = parser.execute(Buffer.from(text, 'latin1'));
  const error = result instanceof Error && 'code' in result ? String(result.code) : undefined;
  return { messages, error };
}
