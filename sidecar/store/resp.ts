// Hot path. A command in RESP, as bytes: an array of bulk strings
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).

/** Beginnings of bulk strings by length: keys, digests and limit texts have a few lengths. */
const BEGINNINGS: readonly string[] = Array.from({ length: 512 }, (_, length) => beginning(length));

/** One buffer: written as a string, Node would walk through every piece of it to count its bytes. */
export function encodeCommand(name: string, args: readonly (string | number)[]): Buffer {
  // Of the commands in use only EVAL holds anything but ASCII; ASCII is copied without being looked at.
  const isAscii = name === 'evalsha';
  let text = `*${args.length + 1}\r\n$${Buffer.byteLength(name)}\r\n${name}`;
  for (const arg of args) {
    const value = typeof arg === 'number' ? String(arg) : arg;
    const length = isAscii ? value.length : Buffer.byteLength(value);
    text += BEGINNINGS[length] ?? beginning(length);
    text += value;
  }
  text += '\r\n';
  return Buffer.from(text, isAscii ? 'latin1' : 'utf8');
}

/** With the end of the bulk string before it. */
function beginning(length: number): string {
  return `\r\n$${length}\r\n`;
}
