"""A small watched cluster, and its rules evaluated by promtool on made-up series."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gpuplan.compiler.backends import monitoring
from gpuplan.compiler.manifests import Manifest, to_yaml
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan
from tests.promtool import promtool

GROUPS = (
    "gpuplan-planned",
    "gpuplan-tenants",
    "gpuplan-tenant-queues",
    "gpuplan-pools",
    "gpuplan-queues",
    "gpuplan-utilization",
    "gpuplan-alerts",
)
"""Those of a cluster without prices."""
EVALUATED = (*GROUPS, "gpuplan-costs")
"""All of them, in their order."""

POOLS = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mixed}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 1, namePattern: "mixed-[0-9]+"}
  sharing: {mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: large}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 1, namePattern: "large-[0-9]+"}
  sharing: {mig: {instances: {3g.40gb: 2}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: shared}
spec:
  gpu: L4-24GB
  nodes: {count: 1, gpusPerNode: 2, namePattern: "shared-[0-9]+"}
  sharing: {timeSlicing: {replicas: 3}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: search}
spec:
  namespaces: [search, search-dev]
  quotas:
  - {pool: mixed, unit: 3g.40gb, guaranteed: 1, limit: 2}
  - {pool: shared, guaranteed: 3, limit: none}
"""


def a_cluster(more: str = "", monitoring: str = "{}") -> str:
    """A watched cluster with two pools that publish `mig-3g.40gb`, and one that publishes `gpu.shared`."""
    return (
        "apiVersion: gpuplan.dev/v1\n"
        "kind: Cluster\n"
        "metadata: {name: prod}\n"
        "spec:\n"
        '  kubernetes: "1.34"\n'
        "  gpuOperator: {install: helm, version: v26.7.0}\n"
        f"  monitoring: {monitoring}\n"
        f"{more}"
        f"---\n{POOLS}"
    )


ARGOCD = (
    '  argocd: {repoURL: "https://git.example.com/gpu.git", destination: {server: "https://kubernetes.default.svc"}}\n'
)

KUEUE = "  scheduler: {kind: kueue}\n"

FRACTIONS = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: prod}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {kind: kai}
  monitoring: {}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: fractions}
spec:
  gpu: L4-24GB
  nodes: {count: 2, gpusPerNode: 4, namePattern: "gpu-[0-9]+"}
  sharing: {fraction: {}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: L4-24GB
  nodes: {count: 1, gpusPerNode: 4, namePattern: "whole-[0-9]+"}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: search}
spec:
  namespaces: [search]
  quotas: [{pool: fractions, guaranteed: 0.5}, {pool: whole, guaranteed: 2}]
"""
"""A cluster of KAI-Scheduler with a pool of fractions and one of whole GPUs."""

CLAIMS = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: prod}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  scheduler: {kind: kueue}
  monitoring: {}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: claimed}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 4, namePattern: "gpu-[0-9]+"}
  sharing: {exclusive: {}}
  allocation: dra
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: search}
spec:
  namespaces: [search]
  quotas: [{pool: claimed, guaranteed: 2}]
"""
"""A cluster of Kueue whose devices are had by claims."""


def objects(plan: Plan, kind: str) -> dict[str, dict[str, Any]]:
    """The objects of a kind by name."""
    manifests = [artifact for artifact in monitoring.render(plan) if isinstance(artifact, Manifest)]
    return {manifest.name: dict(manifest.body) for manifest in manifests if manifest.kind == kind}


