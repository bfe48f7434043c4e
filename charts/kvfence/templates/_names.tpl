{{/*
The names are fixed: the Lease and the signing key are found by theirs, and two operators that look after the same pools
would fight. So a second release in the same namespace, or a second one for all namespaces, is refused by helm.
*/}}
{{- define "kvfence.name" -}}
kvfence-operator
{{- end }}

{{- define "kvfence.labels" -}}
{{ include "kvfence.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* What tells the operator's pods from all others. KVFENCE_OPERATOR_LABELS hands the same labels to the operator. */}}
{{- define "kvfence.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kvfence.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The reference of an image: a list of its values and the tag that it has without one. */}}
{{- define "kvfence.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 1) }}
{{- end -}}
{{- end }}

{{- define "kvfence.frontImage" -}}
{{- $front := .Values.frontImage -}}
{{- $version := or $front.tag $front.digest -}}
{{- if and $version (not $front.repository) -}}
{{- fail "frontImage: a tag or digest without a repository says nothing: set frontImage.repository too, or neither" -}}
{{- end -}}
{{- if and $front.repository (not $version) -}}
{{- fail "frontImage: set a tag or a digest with the repository: another image does not follow this chart's appVersion" -}}
{{- end -}}
{{- if $front.repository -}}
{{ include "kvfence.image" (list $front $front.tag) }}
{{- else -}}
{{ include "kvfence.image" (list .Values.routerImage .Chart.AppVersion) }}
{{- end -}}
{{- end }}
