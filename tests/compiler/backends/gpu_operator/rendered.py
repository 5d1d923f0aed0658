"""What the back end wrote for a plan, by kind."""

from __future__ import annotations

from typing import Any

import yaml

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan

POOL = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: {gpu}
  nodes: {{count: 2, gpusPerNode: {gpus}, namePattern: '{name}-[0-9]+'}}
  sharing: {sharing}
  taints: {taints}
"""
CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  platform: {platform}
  nodeLabels: {node_labels}
  gpuOperator: {{install: {install}, version: {version}, {more}}}
"""


def a_pool(
    name: str = "a", sharing: str = "{exclusive: {}}", gpus: int = 8, taints: str = "[]", gpu: str = "A100-80GB"
) -> str:
    return POOL.format(name=name, sharing=sharing, gpus=gpus, taints=taints, gpu=gpu)


def a_cluster(
    *pools: str,
    install: str = "helm",
    version: str = "v26.7.0",
    platform: str = "kubernetes",
    node_labels: str = "nfd",
    more: str = "",
    monitoring: str = "",
) -> Plan:
    cluster = CLUSTER.format(install=install, version=version, platform=platform, node_labels=node_labels, more=more)
    if monitoring:
        cluster += f"  monitoring: {monitoring}\n"
    return a_plan("---".join((cluster, *pools)))


def objects(plan: Plan, kind: str) -> list[dict[str, Any]]:
    """The objects of a kind, parts of objects included."""
    manifests = [artifact for artifact in gpu_operator.render(plan) if isinstance(artifact, Manifest)]
    return [dict(manifest.body) for manifest in manifests if manifest.kind == kind]


def config_map(plan: Plan, prefix: str) -> dict[str, Any]:
    (found,) = [body for body in objects(plan, "ConfigMap") if body["metadata"]["name"].startswith(prefix)]
    return found


def mig_parted_text(plan: Plan) -> str:
    return str(config_map(plan, "gpuplan-mig-parted-")["data"]["config.yaml"])


def device_plugin_texts(plan: Plan) -> dict[str, str]:
    return dict(config_map(plan, "gpuplan-device-plugin-")["data"])


def cluster_policy(plan: Plan) -> dict[str, Any]:
    (found,) = objects(plan, "ClusterPolicy")
    return found


def helm_values(plan: Plan) -> dict[str, Any]:
    (file,) = [artifact for artifact in gpu_operator.render(plan) if isinstance(artifact, File)]
    values: dict[str, Any] = yaml.safe_load(file.data)
    return values
