import {
  clusterRules,
  ownRules,
  watchedRules,
  type AccessRule,
} from '../../operator/access-rules.ts';
import { parseOperatorConfig } from '../../operator/config.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export function writeAccess(): string {
  const flags = { 'evict-uninjected': 'true', 'store-secret': 'weir-store' };
  const config = parseOperatorConfig(flags, {});
  return `${GENERATED_NOTE}

# What the operator may do

Its rights are what it calls, without wildcards. Sidecars have no rights in the API server at all: they show a token that is
good for the operator's stream alone.

## In the namespaces it watches

In a ClusterRole, or with \`--watch-namespaces\` in a Role of each of them.

${tableOf(watchedRules(config))}

## In the cluster

${tableOf(clusterRules(config))}

## In its own namespace

${tableOf(ownRules(config))}
`;
}

function tableOf(rules: readonly AccessRule[]): string {
  const rows = rules.map(({ apiGroups, resources, verbs, resourceNames = [], reason }) => [
    resources.map((resource) => `\`${resource}${suffix(apiGroups)}\``).join(', '),
    resourceNames.map((name) => `\`${name}\``).join(', '),
    verbs.join(', '),
    reason,
  ]);
  return markdownTable(['resource', 'only', 'verbs', 'for'], rows);
}

function suffix(apiGroups: readonly string[]): string {
  const [group = ''] = apiGroups;
  return group === '' ? '' : `.${group}`;
}
