{{/* What no schema can say in words: values that are right each and wrong together. */}}
{{- define "weir.refuseContradictions" -}}
{{- $stores := list -}}
{{- if .Values.redis.embedded.enabled }}{{ $stores = append $stores "redis.embedded.enabled" }}{{ end -}}
{{- if .Values.redis.url }}{{ $stores = append $stores "redis.url" }}{{ end -}}
{{- if .Values.redis.existingSecret }}{{ $stores = append $stores "redis.existingSecret" }}{{ end -}}
{{- if gt (len $stores) 1 -}}
{{- fail (printf "\n\n%s name a store each, and there can be one. With a store of your own add --set redis.embedded.enabled=false.\n" (join " and " $stores)) -}}
{{- end -}}
{{- if and (not .Values.operator.leaderElect) (gt (int .Values.operator.replicas) 1) -}}
{{- fail "\n\noperator.leaderElect is false and operator.replicas is more than 1: all of them would write at once. Set operator.replicas=1.\n" -}}
{{- end -}}
{{- $mode := .Values.certificates.mode -}}
{{- if and (eq $mode "files") (not .Values.certificates.files.secretName) -}}
{{- fail "\n\ncertificates.mode is files: name the Secret with tls.crt, tls.key and ca.crt in certificates.files.secretName.\n" -}}
{{- end -}}
{{- if and (eq $mode "cert-manager") (not (.Capabilities.APIVersions.Has "cert-manager.io/v1")) -}}
{{- fail "\n\ncertificates.mode is cert-manager, and this cluster has no cert-manager.io/v1. Install cert-manager first; `helm template` needs --api-versions cert-manager.io/v1.\n" -}}
{{- end -}}
{{- $entries := .Values.webhookConfiguration.entries -}}
{{- if not (or $entries.enabled $entries.required $entries.namespace) -}}
{{- fail "\n\nEvery entry of webhookConfiguration.entries is false: no pod would ever get a sidecar.\n" -}}
{{- end -}}
{{- end -}}
