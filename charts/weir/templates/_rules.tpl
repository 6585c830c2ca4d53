{{/* What the operator may do: operator/access-rules.ts in the words of RBAC; a test compares. Reasons: docs/rbac.md. */}}
{{- define "weir.watchedRules" -}}
- { apiGroups: [weir.dev], resources: [ratelimitpolicies], verbs: [list, watch] }
- { apiGroups: [weir.dev], resources: [ratelimitpolicies/status], verbs: [patch] }
- { apiGroups: [''], resources: [pods, services], verbs: [list, watch] }
- { apiGroups: [apps], resources: [replicasets], verbs: [list, watch] }
- { apiGroups: [batch], resources: [jobs], verbs: [list, watch] }
- { apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch, list, watch] }
{{- if .Values.operator.evictUninjected }}
- { apiGroups: [''], resources: [pods/eviction], verbs: [create] }
{{- end }}
{{- end -}}

{{- define "weir.clusterRules" -}}
- { apiGroups: [''], resources: [namespaces], verbs: [list, watch] }
- { apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create] }
- { apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews], verbs: [create] }
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ .Values.webhookConfiguration.name | quote }}]
  verbs: {{ eq (include "weir.managesCaBundle" .) "true" | ternary "[get, list, watch, patch]" "[list, watch]" }}
{{- end -}}

{{/* Creation cannot be bound to a name. */}}
{{- define "weir.ownRules" -}}
- { apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create] }
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [weir-operator]
  verbs: [get, update]
{{- if eq .Values.certificates.mode "own" }}
- { apiGroups: [''], resources: [secrets], verbs: [create] }
- { apiGroups: [''], resources: [secrets], resourceNames: [weir-ca], verbs: [get, update] }
{{- end }}
- { apiGroups: [''], resources: [configmaps], verbs: [create, patch, delete, list, watch] }
{{- with include "weir.storeSecretName" . }}
- { apiGroups: [''], resources: [secrets], resourceNames: [{{ . | quote }}], verbs: [list, watch] }
{{- end }}
{{- end -}}
