// From flags and environment to a checked configuration: a flag beats the environment, the environment beats
// the default, and whatever cannot be read names where it came from and what would be right.
import { WeirError } from '../contract/errors.ts';
import { type RunConfig, settings } from './run-settings.ts';
import { environmentName, type Setting } from './setting.ts';

/** What the command line gave, by flag name: only flags that were really written. */
export type GivenFlags = Readonly<Record<string, string | readonly string[] | boolean | undefined>>;

/**
 * Merges flags, environment and defaults.
 * Throws CONFIG_INVALID naming the flag or variable, what was given and what would be right.
 */
export function parseRunConfig(
  flags: GivenFlags,
  environment: Readonly<Record<string, string | undefined>>,
): RunConfig {
  refuseUnknownVariables(environment);
  const parsed: Record<string, unknown> = {};
  for (const setting of settings) {
    const given = readGiven(setting, flags, environment);
    parsed[setting.field] = parseGiven(setting, given);
  }
  // The table has exactly one entry per field, held by its type.
  return refuseIncomplete(parsed as unknown as RunConfig);
}

/** The effective configuration as `--print-config` prints it: by flag name, as a user would write it, secrets redacted. */
export function describeRunConfig(config: RunConfig): Record<string, unknown> {
  const described: Record<string, unknown> = {};
  const values = new Map<string, unknown>(Object.entries(config));
  for (const setting of settings) {
    const value = values.get(setting.field);
    if (value === undefined) continue;
    described[setting.name] =
      setting.isSecret && typeof value === 'string' ? redactUrl(value) : value;
  }
  return described;
}

/** Keeps scheme, user, host and path; hides the password and anything that is not a URL. */
export function redactUrl(text: string): string {
  return text.includes('@')
    ? text.replace(/^([a-z+]+:\/\/[^:@/]*)(?::[^@]*)?@/i, '$1:***@').replace(/[?#].*$/, '?***')
    : text.replace(/[?#].*$/, '?***');
}

interface Given {
  readonly from: string;
  readonly texts: readonly string[];
}

function readGiven(
  setting: Setting<unknown>,
  flags: GivenFlags,
  environment: Readonly<Record<string, string | undefined>>,
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
    throw new WeirError('CONFIG_INVALID', {
      where: from,
      given,
      right: error.details['right'],
    });
  }
}

/** The installer's, and the mark of a worker process. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['WEIR_INSTALL', 'WEIR_WORKER']);

function refuseUnknownVariables(environment: Readonly<Record<string, string | undefined>>): void {
  const known = new Set(settings.map((setting) => environmentName(setting.name)));
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('WEIR_') || known.has(name) || OTHER_VARIABLES.has(name)) continue;
    if (name.startsWith('WEIR_BENCH_') || name.startsWith('WEIR_TEST_')) continue;
    throw new WeirError('CONFIG_INVALID', {
      where: name,
      given: 'an unknown variable',
      right: `one of the variables that \`weir run --help\` lists${nearest(name, known)}`,
    });
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
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substituted));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function refuseIncomplete(config: RunConfig): RunConfig {
  refuseUnpaired(config);
  if (config.operator === undefined) refuseWithoutPolicies(config);
  else refuseWithOperator(config);
  if ((config.redisCert === undefined) !== (config.redisKey === undefined)) {
    throw missing(
      config.redisCert === undefined ? '--redis-cert' : '--redis-key',
      'both --redis-cert and --redis-key, or neither',
    );
  }
  return config;
}

function refuseUnpaired({ upstream, listen }: RunConfig): void {
  if (upstream.length === 0) {
    throw missing('--upstream', 'HOST:PORT of the application, such as --upstream localhost:3000');
  }
  if (upstream.length === listen.length) return;
  throw new WeirError('CONFIG_INVALID', {
    where: '--listen',
    given: `${listen.length} for ${upstream.length} of --upstream`,
    right: 'as many of both: the n-th --listen forwards to the n-th --upstream',
  });
}

function refuseWithoutPolicies(config: RunConfig): void {
  if (config.policy.length > 0) return;
  throw missing(
    '--policy',
    'a policy file or a folder of them, such as --policy policy.yaml; or --operator in a pod',
  );
}

/** What the operator decides is not decided here as well. */
function refuseWithOperator(config: RunConfig): void {
  const excluded = {
    '--policy': config.policy.length > 0,
    '--redis': config.redis !== undefined,
    '--replicas': config.replicas !== 1,
    '--workload': config.workload !== undefined,
  };
  for (const [where, isGiven] of Object.entries(excluded)) {
    if (!isGiven) continue;
    const right = `either ${where} or --operator, which decides it`;
    throw new WeirError('CONFIG_INVALID', { where, given: 'a value beside --operator', right });
  }
  const needed = {
    '--pod-namespace': config.podNamespace,
    '--pod-name': config.podName,
    '--pod-uid': config.podUid,
  };
  for (const [where, value] of Object.entries(needed)) {
    if (value === undefined) throw missing(where, 'the pod this sidecar is in, beside --operator');
  }
}

function missing(where: string, right: string): WeirError {
  return new WeirError('CONFIG_INVALID', { where, given: 'nothing', right });
}
