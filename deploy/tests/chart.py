#!/usr/bin/env python3
"""Lints and renders the chart with each file of values in `ci`, and validates every object:

    python3 deploy/tests/chart.py [--operators FOLDER]

- strictly, against the schemas of Kubernetes 1.33 to 1.37 (package kubernetes-validate);
- objects of KEDA and the Prometheus operator with operators.mjs, if their packages are in FOLDER;
- against what this chart promises: which pods fit the Pod Security Standard `restricted`, that no
  pod has a token but that of the scripts manager, and what that token can do; that each network
  policy selects pods of the chart, that each secret is named and none created, and that wrong
  values are refused;
- the pods of programs that the scripts manager creates, by the golden file of its tests.

Helm is the package helm-python-sdk, which is Helm as a library: nothing here needs a cluster.
"""

import json
import subprocess
import sys
from pathlib import Path

import helm_python.chart as helm
import kubernetes_validate
import yaml

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "helm/rcrt"
VERSIONS = ["1.33", "1.34", "1.35", "1.36", "1.37"]
# Kinds of operators, which kubernetes-validate does not know.
OPERATORS = ("keda.sh/", "monitoring.coreos.com/")

faults = []


def fault(where, why):
    faults.append(f"{where}: {why}")


def check(where, holds, why):
    if not holds:
        fault(where, why)


def documents(rendered):
    for path, text in sorted(rendered.items()):
        if path.endswith(".txt"):
            continue
        for document in yaml.safe_load_all(text):
            if document:
                yield document


def pods(document):
    template = document.get("spec", {}).get("template")
    return [template["spec"]] if document["kind"] in ("Deployment", "Job") and template else []


def validate(where, document):
    if document["apiVersion"].startswith(OPERATORS):
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.SchemaNotFoundError as error:
            fault(where, error.message)
        except kubernetes_validate.ValidationError as error:
            fault(where, f"Kubernetes {version}: {'.'.join(str(part) for part in error.path)}: {error.message}")


def is_restricted(where, pod):
    """The Pod Security Standard `restricted`, and what this chart adds: a read-only root."""
    own = pod["securityContext"]
    check(where, own.get("runAsNonRoot") is True, "the pod can run as root")
    check(where, own.get("seccompProfile", {}).get("type") == "RuntimeDefault", "no seccomp profile RuntimeDefault")
    check(where, not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}, "a namespace of the node")
    for volume in pod["volumes"]:
        check(where, volume.keys() & {"emptyDir", "secret", "configMap", "persistentVolumeClaim"}, f"volume {volume}")
    for container in pod.get("initContainers", []) + pod["containers"]:
        confined(where, container)
        check(where, "procMount" not in container["securityContext"], "/proc is not the default")


def confined(where, container):
    context = container["securityContext"]
    check(where, context.get("allowPrivilegeEscalation") is False, "privileges can grow")
    check(where, context.get("readOnlyRootFilesystem") is True, "the root can be written")
    check(where, context.get("capabilities") == {"drop": ["ALL"]}, "capabilities are not dropped")
    check(where, "memory" in container["resources"]["limits"], "the memory has no limit")


def is_nested(where, pod):
    check(where, pod["hostUsers"] is False, "the pod shares the node's users")
    check(where, pod["securityContext"]["seccompProfile"]["type"] == "Localhost", "not the nested profile")
    for container in pod["initContainers"] + pod["containers"]:
        confined(where, container)
    check(where, pod["containers"][0]["securityContext"]["procMount"] == "Unmasked", "/proc is masked")


def may(role):
    """What a role allows, as pairs of resource and verb."""
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def promises(mode, values, all_documents):
    labels = []
    # Pods of programs are not among the objects of the chart.
    labels += [{"app.kubernetes.io/managed-by": "rcrt-scripts-manager", "rcrt/packages": "true"}]
    has_scripts = values.get("scripts", {}).get("enabled", False)
    roles = [document for document in all_documents if document["kind"] == "Role"]
    check(mode, len(roles) == has_scripts, f"{len(roles)} roles")
    for document in all_documents:
        where = f"{mode}: {document['kind']} {document['metadata']['name']}"
        check(where, len(document["metadata"]["name"]) <= 63, "the name is too long")
        check(where, document["kind"] not in ("Secret", "ClusterRole", "ClusterRoleBinding"), "this kind is not promised")
        if document["kind"] == "Role":
            allowed = {("pods", verb) for verb in ("create", "get", "list", "watch", "delete")}
            check(where, may(document) == allowed | {("pods/log", "get"), ("secrets", "create")}, "it allows something else")
        for pod in pods(document):
            labels.append(document["spec"]["template"]["metadata"]["labels"])
            is_manager = document["metadata"]["name"].endswith("-scripts")
            check(where, pod.get("automountServiceAccountToken") is is_manager, "the wrong pod gets a token")
            is_runner = document["metadata"]["name"].endswith("-runner")
            nested = values.get("tools", {}).get("mode") == "nested" and is_runner
            (is_nested if nested else is_restricted)(where, pod)
            if document["metadata"]["name"].endswith("-server"):
                claim = values.get("server", {}).get("archive", {}).get("existingClaim")
                claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
                settings = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
                mounted = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
                check(where, claims == ([claim] if claim else []), f"has the claims {claims}")
                check(where, ("RCRT_ARCHIVE" in settings) is bool(claim) and settings.get("RCRT_ARCHIVE", "/data") in mounted, "archives elsewhere")
            if document["kind"] == "Deployment":
                probes = pod["containers"][0]
                check(where, probes["readinessProbe"]["httpGet"]["path"] == "/health", "ready means only alive")
                check(where, probes["livenessProbe"]["httpGet"]["path"] == "/health/live", "a database that is down restarts the pod")
    for document in all_documents:
        where = f"{mode}: {document['kind']} {document['metadata']['name']}"
        selector = document.get("spec", {}).get("podSelector") or document.get("spec", {}).get("selector")
        if document["kind"] in ("NetworkPolicy", "PodDisruptionBudget", "Service"):
            wanted = (selector.get("matchLabels") or selector).items()
            check(where, any(wanted <= own.items() for own in labels), f"selects no pod: {dict(wanted)}")
    policies = {document["metadata"]["name"]: document["spec"] for document in all_documents if document["kind"] == "NetworkPolicy"}
    if policies:
        deny = next(spec for name, spec in policies.items() if name.endswith("-default-deny"))
        check(mode, not deny.get("ingress") and not deny.get("egress"), "the default policy allows something")
        runner = json.dumps(next(spec for name, spec in policies.items() if name.endswith("-runner")))
        port = values.get("networkPolicy", {}).get("database", {}).get("port", 5432)
        check(mode, f'"port": {port}' not in runner, "runners reach the database")


