// The arguments of what `npm run` starts: --help prints the usage, and what is wrong is a sentence with the usage below.
// Ends the process in both cases, before anything was started.
import process from 'node:process';
import { parseArgs, type ParseArgsConfig } from 'node:util';

const USAGE_ERROR = 2;

interface Usage {
  /** As it is typed: `npm run demo`. */
  readonly command: string;
  /** What it does, in sentences. */
  readonly about: string;
  /** Options, each with what it does, in two columns. */
  readonly lines: readonly string[];
  /** What stands after the options. */
  readonly operands?: string;
}

interface Script<Config extends ParseArgsConfig> extends Usage {
  readonly config: Config;
  /** Options whose value is a number. */
  readonly numbers?: readonly string[];
  /** What is wrong with the values, as a sentence; undefined = nothing. */
  readonly whyWrong?: (read: Arguments<Config>) => string | undefined;
}

type Arguments<Config extends ParseArgsConfig> = ReturnType<typeof parseArgs<Config>>;

export function readArguments<Config extends ParseArgsConfig>(
  script: Script<Config>,
): Arguments<Config> {
  if (process.argv.slice(2).some((one) => one === '--help' || one === '-h')) {
    process.stdout.write(usageOf(script));
    process.exit(0);
  }
  const read = parse(script);
  const why = whyNoNumber(script.numbers ?? [], read.values) ?? script.whyWrong?.(read);
  return why === undefined ? read : refuse(script, why);
}

function parse<Config extends ParseArgsConfig>(script: Script<Config>): Arguments<Config> {
  try {
    return parseArgs(script.config);
  } catch (error) {
    // ERR_PARSE_ARGS_…; sentences after the first are about operands that begin with a dash.
    if (error instanceof TypeError) return refuse(script, error.message.replace(/\. .*/s, ''));
    throw error;
  }
}

function whyNoNumber(names: readonly string[], values: object): string | undefined {
  for (const [name, value] of Object.entries(values)) {
    const isNumber = /^[0-9]+(\.[0-9]+)?$/.test(String(value));
    if (names.includes(name) && !isNumber) return `--${name} ${String(value)}: expected a number`;
  }
  return undefined;
}

function refuse(usage: Usage, why: string): never {
  const name = usage.command.replace(/^(npm run|node) /, '');
  process.stderr.write(`${name}: ${why}\n\n${usageOf(usage)}`);
  process.exit(USAGE_ERROR);
}

function usageOf({ command, about, lines, operands = '' }: Usage): string {
  const listed = [...lines, '--help'].map((line) => `  ${line}\n`).join('');
  // npm would take the options for its own.
  const end = command.startsWith('npm ') ? ' --' : '';
  return `Usage: ${command}${end} [options]${operands}\n\n${about}\n\n${listed}`;
}
