{{/*
The operator's settings. All of them are always there; one that is not set is the empty string.
*/}}
{{- define "kvfence.settings" -}}
- name: KVFENCE_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: KVFENCE_POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
# The labels by which NetworkPolicies of pools let the operator's pods in.
- name: KVFENCE_OPERATOR_LABELS
  value: {{ printf "app.kubernetes.io/name=%s,app.kubernetes.io/instance=%s" (include "kvfence.name" .) .Release.Name | quote }}
- name: KVFENCE_WATCH_NAMESPACES
  value: {{ join "," .Values.watchNamespaces | quote }}
- name: KVFENCE_ENGINE_IMAGE_REPOSITORY
  value: {{ .Values.engineImage.repository | quote }}
- name: KVFENCE_PLUGIN_VERSION
  value: {{ .Values.engineImage.pluginVersion | default .Chart.AppVersion | quote }}
- name: KVFENCE_ROUTER_IMAGE
  value: {{ include "kvfence.image" (list .Values.routerImage .Chart.AppVersion) | quote }}
- name: KVFENCE_FRONT_IMAGE
  value: {{ include "kvfence.frontImage" . | quote }}
- name: KVFENCE_MINIMUM_VERSION
  value: {{ .Values.minimumVersion | quote }}
{{- if and .Values.advisories.configMap (not .Values.advisories.publicKeys) }}
{{- fail "advisories: set publicKeys with configMap, or nothing of it could be believed" }}
{{- end }}
- name: KVFENCE_ADVISORIES
  value: {{ ternary "/etc/kvfence/advisories/advisories.json" "" (ne .Values.advisories.configMap "") | quote }}
- name: KVFENCE_ADVISORY_KEYS
  value: {{ join "," .Values.advisories.publicKeys | quote }}
- name: KVFENCE_ADVISORY_CUT_SEVERITY
  value: {{ .Values.advisories.cutSeverity | quote }}
- name: KVFENCE_ADVISORY_CUT_LIMIT
  value: {{ int .Values.advisories.cutLimit | quote }}
- name: KVFENCE_LOG_FORMAT
  value: {{ .Values.logFormat | quote }}
- name: KVFENCE_CONCURRENT_RECONCILES
  value: {{ int .Values.concurrentReconciles | quote }}
- name: KVFENCE_RESYNC_SECONDS
  value: {{ int .Values.resyncSeconds | quote }}
{{- end }}
