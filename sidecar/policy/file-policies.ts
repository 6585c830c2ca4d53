// Policies from files, as a serving process uses them.
import type { Bundle } from '../../contract/bundle.ts';
import type { RunConfig } from '../run-config.ts';
import type { SidecarParts } from '../sidecar.ts';
import type { Log } from '../log.ts';
import { openFileSource } from './file-source.ts';
import type { Surroundings } from './policy-set.ts';

export interface FilePoliciesOptions {
  readonly log: Log;
  /** What was in force before this process started; see `FileSourceOptions.inherited`. */
  readonly inherited?: Bundle | undefined;
  /** Told of every bundle that is in force from now on. */
  readonly onInForce?: (bundle: Bundle) => void;
}

/** Opening throws POLICY_INVALID, POLICY_UNREADABLE. */
export function filePolicies(
  config: RunConfig,
  { log, inherited, onInForce }: FilePoliciesOptions,
): SidecarParts['openPolicies'] {
  return ({ bundles }) =>
    openFileSource({
      paths: config.policy,
      surroundings: surroundingsOf(config),
      inherited,
      onBundle: async ({ bundle, elsewhere }) => {
        await bundles.accept(bundle, 'file');
        if (elsewhere.length > 0) {
          log.warn(
            { event: 'policies-elsewhere', policies: elsewhere },
            'policies for other pods: see --namespace, --labels and spec.ports',
          );
        }
        onInForce?.(bundle);
      },
      onProblems: (problems) => {
        bundles.reject(problems);
      },
    });
}

function surroundingsOf(config: RunConfig): Surroundings {
  const { namespace, labels, upstream, workload, replicas } = config;
  return {
    namespace,
    labels: labels.length === 0 ? undefined : Object.fromEntries(labels),
    ports: upstream.map(({ port }) => port),
    workload: workload === undefined ? undefined : ownerName(workload),
    replicas,
  };
}

/** `Deployment/api` → `deployment.api`, as keys name an owner. */
function ownerName(workload: string): string {
  const slash = workload.indexOf('/');
  return `${workload.slice(0, slash).toLowerCase()}.${workload.slice(slash + 1)}`;
}
