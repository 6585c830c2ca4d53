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
{{- with .Values.redis.url -}}
{{- if not (regexMatch "^(redis|rediss)(\\+(sentinel|cluster))?://[^\\s?#/]+(/[^\\s?#]*)?$" .) -}}
{{- fail "\n\nredis.url is no address of a store, such as rediss://user:password@redis.example:6380 (characters like ? and / of a password are written %3F and %2F). It is not shown here because it may hold a password.\n" -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.redis.existingSecret "weir-ca" -}}
{{- fail "\n\nredis.existingSecret is weir-ca, which holds the operator's CA: name a Secret that says how to reach a store.\n" -}}
{{- end -}}
{{- if and .Values.redis.existingSecret (eq .Values.redis.existingSecret (include "weir.ownStoreName" .)) -}}
{{- fail (printf "\n\nredis.existingSecret is %s, the name of the Secret that the chart makes: the upgrade would delete yours. Give yours another name.\n" .Values.redis.existingSecret) -}}
{{- end -}}
{{- $name := include "weir.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "\n\n%q cannot be the beginning of a Service's name (a letter, then letters, digits and dashes): choose another release name, or fullnameOverride.\n" $name) -}}
{{- end -}}
{{- $ports := .Values.operator.ports -}}
{{- if or (eq (int $ports.webhook) (int $ports.stream)) (eq (int $ports.webhook) (int $ports.admin)) (eq (int $ports.stream) (int $ports.admin)) -}}
{{- fail "\n\noperator.ports.webhook, stream and admin are three listeners and need three numbers.\n" -}}
{{- end -}}
{{- $grace := trimSuffix "s" .Values.operator.grace | int -}}
{{- with .Values.operator.terminationGracePeriodSeconds -}}
{{- if lt (int .) $grace -}}
{{- fail (printf "\n\noperator.terminationGracePeriodSeconds is %d, less than operator.grace: a replica would be killed before it has sent its sidecars elsewhere.\n" (int .)) -}}
{{- end -}}
{{- end -}}
{{- range .Values.operator.extraEnv -}}
{{- if or (hasPrefix "WEIR_" .name) (and (eq .name "NODE_OPTIONS") $.Values.operator.nodeOptions) -}}
{{- fail (printf "\n\noperator.extraEnv names %s, which the chart writes: every setting has a value of its own.\n" .name) -}}
{{- end -}}
{{- end -}}
{{- $served := .Values.watchNamespaces -}}
{{- if has .Release.Namespace $served -}}
{{- fail "\n\nwatchNamespaces holds the release's own namespace, whose pods never get a sidecar.\n" -}}
{{- end -}}
{{- if and $served .Values.test.enabled (not (has (include "weir.testNamespace" .) $served)) -}}
{{- fail (printf "\n\ntest.namespace is %s, which is not among watchNamespaces: its pods get no sidecar, so `helm test` would fail.\n" .Values.test.namespace) -}}
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
