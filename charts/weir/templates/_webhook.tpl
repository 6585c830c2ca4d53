{{- define "weir.anyNamespace" -}}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: [kube-system, kube-public, kube-node-lease, {{ .Release.Namespace | quote }}]
- { key: weir.dev/admission-webhooks, operator: NotIn, values: [disabled] }
{{- with .Values.watchNamespaces }}
- key: kubernetes.io/metadata.name
  operator: In
  values:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- with .Values.webhookConfiguration.namespaceSelector }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What all entries have in common. */}}
{{- define "weir.webhookRest" -}}
clientConfig:
  service:
    namespace: {{ .Release.Namespace | quote }}
    name: {{ include "weir.operatorName" . | quote }}
    port: 443
    path: /mutate
admissionReviewVersions: [v1]
sideEffects: NoneOnDryRun
reinvocationPolicy: IfNeeded
matchPolicy: Equivalent
timeoutSeconds: {{ .Values.webhookConfiguration.timeoutSeconds }}
rules:
  - apiGroups: ['']
    apiVersions: [v1]
    operations: [CREATE]
    resources: [pods]
    scope: Namespaced
objectSelector:
  matchExpressions:
    - { key: app.kubernetes.io/part-of, operator: NotIn, values: [weir] }
{{- end -}}
