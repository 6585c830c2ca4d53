// What the CEL library threw, in words with a caret. Its errors carry a summary and a range; anything else it may
// throw is still a fault of the expression to whoever wrote it, and must not end a process.

export interface CelFault {
  readonly message: string;
  /** The line of the expression and a line with a caret under the fault. */
  readonly excerpt: string;
}

/** Puts an error of parsing or checking `expression` into words. */
export function celFault(expression: string, error: unknown): CelFault {
  const texts = [fieldOf(error, 'summary'), fieldOf(error, 'message'), String(error)];
  const message = texts.find((text) => typeof text === 'string');
  const start = Number(fieldOf(fieldOf(error, 'range'), 'start'));
  return { message: String(message), excerpt: excerptOf(expression, start) };
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** The line of `expression` that holds the offset `start`, with a caret; offsets outside count as the nearest. */
export function excerptOf(expression: string, start: number): string {
  // Not a number becomes 0.
  const offset = Math.min(Math.max(Math.trunc(start) | 0, 0), expression.length);
  const before = expression.slice(0, offset).split('\n');
  const column = String(before.at(-1)).length;
  const line = String(expression.split('\n')[before.length - 1]);
  return `${line}\n${' '.repeat(column)}^`;
}
