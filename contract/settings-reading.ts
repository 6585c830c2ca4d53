// From flags and environment to checked values, by a table of settings: a flag beats the environment, the environment
// beats the default, and whatever cannot be read names where it came from and what would be right.
import { WeirError } from './errors.ts';
import { environmentName, type Setting } from './setting.ts';

/** What the command line gave, by flag name: only flags that were really written. */
export type GivenFlags = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** One entry per field of a configuration, in the order in which help and docs list them. */
export type SettingsTable<Config> = {
  readonly [Field in keyof Config]: Omit<Setting<unknown>, 'name' | 'field'>;
};

/** `maxConnections` → `--max-connections`. */
export function settingsOf<Config>(table: SettingsTable<Config>): readonly Setting<unknown>[] {
  const entries = Object.entries<Omit<Setting<unknown>, 'name' | 'field'>>(table);
  return entries.map(([field, rest]) => ({
    name: field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    field,
    ...rest,
  }));
}

/**
 * The value of every setting by its field; undefined = not given and without default.
 * Throws CONFIG_INVALID naming the flag or variable, what was given and what would be right.
 */
export function readSettings(
  settings: readonly Setting<unknown>[],
  flags: GivenFlags,
  environment: Environment,
): Readonly<Record<string, unknown>> {
  const parsed: Record<string, unknown> = {};
  for (const setting of settings) {
    parsed[setting.field] = parseGiven(setting, givenFor(setting, flags, environment));
  }
  return parsed;
}

/** A pod beside a Service called weir-redis is given WEIR_REDIS_SERVICE_HOST and more: nobody's setting. */
const OF_THE_KUBELET =
  /^WEIR_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)$/;

/** Throws CONFIG_INVALID for the first variable that looks like ours and is none of them; `command` has the help. */
export function refuseUnknownVariables(
  settings: readonly Setting<unknown>[],
  environment: Environment,
  { command, others }: { readonly command: string; readonly others: ReadonlySet<string> },
): void {
  const known = new Set(settings.map((setting) => environmentName(setting.name)));
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('WEIR_') || known.has(name) || others.has(name)) continue;
    if (name.startsWith('WEIR_BENCH_') || name.startsWith('WEIR_TEST_')) continue;
    if (OF_THE_KUBELET.test(name)) continue;
    throw new WeirError('CONFIG_INVALID', {
      where: name,
      given: 'an unknown variable',
      right: `one of the variables that \`${command} --help\` lists${nearest(name, known)}`,
    });
  }
}

/** CONFIG_INVALID for what has to be given and was not. */
export function missing(where: string, right: string): WeirError {
  return new WeirError('CONFIG_INVALID', { where, given: 'nothing', right });
}

interface Given {
  readonly from: string;
  readonly texts: readonly string[];
}

function givenFor(
  setting: Setting<unknown>,
  flags: GivenFlags,
  environment: Environment,
): Given | undefined {
  const flag = flags[setting.name];
  if (flag !== undefined) {
    const texts = typeof flag === 'object' ? flag : [String(flag)];
    return {
      from: `--${setting.name}`,
      texts: setting.isList ? texts.flatMap((text) => text.split(',')) : texts,
    };
  }
  const name = environmentName(setting.name);
  const variable = environment[name];
  if (variable !== undefined) {
    return { from: name, texts: setting.isList ? variable.split(',') : [variable] };
  }
  return setting.written === undefined
    ? undefined
    : { from: `the default of --${setting.name}`, texts: [setting.written] };
}

function parseGiven(setting: Setting<unknown>, given: Given | undefined): unknown {
  if (given === undefined) return setting.isList ? [] : undefined;
  const values = given.texts.map((text) => parseOne(setting, given.from, text));
  return setting.isList ? values : values.at(-1);
}

function parseOne(setting: Setting<unknown>, from: string, text: string): unknown {
  try {
    return setting.parse(text.trim());
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    const given = setting.isSecret ? '(not shown)' : String(error.details['given']);
    throw new WeirError('CONFIG_INVALID', { where: from, given, right: error.details['right'] });
  }
}

function nearest(name: string, known: ReadonlySet<string>): string {
  const close = [...known].find(
    (one) => one.startsWith(name) || name.startsWith(one) || distance(one, name) <= 2,
  );
  return close === undefined ? '' : `; did you mean ${close}?`;
}

/** Edit distance; both names are short constants or variable names. */
function distance(a: string, b: string): number {
  // One row of the table at a time, without its first column, which counts the letters of `a`.
  let above = Array.from({ length: b.length }, (_, j) => j + 1);
  let left = b.length;
  for (const [i, letter] of Array.from(a).entries()) {
    let diagonal = i;
    left = i + 1;
    above = above.map((over, j) => {
      left = Math.min(over + 1, left + 1, diagonal + (letter === b[j] ? 0 : 1));
      diagonal = over;
      return left;
    });
  }
  return left;
}
