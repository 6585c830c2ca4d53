// From flags and environment to a checked configuration: a flag beats the environment, the environment beats
// the default, and whatever cannot be read names where it came from and what would be right.
import { WeirError } from '../contract/errors.ts';
import {
  missing,
  readSettings,
  refuseUnknownVariables,
  type Environment,
  type GivenFlags,
} from '../contract/settings-reading.ts';
import { formatHostPort } from '../contract/setting.ts';
import { reaches } from './forwarding-loop.ts';
import type { RunConfig } from './run-config.ts';
import { settings } from './run-settings.ts';

/**
 * Merges flags, environment and defaults.
 * Throws CONFIG_INVALID naming the flag or variable, what was given and what would be right.
 */
export function parseRunConfig(flags: GivenFlags, environment: Environment): RunConfig {
  refuseUnknownVariables(settings, environment, { command: 'weir run', others: OTHER_VARIABLES });
  const parsed = readSettings(settings, flags, environment);
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
  if (!/^[a-z+]+:\/\//i.test(text)) return '***';
  return text.includes('@')
    ? text.replace(/^([a-z+]+:\/\/[^:@/]*)(?::[^@]*)?@/i, '$1:***@').replace(/[?#].*$/, '?***')
    : text.replace(/[?#].*$/, '?***');
}

/** The installer's, and the mark of a worker process. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['WEIR_INSTALL', 'WEIR_WORKER']);

function refuseIncomplete(config: RunConfig): RunConfig {
  refuseUnpaired(config);
  refuseLoop(config);
  if (config.operator === undefined) refuseWithoutPolicies(config);
  else refuseWithOperator(config);
  refuseWithoutStore(config);
  refuseHalfPair(['--redis-cert', config.redisCert], ['--redis-key', config.redisKey]);
  refuseHalfPair(['--tls-cert', config.tlsCert], ['--tls-key', config.tlsKey]);
  if (config.tlsClientCa !== undefined && config.tlsCert === undefined) {
    throw missing('--tls-cert', '--tls-cert and --tls-key beside --tls-client-ca');
  }
  return config;
}

type Given = readonly [flag: string, value: string | undefined];

function refuseHalfPair(cert: Given, key: Given): void {
  if ((cert[1] === undefined) === (key[1] === undefined)) return;
  const [flag] = cert[1] === undefined ? cert : key;
  throw missing(flag, `both ${cert[0]} and ${key[0]}, or neither`);
}

function refuseUnpaired({ upstream, listen, upstreamProtocol }: RunConfig): void {
  if (upstream.length === 0) {
    throw missing('--upstream', 'HOST:PORT of the application, such as --upstream localhost:3000');
  }
  const spoken = upstreamProtocol.length;
  if (spoken > 1 && spoken !== upstream.length) {
    throw new WeirError('CONFIG_INVALID', {
      where: '--upstream-protocol',
      given: `${spoken} for ${upstream.length} of --upstream`,
      right: 'one for all, or as many of both: the n-th says what the n-th --upstream speaks',
    });
  }
  if (upstream.length === listen.length) return;
  throw new WeirError('CONFIG_INVALID', {
    where: '--listen',
    given: `${listen.length} for ${upstream.length} of --upstream`,
    right: 'as many of both: the n-th --listen forwards to the n-th --upstream',
  });
}

/** A sidecar that is its own application would answer each request by another one, until something is full. */
function refuseLoop({ upstream, listen }: RunConfig): void {
  for (const to of upstream) {
    if (!listen.some((at) => at.port === to.port && reaches(to.host, at.host))) continue;
    throw new WeirError('CONFIG_INVALID', {
      where: '--upstream',
      given: `${formatHostPort(to)}, where --listen takes requests`,
      right: 'the address of the application, which is another one (127.0.0.1 is not ::1)',
    });
  }
}

function refuseWithoutStore({ redis, redisCa, redisCert, redisKey, operator }: RunConfig): void {
  if (redis !== undefined) return;
  const given = { '--redis-ca': redisCa, '--redis-cert': redisCert, '--redis-key': redisKey };
  for (const [where, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (operator === undefined) throw missing('--redis', `the store that ${where} is for`);
    throw besideOperator(where);
  }
}

function besideOperator(where: string): WeirError {
  const right = `either ${where} or --operator, which decides it`;
  return new WeirError('CONFIG_INVALID', { where, given: 'a value beside --operator', right });
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
    if (isGiven) throw besideOperator(where);
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
