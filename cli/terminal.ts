// How the command line speaks: exit codes, colour, and failures as three lines a person can act on.
import process from 'node:process';
import { WeirError } from '../contract/errors.ts';

/** The thing checked is not in order, or the work could not be done. */
export const NOT_IN_ORDER = 1;
/** The command line or the environment is wrong. */
export const USAGE_ERROR = 2;

/** Colour only where a person looks: a terminal, unless NO_COLOR says otherwise (https://no-color.org). */
export function wantsColour(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && (process.env['NO_COLOR'] ?? '') === '';
}

/** Prints an operating failure and sets the exit code; anything else is a bug and ends the process with its stack. */
export function reportFailure(error: unknown): void {
  if (!(error instanceof WeirError)) throw error;
  process.stderr.write(`weir: ${describeFailure(error)}\n`);
  process.exitCode = error.code === 'CONFIG_INVALID' ? USAGE_ERROR : NOT_IN_ORDER;
}

/** `where: given …; expected …`, or the catalogue's sentence with its facts. */
function describeFailure(error: WeirError): string {
  const { where, given, right, ...facts } = error.details;
  if (where !== undefined && right !== undefined) {
    return `${text(where)}: got ${text(given)}; expected ${text(right)}`;
  }
  const written = Object.entries(facts).map(([name, value]) => `\n  ${name}: ${text(value)}`);
  const cause = error.cause instanceof Error ? `\n  cause: ${error.cause.message}` : '';
  return `${error.message} (${error.code})${written.join('')}${cause}`;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
