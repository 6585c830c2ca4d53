// What scripts/test-e2e.ts tells the suites; nothing else under test/e2e reads the environment.
import process from 'node:process';

export interface E2eConfig {
  readonly kubeconfig: string;
  readonly helm: string;
  readonly kubectl: string;
  /** The chart's values for these images, as files for `--values`. */
  readonly values: readonly string[];
  /** Image of apps and clients: it has Node.js on its PATH. */
  readonly appImage: string;
  /** The API server's audit log, one JSON object a line; absent with somebody else's cluster. */
  readonly auditLog: string | undefined;
  /** How often the rollouts are repeated. */
  readonly repeat: number;
}

export function readE2eConfig(env: NodeJS.ProcessEnv = process.env): E2eConfig {
  const given = (name: string): string => {
    const value = env[name];
    if (value === undefined || value === '') {
      throw new Error(`${name} is not set: these suites are started by \`npm run test:e2e\``);
    }
    return value;
  };
  const { WEIR_E2E_AUDIT_LOG, WEIR_E2E_REPEAT = '1' } = env;
  return {
    kubeconfig: given('WEIR_KUBECONFIG'),
    helm: given('WEIR_E2E_HELM'),
    kubectl: given('WEIR_E2E_KUBECTL'),
    values: given('WEIR_E2E_VALUES').split(','),
    appImage: given('WEIR_E2E_APP_IMAGE'),
    auditLog: WEIR_E2E_AUDIT_LOG === '' ? undefined : WEIR_E2E_AUDIT_LOG,
    repeat: Number(WEIR_E2E_REPEAT),
  };
}
