// From flags and environment to the configuration of the operator.
import { WeirError } from '../contract/errors.ts';
import {
  missing,
  readSettings,
  refuseUnknownVariables,
  type Environment,
  type GivenFlags,
} from '../contract/settings-reading.ts';
import { operatorSettings, type OperatorConfig } from './operator-settings.ts';

/** The installer's. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['WEIR_INSTALL']);

/** Throws CONFIG_INVALID naming the flag or variable, what was given and what would be right. */
export function parseOperatorConfig(flags: GivenFlags, environment: Environment): OperatorConfig {
  refuseUnknownVariables(operatorSettings, environment, {
    command: 'weir operator',
    others: OTHER_VARIABLES,
  });
  const parsed = readSettings(operatorSettings, flags, environment);
  // The table has exactly one entry per field, held by its type.
  const config = parsed as unknown as OperatorConfig;
  return refuseContradictions(config);
}

/** The effective configuration as `--print-config` prints it. */
export function describeOperatorConfig(config: OperatorConfig): Record<string, unknown> {
  const values = new Map<string, unknown>(Object.entries(config));
  const given = operatorSettings.filter(({ field }) => values.get(field) !== undefined);
  return Object.fromEntries(given.map(({ name, field }) => [name, values.get(field)]));
}

function refuseContradictions(config: OperatorConfig): OperatorConfig {
  const { certificates, certificateDir } = config;
  if (certificates === 'files' && certificateDir === undefined) {
    throw missing('--certificate-dir', 'a folder with tls.crt, tls.key and ca.crt');
  }
  if (certificates === 'own' && certificateDir !== undefined) {
    throw new WeirError('CONFIG_INVALID', {
      where: '--certificate-dir',
      given: certificateDir,
      right: 'nothing beside --certificates own',
    });
  }
  return config;
}
