// The catalogue of operating failures. docs/errors.md gives cause and remedy of each code; a test holds the
// two lists equal in both directions. A code is never reused for another meaning.

const catalogue = {
  CONFIG_INVALID: 'the configuration is not valid',
  POLICY_INVALID: 'the policy is not valid',
  POLICY_UNREADABLE: 'a policy file could not be read',
  LISTEN_FAILED: 'the address could not be listened on',
  STORE_UNREACHABLE: 'the store could not be reached',
  STORE_SETTINGS_INVALID: 'the store settings are not valid',
  ADMIN_UNREACHABLE: 'the admin listener could not be reached',
  KUBE_CONFIG_INVALID: 'the access to the Kubernetes API is not configured',
  CERTIFICATE_INVALID: 'the certificate cannot be used',
  CLUSTER_TOO_OLD: 'the cluster is too old',
  LEADERSHIP_LOST: 'the lease was lost',
  REDIRECT_FAILED: 'the redirect rules are not in force',
} as const;

export type ErrorCode = keyof typeof catalogue;

/** An operating failure: a constant sentence per code, the variable facts in `details`, the origin in `cause`. */
export class WeirError extends Error {
  override readonly name = 'WeirError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    details: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(catalogue[code], options);
    this.code = code;
    this.details = details;
  }
}

/** Every code with its sentence, for the docs test. */
export const errorCatalogue: Readonly<Record<ErrorCode, string>> = catalogue;
