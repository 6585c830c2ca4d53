// Where the hooks of a pod find their sidecar: --admin, else WEIR_ADMIN, else the default of `weir run`.
import process from 'node:process';
import { WeirError } from '../contract/errors.ts';
import { settings } from '../sidecar/run-settings.ts';
import { type HostPort, parseHostPort } from '../contract/setting.ts';

/** Throws CONFIG_INVALID naming the flag or variable. A wildcard address is asked over loopback. */
export function findAdmin(flag: string | undefined): HostPort {
  const fromEnvironment = process.env['WEIR_ADMIN'];
  const written = flag ?? fromEnvironment ?? defaultAdmin();
  const where = flag === undefined ? 'WEIR_ADMIN' : '--admin';
  const { host, port } = locate(where, written);
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return host === '::' ? { host: '::1', port } : { host, port };
}

function locate(where: string, written: string): HostPort {
  try {
    return parseHostPort(1)(written);
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    throw new WeirError('CONFIG_INVALID', { ...error.details, where });
  }
}

function defaultAdmin(): string {
  return settings.find((setting) => setting.name === 'admin')?.written ?? '';
}
