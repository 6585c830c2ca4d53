// How the command line speaks: exit codes, colour, and failures as three lines a person can act on.
import process from 'node:process';
import { type ErrorCode, WeirError } from '../contract/errors.ts';

/** The thing checked is not in order, or the work could not be done. */
export const NOT_IN_ORDER = 1;
/** The command line or the environment is wrong. */
export const USAGE_ERROR = 2;

/** Colour only where a person looks: a terminal, unless NO_COLOR says otherwise (https://no-color.org). */
export function wantsColour(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && (process.env['NO_COLOR'] ?? '') === '';
}

/** What a flag or variable said wrongly. */
const USAGE_CODES: ReadonlySet<ErrorCode> = new Set(['CONFIG_INVALID', 'STORE_SETTINGS_INVALID']);

/** Prints an operating failure and sets the exit code; anything else is a bug and ends the process with its stack. */
export function reportFailure(error: unknown): void {
  if (!(error instanceof WeirError)) throw error;
  process.stderr.write(`weir: ${describeFailure(error)}\n`);
  process.exitCode = USAGE_CODES.has(error.code) ? USAGE_ERROR : NOT_IN_ORDER;
}

/** `where: given …; expected …`, or the catalogue's sentence with its facts. */
function describeFailure(error: WeirError): string {
  const { where, given, right } = error.details;
  const cause = innermost(error);
  const because = cause === '' ? '' : `\n  cause: ${cause}`;
  if (where !== undefined && right !== undefined) {
    return `${text(where)}: got ${text(given)}; expected ${text(right)} (${error.code})${because}`;
  }
  const facts = Object.entries(error.details).map(([name, value]) => `\n  ${name}: ${text(value)}`);
  return `${error.message} (${error.code})${facts.join('')}${because}`;
}

/** The reason at the bottom: those above it mostly say that something failed. */
function innermost(error: Error): string {
  let cause: unknown = error.cause;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return cause instanceof Error ? cause.message : '';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
