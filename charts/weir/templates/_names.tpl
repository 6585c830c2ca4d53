{{- define "weir.name" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{/* What names of objects begin with; 42 characters leave room for the longest suffix within a DNS label. */}}
{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "weir.name" .) .Release.Name -}}
{{- .Release.Name | trunc 42 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "weir.name" .) | trunc 42 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "weir.operatorName" -}}
{{- printf "%s-operator" (include "weir.fullname" .) -}}
{{- end -}}

{{- define "weir.redisName" -}}
{{- printf "%s-redis" (include "weir.fullname" .) -}}
{{- end -}}

{{- define "weir.testName" -}}
{{- printf "%s-test" (include "weir.fullname" .) -}}
{{- end -}}

{{- define "weir.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "weir.operatorName" .) "default") -}}
{{- end -}}

{{/* Of every object. Takes (dict "root" $ "component" …). */}}
{{- define "weir.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "app.kubernetes.io/part-of" "weir" -}}
{{- mergeOverwrite (deepCopy .root.Values.commonLabels) $own (include "weir.selectorLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* Selectors cannot be changed on an upgrade, so they hold nothing that could. */}}
{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Of every pod of ours: `part-of: weir` keeps it from the webhook, which could not start while it waits for itself. */}}
{{- define "weir.podLabels" -}}
{{- $own := include "weir.selectorLabels" . | fromYaml -}}
{{- mergeOverwrite (deepCopy .root.Values.commonLabels) (deepCopy (.more | default dict)) $own (dict "app.kubernetes.io/part-of" "weir") | toYaml -}}
{{- end -}}

{{/* Takes (dict "root" $ "image" …). */}}
{{- define "weir.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- $name := $registry | empty | ternary .image.repository (printf "%s/%s" (trimSuffix "/" $registry) .image.repository) -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "weir.tlsSecretName" -}}
{{- if eq .Values.certificates.mode "files" -}}
{{- .Values.certificates.files.secretName -}}
{{- else -}}
{{- printf "%s-tls" (include "weir.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* The Secret that the chart makes: a name that nobody gives one of their own, which an upgrade would take away. */}}
{{- define "weir.ownStoreName" -}}
{{- .Values.redis.secretName | default (printf "%s-store-made-by-chart" (include "weir.fullname" .)) -}}
{{- end -}}

{{/* Where `helm test` asks for a pod. */}}
{{- define "weir.testNamespace" -}}
{{- .Values.test.namespace | default (first .Values.watchNamespaces | default "default") -}}
{{- end -}}

{{/* Helm reads numbers of a values file as floating point, and writes large ones with an exponent. */}}
{{- define "weir.quantity" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* The Secret that says how to reach the store; empty: there is no store. */}}
{{- define "weir.storeSecretName" -}}
{{- if .Values.redis.existingSecret -}}
{{- .Values.redis.existingSecret -}}
{{- else if or .Values.redis.embedded.enabled .Values.redis.url -}}
{{- include "weir.ownStoreName" . -}}
{{- end -}}
{{- end -}}
