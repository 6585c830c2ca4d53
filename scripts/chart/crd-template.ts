// The CustomResourceDefinition as a template: in `templates/` and not in `crds/`, because Helm never upgrades what is
// there.
import { renderCrd } from '../../crds/crd.ts';

const METADATA = /^metadata:\n {2}name: (\S+)\n/m;

export function writeCrdTemplate(): string {
  // Helm would take a brace pair of a description for its own.
  const crd = renderCrd().replaceAll('{{', '{{ "{{" }}');
  if (!METADATA.test(crd)) throw new Error('the CRD has no metadata with a name');
  const body = crd.replace(METADATA, (found) => `${found}${MORE_METADATA}`);
  return `{{- /* Made by \`npm run generate\`. */ -}}\n{{- if .Values.crds.enabled }}\n${body}{{- end }}\n`;
}

const MORE_METADATA = `  labels:
    {{- include "weir.labels" (dict "root" . "component" "crds") | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
`;
