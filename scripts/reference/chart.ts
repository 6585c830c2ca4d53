// The page of the chart: what it takes, from the same list as values.yaml and its schema.
import { chartSections } from '../chart/chart-values.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export function writeChartPage(): string {
  const sections = chartSections.map(({ name, values }) => {
    const rows = values.map(({ path, value, about }) => [
      `\`${path}\``,
      `\`${JSON.stringify(value)}\``,
      about,
    ]);
    return `### ${name}\n\n${markdownTable(['value', 'default', 'meaning'], rows)}\n`;
  });
  return `${GENERATED_NOTE}

# The chart of Weir

Exact HTTP rate limits for pods: the operator, its webhook, the custom resource definition, and a Redis to try it with.
Kubernetes 1.30 or newer, Helm 3 or 4.

\`\`\`sh
helm install weir charts/weir --namespace weir-system --create-namespace
\`\`\`

Use a namespace of its own: pods of the operator's namespace never get a sidecar. For production name a store
(\`redis.existingSecret\`) and begin with [values-ha.yaml](values-ha.yaml). More: [docs/install.md](../../docs/install.md),
[docs/upgrade.md](../../docs/upgrade.md), [docs/uninstall.md](../../docs/uninstall.md).

## What to know

- **The store.** With no values a small Redis of the release's own is the store, so that the first try works. It keeps
  nothing over a restart and everybody in the cluster may ask it; the notes of the release say so each time. Switch it off
  (\`redis.embedded.enabled=false\`) and name another; with none at all the failure modes of the policies decide.
- **Two releases.** Not in one namespace: the Lease and the Secret of the CA have fixed names. In two namespaces, under two names, the second needs \`crds.enabled=false\`, and each needs
  a release name, a \`webhookConfiguration.name\` and disjoint \`watchNamespaces\` of its own. Helm refuses to take over an
  object of another release.
- **\`watchNamespaces\`** also keeps the webhook to these namespaces.
- **caBundle** is in no template. The operator, or cert-manager, writes it; a chart that owned the field would take it away.
- **Nothing is generated** in a template, and no Job runs: what \`helm template\` prints is what is installed.

## Values

A value that is not in this list, or is not of its kind, is refused by \`values.schema.json\`.

${sections.join('\n')}`;
}
