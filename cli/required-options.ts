// Options that a command cannot do without. commander names a missing one at a time, in a style of its own, and does not
// mark them in the help; here all that are missing are one message.
import { Option, type Command } from 'commander';
import { WeirError } from '../contract/errors.ts';

const MARK = ' (required)';

export function requiredOption(flags: string, description: string): Option {
  return new Option(flags, `${description}${MARK}`);
}

/** Throws CONFIG_INVALID that names every required option without a value. */
export function refuseMissing(command: Command): void {
  const missing = command.options
    .filter(({ description }) => description.endsWith(MARK))
    .filter((option) => command.getOptionValue(option.attributeName()) === undefined);
  if (missing.length === 0) return;
  const where = missing.map(({ long }) => String(long)).join(', ');
  const right = missing.map(({ flags }) => flags.slice(flags.indexOf('<'))).join(', ');
  throw new WeirError('CONFIG_INVALID', { where, given: 'nothing', right });
}
