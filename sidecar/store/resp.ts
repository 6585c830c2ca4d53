// Hot path. A command in RESP, as one string: an array of bulk strings
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).

/** A call has a few hundred small integers: places, weights, counts. */
const INTEGERS: readonly string[] = Array.from({ length: 1_024 }, (_, i) => bulk(String(i)));

/** Lengths count UTF-8 bytes, which is how the string has to be written. */
export function encodeCommand(name: string, args: readonly (string | number)[]): string {
  let text = `*${args.length + 1}\r\n${bulk(name)}`;
  for (const arg of args) {
    text += typeof arg === 'number' ? (INTEGERS[arg] ?? bulk(String(arg))) : bulk(arg);
  }
  return text;
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}
