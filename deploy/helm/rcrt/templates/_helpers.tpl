{{- define "rcrt.name" -}}
{{ default .Release.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "rcrt.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{/* Of the pods of one component. Call with (dict "root" $ "component" "server"). */}}
{{- define "rcrt.selector" -}}
app.kubernetes.io/name: rcrt
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "rcrt.labels" -}}
{{ include "rcrt.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Of every pod and container, except runners in the mode `nested`. */}}
{{- define "rcrt.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "rcrt.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The part of a pod that does not depend on its component's containers. */}}
{{- define "rcrt.placement" -}}
{{- $values := index .root.Values .component }}
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- if .root.Values.topologySpread }}
topologySpreadConstraints:
{{- $root := . }}
{{- range .root.Values.topologySpread }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "rcrt.selector" $root | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "rcrt.metricsToken" -}}
- name: RCRT_METRICS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.metrics.secret.name }}
      key: {{ .Values.metrics.secret.key }}
{{- end }}

{{- define "rcrt.telemetry" -}}
{{- with .root.Values.telemetry.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
- name: OTEL_SERVICE_NAME
  value: rcrt-{{ $.component }}
{{- end }}
{{- end }}

{{- define "rcrt.database" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.secret.name }}
      key: {{ .Values.database.secret.key }}
{{- end }}

{{/* Of a container that is a runner. */}}
{{- define "rcrt.runnerProbes" -}}
ports:
  - { name: metrics, containerPort: 9464 }
startupProbe:
  httpGet: { path: /health/live, port: metrics }
  periodSeconds: 2
  failureThreshold: 60
# A runner that cannot claim calls is not ready.
readinessProbe:
  httpGet: { path: /health, port: metrics }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
livenessProbe:
  httpGet: { path: /health/live, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "rcrt.policyHead" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "rcrt.name" .root }}-{{ .component }}
  labels: {{ include "rcrt.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{ include "rcrt.selector" . | nindent 6 }}
{{- end }}

{{- define "rcrt.egressDns" -}}
- to:
    - namespaceSelector: {}
      podSelector:
        matchLabels: { k8s-app: kube-dns }
  ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
{{- end }}

{{- define "rcrt.egressDatabase" -}}
- ports:
    - { protocol: TCP, port: {{ .database.port }} }
  {{- with .database.peers }}
  to: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "rcrt.egressOutside" -}}
{{- with .Values.networkPolicy.internet }}
- to:
    {{- range .cidrs }}
    - ipBlock: {{ toYaml . | nindent 8 }}
    {{- end }}
  ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
{{- end }}
{{- if .Values.telemetry.otlpEndpoint }}
- ports:
    - { protocol: TCP, port: {{ .Values.telemetry.otlpPort }} }
{{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The API server. Most network plugins see the port of its pods, not that of its service. */}}
{{- define "rcrt.egressApiServer" -}}
- ports:
    {{- range .Values.scripts.apiServer.ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
  {{- with .Values.scripts.apiServer.peers }}
  to: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The labels of all pods of programs; crates/tools/pods/src/spec.rs sets them. */}}
{{- define "rcrt.scriptPods" -}}
app.kubernetes.io/managed-by: rcrt-scripts-manager
{{- end }}
