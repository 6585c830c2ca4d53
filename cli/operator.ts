// `weir operator`: from flags to a running operator, and from signals to its end.
import process from 'node:process';
import type { GivenFlags } from '../contract/settings-reading.ts';
import { describeOperatorConfig, parseOperatorConfig } from '../operator/config.ts';
import { operatorSettings } from '../operator/operator-settings.ts';
import { untilSignalled } from './signals.ts';

/** Flags as commander names them. Throws WeirError when the operator cannot start. */
export async function runOperatorCommand(given: GivenFlags, version: string): Promise<void> {
  const config = parseOperatorConfig(byFlagName(given), process.env);
  if (given['printConfig'] === true) {
    process.stdout.write(`${JSON.stringify(describeOperatorConfig(config), undefined, 2)}\n`);
    return;
  }
  const [{ openLog }, { runOperator }] = await Promise.all([
    import('../operator/log.ts'),
    import('../operator/run.ts'),
  ]);
  const announce = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const dependencies = { log: openLog(config.logLevel), version, announce };
  await runOperator(config, dependencies, untilSignalled());
}

function byFlagName(given: GivenFlags): GivenFlags {
  return Object.fromEntries(operatorSettings.map(({ name, field }) => [name, given[field]]));
}
