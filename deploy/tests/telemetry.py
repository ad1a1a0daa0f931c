#!/usr/bin/env python3
"""Checks what names metrics, pages and components: the alerts, the dashboard, their tests, and the
configurations of Prometheus' scrapes and of the OpenTelemetry collector; and what Compose gives to
servers and runners."""

import json
import re
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent
ROOT = DEPLOY.parent
# Series that a scrape adds, and metrics that appear only after an event: a full quota, a webhook.
OF_PROMETHEUS = {"up"}
AFTER_AN_EVENT = {"rcrt_quota_refusals_total", "rcrt_webhook_attempts_total", "rcrt_embeddings_waiting"}
OWN_LABELS = {"job", "instance"}


def series(text):
    """A series as its name and its labels."""
    name, _, rest = text.partition("{")
    return name.strip(), dict(re.findall(r'(\w+)="([^"]*)"', rest))


def recorded():
    """The names of all recorded metrics, with the labels of each."""
    found = {}
    for path in (HERE / "recorded").glob("*.prom"):
        for line in path.read_text().splitlines():
            name, labels = series(line.rsplit(" ", 1)[0])
            found.setdefault(name, set()).update(labels)
    return found


def metrics(expression):
    """The metrics that a PromQL expression reads."""
    return set(re.findall(r"\brcrt_[a-z_]+|\bup\b", re.sub(r'"[^"]*"', "", expression)))


def faults():
    known = recorded()
    exists = lambda name: name in known or name in OF_PROMETHEUS | AFTER_AN_EVENT
    rules = [rule for group in yaml.safe_load((DEPLOY / "helm/rcrt/files/alerts.yml").read_text())["groups"] for rule in group["rules"]]
    index = (ROOT / "docs/operate/README.md").read_text().splitlines()
    for rule in rules:
        page = Path(rule["annotations"].get("runbook", "")).name
        if not any(f"({page})" in row and f"`{rule['alert']}`" in row for row in index):
            yield f"{rule['alert']} is not in the row of its runbook in docs/operate/README.md"
        yield from (f"{rule['alert']} reads {name}, which no recorded scrape has" for name in metrics(rule["expr"]) if not exists(name))
        page = rule["annotations"].get("runbook")
        if not page or not (ROOT / page).is_file():
            yield f"{rule['alert']} names the runbook {page}, which does not exist"
    tests = yaml.safe_load((HERE / "alerts_test.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one.get("exp_alerts")}
    silent = {one["alertname"] for test in tests for one in test["alert_rule_test"] if not one.get("exp_alerts")}
    for rule in rules:
        if rule["alert"] not in fired & silent:
            yield f"{rule['alert']} is not tested both ways: that it fires, and that it does not"
    for test in tests:
        for one in test["input_series"]:
            name, labels = series(one["series"])
            if not exists(name):
                yield f"the test {test['name']!r} has {name}, which no recorded scrape has"
            elif name in known and set(labels) - OWN_LABELS - known[name]:
                yield f"the test {test['name']!r} has other labels of {name} than the recorded scrapes"
    for panel in json.loads((DEPLOY / "helm/rcrt/files/dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield from (f"the panel {panel['title']!r} reads {name}, which no recorded scrape has" for name in metrics(target["expr"]) if not exists(name))
    yield from collector(yaml.safe_load((DEPLOY / "compose/otel/collector.yaml").read_text()))
    yield from compose(yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())["services"])


def compose(services):
    """Server and runners get the settings that both have, and an empty one is as if it were absent."""
    settings = {name: services[name]["environment"] for name in ("server", "runner")}
    for name, environment in settings.items():
        for setting in ("OTEL_SERVICE_NAME", "RCRT_PUBLIC_URL", "RCRT_LOG"):
            if setting not in environment:
                yield f"the service {name} of Compose has no {setting}"
        for setting, value in environment.items():
            if str(value).endswith(":-}") and setting not in services[name]["command"][0]:
                yield f"the service {name} of Compose does not unset an empty {setting}"


def collector(configuration):
    """Each component of a pipeline is configured, and each configured one is used."""
    used = {"extensions": set(configuration["service"]["extensions"])}
    for name, pipeline in configuration["service"]["pipelines"].items():
        for kind in ("receivers", "processors", "exporters"):
            used.setdefault(kind, set()).update(pipeline[kind])
        if pipeline["processors"][:1] != ["memory_limiter"]:
            yield f"the collector's pipeline {name} does not begin with memory_limiter"
    for kind, names in used.items():
        if names != set(configuration[kind]):
            yield f"the collector's {kind} are {sorted(configuration[kind])}, and its pipelines use {sorted(names)}"


if __name__ == "__main__":
    found = list(faults())
    for fault in found:
        print(f"telemetry: {fault}")
    sys.exit(1 if found else 0)