def rules(plan: Plan) -> list[dict[str, Any]]:
    """Every rule, in the order of evaluation."""
    found = objects(plan, "PrometheusRule")
    groups = [group for name in EVALUATED if name in found for group in found[name]["spec"]["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def alerts(plan: Plan) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules(plan) if "alert" in rule}


def write_rules(plan: Plan, folder: Path) -> list[Path]:
    """The rules as files that promtool reads."""
    paths = []
    for name, body in objects(plan, "PrometheusRule").items():
        path = folder / f"{name}.yaml"
        path.write_text(to_yaml(body["spec"]), encoding="utf-8")
        paths.append(path)
    return paths


NODES = {
    'kube_node_labels{node="mixed-1",label_gpuplan_dev_pool="mixed"}': "1x200",
    'kube_node_labels{node="mixed-2",label_gpuplan_dev_pool="mixed"}': "1x200",
    'kube_node_labels{node="large-1",label_gpuplan_dev_pool="large"}': "1x200",
    'kube_node_labels{node="shared-1",label_gpuplan_dev_pool="shared"}': "1x200",
}
"""Series that are as planned, with their values at each minute: 1x200 is 1, two hundred times more."""

ALLOCATABLE = {
    'kube_node_status_allocatable{node="mixed-1",resource="nvidia_com_mig_3g_40gb",unit="integer"}': "1x200",
    'kube_node_status_allocatable{node="mixed-1",resource="nvidia_com_mig_2g_20gb",unit="integer"}': "2x200",
    'kube_node_status_allocatable{node="mixed-2",resource="nvidia_com_mig_3g_40gb",unit="integer"}': "1x200",
    'kube_node_status_allocatable{node="mixed-2",resource="nvidia_com_mig_2g_20gb",unit="integer"}': "2x200",
    'kube_node_status_allocatable{node="large-1",resource="nvidia_com_mig_3g_40gb",unit="integer"}': "2x200",
    'kube_node_status_allocatable{node="shared-1",resource="nvidia_com_gpu_shared",unit="integer"}': "6x200",
}


def a_pod(namespace: str, pod: str, node: str, resource: str, count: int, phase: str = "Running") -> dict[str, str]:
    """The series of a pod with one container; an empty node is that of a pod that no node was found for."""
    labels = f'namespace="{namespace}",pod="{pod}"'
    request = f'kube_pod_container_resource_requests{{{labels},container="main",node="{node}",resource="{resource}"}}'
    found = {request: f"{count}x200", f'kube_pod_status_phase{{{labels},phase="{phase}"}}': "1x200"}
    return found if node else found | {f"kube_pod_status_unschedulable{{{labels}}}": "1x200"}


class Firing(NamedTuple):
    """An alert, with the labels of each that fires beside its name and state."""

    alert: str
    labels: Sequence[str]


def assert_samples(
    folder: Path, text: str, series: Mapping[str, str], expr: str, samples: Mapping[str, float], minutes: int = 10
) -> None:
    """The expression has these samples and no others, so many minutes after the start."""
    assert_all_samples(folder, text, series, {expr: samples}, minutes)


def assert_all_samples(
    folder: Path, text: str, series: Mapping[str, str], expected: Mapping[str, Mapping[str, float]], minutes: int = 10
) -> None:
    """Each expression has its samples and no others, so many minutes after the start."""
    files = write_rules(a_plan(text), folder)
    test = folder / "test.yaml"
    tests = [
        {
            "expr": expr,
            "eval_time": f"{minutes}m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
        }
        for expr, samples in expected.items()
    ]
    document = {
        "rule_files": [str(file) for file in files],
        "evaluation_interval": "1m",
        "group_eval_order": [name for name in EVALUATED if folder / f"{name}.yaml" in files],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": tests,
            }
        ],
    }
    test.write_text(yaml.safe_dump(document), encoding="utf-8")
    promtool("test", "rules", test)


def assert_firing(folder: Path, text: str, series: Mapping[str, str], expected: Sequence[Firing], minutes: int) -> None:
    """Each alert fires with these labels, with no others, and with all that its text names."""
    for alert, labels in expected:
        annotations = alerts(a_plan(text))[alert]["annotations"].values()
        named = {name for text in annotations for name in re.findall(r"\$labels\.(\w+)", text)}
        assert [each for each in labels if not named <= set(re.findall(r"(\w+)=", each))] == []
    asked = {_firing(alert): {f"{{{each}}}": 1.0 for each in labels} for alert, labels in expected}
    assert_all_samples(folder, text, series, asked, minutes)


def _firing(alert: str) -> str:
    return f'max without (alertname, alertstate, severity) (ALERTS{{alertname="{alert}",alertstate="firing"}})'


def assert_fires(
    folder: Path,
    alert: str,
    series: Mapping[str, str],
    labels: str,
    text: str | None = None,
    minutes: int = 70,
    lacks: tuple[str, ...] = (),
) -> None:
    """The alert fires once, with these labels beside its name and state, and with all that its text names but these."""
    text = text or a_cluster()
    annotations = alerts(a_plan(text))[alert]["annotations"].values()
    named = {name for annotation in annotations for name in re.findall(r"\$labels\.(\w+)", annotation)}
    assert named - set(re.findall(r"(\w+)=", labels)) == set(lacks)
    assert_samples(folder, text, series, _firing(alert), {f"{{{labels}}}": 1.0}, minutes)


def assert_silent(
    folder: Path, alert: str, series: Mapping[str, str], text: str | None = None, minutes: int = 70
) -> None:
    assert_samples(
        folder, text or a_cluster(), series, f'ALERTS{{alertname="{alert}",alertstate="firing"}}', {}, minutes
    )
