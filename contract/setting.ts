// How one setting is read: the same parsers serve flags, environment variables and the generated reference.
import { type ErrorCode, WeirError } from './errors.ts';

/** `name` is the flag without dashes; the environment variable is `WEIR_` plus its upper-case form. */
export interface Setting<Value> {
  readonly name: string;
  /** The field of the configuration. */
  readonly field: string;
  readonly placeholder: string;
  readonly summary: string;
  /** As a user would write it; undefined = no default. */
  readonly written: string | undefined;
  readonly parse: (text: string) => Value;
  /** May be given several times on the command line; comma-separated in the environment. */
  readonly isList: boolean;
  /** Its value may hold credentials: `--print-config` shows it redacted. */
  readonly isSecret: boolean;
}

const DURATION = /^([1-9][0-9]{0,6})(ms|s|m|h)$/;
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

export function environmentName(flag: string): string {
  return `WEIR_${flag.toUpperCase().replaceAll('-', '_')}`;
}

/** A positive duration such as `50ms`, `10s`, `5m`; in milliseconds. */
export function parseDuration(text: string): number {
  const found = DURATION.exec(text);
  const [, amount, unit] = found ?? [];
  const factor = UNIT_MS[unit ?? ''];
  if (amount === undefined || factor === undefined) {
    throw reject(text, 'a duration: a whole number and ms, s, m or h, such as 50ms or 10s');
  }
  const ms = Number(amount) * factor;
  if (ms > LONGEST_MS) throw reject(text, 'a duration of at most 24h');
  return ms;
}

/** A timer of Node cannot wait longer than 24.8 days; a day is more than any of these settings needs. */
const LONGEST_MS = 24 * 3_600_000;

export function parseInteger(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : NaN;
    if (!(value >= min && value <= max)) {
      throw reject(text, `a whole number from ${min} to ${max}`);
    }
    return value;
  };
}

/** A share from 0 to 1, such as 0.01. */
export function parseShare(text: string): number {
  const value = /^(0|1|0?\.[0-9]+|1\.0+)$/.test(text) ? Number(text) : NaN;
  if (!(value >= 0 && value <= 1)) throw reject(text, 'a number from 0 to 1, such as 0.01');
  return value;
}

export function parseChoice<Choice extends string>(
  choices: readonly Choice[],
): (text: string) => Choice {
  return (text) => {
    const found = choices.find((one) => one === text);
    if (found === undefined) throw reject(text, `one of ${choices.join(', ')}`);
    return found;
  };
}

export function parseSwitch(text: string): boolean {
  return parseChoice(['true', 'false'])(text) === 'true';
}

export interface HostPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT`, `[::1]:PORT`; ports from `lowestPort` to 65535. */
export function parseHostPort(lowestPort: 0 | 1): (text: string) => HostPort {
  return (text) => {
    const found = /^(?:\[([0-9A-Fa-f:.%]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/.exec(text);
    const [, bracketed, plain, digits] = found ?? [];
    const host = bracketed ?? plain;
    const port = Number(digits);
    if (host === undefined || port > 65535 || port < lowestPort) {
      throw reject(
        text,
        `HOST:PORT with a port from ${lowestPort} to 65535, such as localhost:3000 or [::1]:3000`,
      );
    }
    return { host, port };
  };
}

/** As `parseHostPort` reads it. */
export function formatHostPort({ host, port }: HostPort): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** `key=value`, as in a pod's labels. */
export function parseLabel(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw reject(text, 'a label such as app=api');
  return [text.slice(0, at), text.slice(at + 1)];
}

/** `Deployment/api`: the owner that shares a bucket under `scope: Workload`. */
export function parseWorkload(text: string): string {
  if (!/^[A-Za-z]{1,63}\/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text)) {
    throw reject(text, 'KIND/NAME, such as Deployment/api');
  }
  return text;
}

export function parseText(pattern: RegExp, right: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw reject(text, right);
    return text;
  };
}

/** A path of a file or folder, whether it is there or not. */
export const parsePath: (text: string) => string = parseText(/^[^\0]+$/, 'a path');

interface Multiplicity {
  readonly isList: boolean;
  readonly isSecret: false;
}

/** A setting with one value that is no secret. */
export const one: Multiplicity = { isList: false, isSecret: false };
/** A setting with any number of values that are no secrets. */
export const list: Multiplicity = { isList: true, isSecret: false };

/** The value and what would be right; the caller adds which flag or variable it came from. */
function reject(given: string, right: string): WeirError {
  const code: ErrorCode = 'CONFIG_INVALID';
  return new WeirError(code, { given, right });
}
