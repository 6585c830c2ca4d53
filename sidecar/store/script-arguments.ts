// Hot path. A call as the arguments that script.lua reads. They are few and ASCII: what a call costs grows with the
// number of its strings, on this side, on the wire and in the store's only thread.

/** See Batch in ../limiter/token-bucket.ts. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly limits: readonly { readonly text: string }[];
  readonly operations: readonly number[];
}

/** How the script spells the operations ACQUIRE, PEEK, REFUND and CHARGE_DOWN. */
const LETTERS = 'aprc';
const WIDE_LETTERS = 'APRC';
const BASE = 128;
const WIDE_BYTES = 5;
/** Above every weight (10^8) times every lease (10^6 tokens at most), below what a double holds exactly. */
export const WIDE_MAX: number = BASE ** WIDE_BYTES - 1;

const CHARACTERS: readonly string[] = Array.from({ length: BASE }, (_, code) =>
  String.fromCharCode(code),
);
/** Two bytes each, for all limits a call can name. */
const PLACES: readonly string[] = Array.from({ length: BASE }, (_, place) => placeText(place));

/** The arguments of EVAL or EVALSHA for `call`. */
export function encodeCall(call: ScriptCall, script: string): (string | number)[] {
  const { keys, limits } = call;
  const args: (string | number)[] = [script, keys.length];
  for (const key of keys) args.push(key);
  const texts: string[] = [];
  args.push(encodePlaces(limits, texts), encodeOperations(call.operations));
  for (const text of texts) args.push(text);
  return args;
}

/** Adds to `texts` what is not among them. Most calls have one limit or two. */
function encodePlaces(limits: ScriptCall['limits'], texts: string[]): string {
  let places = '';
  for (const { text } of limits) {
    let place = texts.lastIndexOf(text) + 1;
    if (place === 0) place = texts.push(text);
    places += PLACES[place] ?? placeText(place);
  }
  return places;
}

function placeText(place: number): string {
  return String.fromCharCode(Math.floor(place / BASE), place % BASE);
}

function encodeOperations(operations: readonly number[]): string {
  let text = '';
  let at = 0;
  while (at < operations.length) {
    const end = at + 4 + 2 * (operations[at + 3] ?? 0);
    text += isNarrow(operations, at + 1, end)
      ? encodeNarrow(operations, at, end)
      : encodeWide(operations, at, end);
    at = end;
  }
  return text;
}

function isNarrow(operations: readonly number[], from: number, end: number): boolean {
  for (let at = from; at < end; at += 1) if ((operations[at] ?? 0) >= BASE) return false;
  return true;
}

function encodeNarrow(operations: readonly number[], at: number, end: number): string {
  let text = LETTERS.charAt(operations[at] ?? 0);
  for (let i = at + 1; i < end; i += 1) text += CHARACTERS[operations[i] ?? 0] ?? '';
  return text;
}

function encodeWide(operations: readonly number[], at: number, end: number): string {
  let text = WIDE_LETTERS.charAt(operations[at] ?? 0);
  for (let i = at + 1; i < end; i += 1) text += wideText(operations[i] ?? 0);
  return text;
}

function wideText(value: number): string {
  if (value > WIDE_MAX) throw new RangeError(`too large for the script: ${value}`);
  let text = '';
  let rest = value;
  for (let i = 0; i < WIDE_BYTES; i += 1) {
    text = String.fromCharCode(rest % BASE) + text;
    rest = Math.floor(rest / BASE);
  }
  return text;
}