WRONG = [
    ({"replicas": 3}, "an unknown value"),
    ({"tools": {"mode": "privileged"}}, "an unknown mode"),
    ({"tools": {"mode": "restricted", "enable": ["bash"]}}, "bash without the mode that it needs"),
    ({"image": {"digest": "sha256:abc"}}, "a digest that is none"),
    ({"server": {"replicas": 0}}, "no server"),
    ({"server": {"env": [{"name": "RCRT_X"}]}}, "a variable without a value"),
    ({"autoscaling": {"mode": "on"}}, "an unknown mode of scaling"),
    ({"scripts": {"enabled": True}}, "pods of programs without a digest"),
    ({"scripts": {"packageIndex": {"url": "https://a:b@pypi.example.com/"}}}, "an index with a password"),
    ({"scripts": {"packageIndex": {"url": "https://pypi.example.com/"}}}, "an index that no policy opens"),
    ({"database": {"secret": {"name": "UPPER", "key": "url"}}}, "an invalid name of a secret"),
]


def programs():
    """The pods that the scripts manager creates."""
    path = HERE.parent.parent / "crates/tools/pods/tests/golden/pods.json"
    for number, pod in enumerate(json.loads(path.read_text())):
        where = f"{path.name}: pod {number}"
        validate(where, pod)
        is_restricted(where, pod["spec"])
        check(where, pod["spec"]["automountServiceAccountToken"] is False, "the pod gets a token")
        check(where, pod["spec"]["hostUsers"] is False, "the pod shares the node's users")


def operators(folder, objects):
    command = ["node", str(HERE / "operators.mjs"), folder]
    ran = subprocess.run(command, input=json.dumps(objects), capture_output=True, text=True)
    if ran.returncode:
        fault("operators", (ran.stdout + ran.stderr).strip())


def main(arguments):
    folder = arguments[1] if arguments[:1] == ["--operators"] else None
    count, of_operators = 0, []
    with helm.Chart.load(CHART) as chart:
        for path in sorted(CHART.glob("ci/*-values.yaml")):
            mode, values = path.name.removesuffix("-values.yaml"), yaml.safe_load(path.read_text())
            report = helm.lint(CHART, values, strict=True, kube_version="v1.33.0")
            for message in report["messages"]:
                # Information, such as that the chart has no icon, is no fault.
                if message["severity"] > 1:
                    fault(f"{mode}: lint", message["error"])
            for upgrade in (False, True):
                rendered = chart.render(values, name="rcrt", namespace="tools", is_install=not upgrade, is_upgrade=upgrade)
                found = list(documents(rendered))
                names = [(document["kind"], document["metadata"]["name"]) for document in found]
                check(mode, len(set(names)) == len(names), f"an object is rendered twice: {names}")
                for document in found:
                    validate(f"{mode}: {document['kind']} {document['metadata']['name']}", document)
                promises(mode, values, found)
            of_operators += [document for document in found if document["apiVersion"].startswith(OPERATORS)]
            count += len(found)
        for values, what in WRONG:
            try:
                chart.validate_schema(values)
                fault("values.schema.json", f"accepts {what}")
            except Exception:  # noqa: BLE001: each is a refusal
                pass
        chart.validate_schema({})
    programs()
    if folder:
        operators(folder, of_operators)
    for line in faults:
        print(f"chart: {line}")
    skipped = "" if folder else f", except {len(of_operators)} of operators, whose schemas are not installed"
    print(f"chart: {count} objects, strictly valid for Kubernetes {VERSIONS[0]} to {VERSIONS[-1]}{skipped}" if not faults else f"chart: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
