{{/*
What the operator may do where pools are. Server-side apply is a patch, and a create where the object is new.
*/}}
{{- define "kvfence.poolRules" -}}
- apiGroups: [kvfence.io]
  resources: [inferencepools]
  verbs: [get, list, watch]
- apiGroups: [kvfence.io]
  resources: [inferencepools/status]
  verbs: [patch]
# Never written: where OwnerReferencesPermissionEnforcement is on, an owner reference with blockOwnerDeletion needs it.
- apiGroups: [kvfence.io]
  resources: [inferencepools/finalizers]
  verbs: [update]
# The patch is an annotation of router pods, so that the kubelet hands a changed ConfigMap on at once.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [controllerrevisions, deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{- define "kvfence.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kvfence.name" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}
