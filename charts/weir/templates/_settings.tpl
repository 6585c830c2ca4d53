{{/* What the operator is told, as WEIR_* variables; an empty value is left out, because an empty variable is no default.
     Variables of the pod itself (`WEIR_NAMESPACE`, `WEIR_POD_NAME`, `WEIR_POD_UID`) are in the Deployment. */}}
{{- define "weir.settings" -}}
{{- $operator := .Values.operator -}}
{{- $sidecar := .Values.sidecar -}}
{{- $mode := .Values.certificates.mode -}}
{{- $isOwn := eq $mode "own" -}}
{{- $address := $operator.listenAddress -}}
{{- $settings := dict
  "WEIR_WATCH_NAMESPACES" (join "," .Values.watchNamespaces)
  "WEIR_WEBHOOK" (printf "%s:%d" $address (int $operator.ports.webhook))
  "WEIR_STREAM" (printf "%s:%d" $address (int $operator.ports.stream))
  "WEIR_ADMIN" (printf "%s:%d" $address (int $operator.ports.admin))
  "WEIR_SERVICE" (include "weir.operatorName" .)
  "WEIR_STREAM_URL" $operator.streamUrl
  "WEIR_WEBHOOK_CONFIGURATION" .Values.webhookConfiguration.name
  "WEIR_CERTIFICATES" ($isOwn | ternary "own" "files")
  "WEIR_CERTIFICATE_DIR" ($isOwn | ternary "" "/etc/weir/tls")
  "WEIR_CERTIFICATE_NAMES" ($isOwn | ternary (join "," .Values.certificates.names) "")
  "WEIR_MANAGE_CA_BUNDLE" (include "weir.managesCaBundle" .)
  "WEIR_STORE_SECRET" (include "weir.storeSecretName" .)
  "WEIR_DEADLINE" $sidecar.storeDeadline
  "WEIR_IMAGE" (include "weir.image" (dict "root" . "image" $sidecar.image))
  "WEIR_REDIRECT_IMAGE" (include "weir.image" (dict "root" . "image" .Values.redirectInit.image))
  "WEIR_IMAGE_PULL_POLICY" $sidecar.image.pullPolicy
  "WEIR_IMAGE_PULL_SECRETS" (join "," $sidecar.imagePullSecrets)
  "WEIR_MODE" $sidecar.mode
  "WEIR_ON_NO_CONFIG" $sidecar.onNoConfig
  "WEIR_DRAIN_SECONDS" (int $sidecar.drainSeconds | toString)
  "WEIR_SIDECAR_WORKERS" (int $sidecar.workers | toString)
  "WEIR_SIDECAR_LOG_LEVEL" $sidecar.logLevel
  "WEIR_SIDECAR_CPU_REQUEST" (include "weir.quantity" $sidecar.resources.requests.cpu)
  "WEIR_SIDECAR_CPU_LIMIT" (include "weir.quantity" $sidecar.resources.limits.cpu)
  "WEIR_SIDECAR_MEMORY_REQUEST" (include "weir.quantity" $sidecar.resources.requests.memory)
  "WEIR_SIDECAR_MEMORY_LIMIT" (include "weir.quantity" $sidecar.resources.limits.memory)
  "WEIR_JWKS_HOSTS" (join "," $operator.jwksHosts)
  "WEIR_EVICT_UNINJECTED" (toString $operator.evictUninjected)
  "WEIR_LEADER_ELECT" (toString $operator.leaderElect)
  "WEIR_GRACE" $operator.grace
  "WEIR_LOG_LEVEL" $operator.logLevel -}}
{{- range $name, $value := $settings }}
{{- if $value }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "weir.managesCaBundle" -}}
{{- if eq .Values.certificates.mode "cert-manager" -}}
false
{{- else if eq .Values.certificates.mode "files" -}}
{{- .Values.certificates.files.manageCaBundle -}}
{{- else -}}
true
{{- end -}}
{{- end -}}
