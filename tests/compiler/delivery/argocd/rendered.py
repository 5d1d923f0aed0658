"""What is written for Argo CD, from a policy and a list of folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.compiler.delivery import Folder, argocd
from gpuplan.compiler.manifests import File, Identity, Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_plan

REPO = "https://git.example.com/platform/gpu.git"
POOL = """
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: 1, gpusPerNode: 8, namePattern: "{name}-[0-9]+"}}
  sharing: {{exclusive: {{}}}}
  disruption: {{{disruption}}}
"""


def a_pool(name: str = "a", disruption: str = "") -> str:
    return POOL.format(name=name, disruption=disruption)


def a_cluster(
    *pools: str,
    more: str = "",
    operator: str = "install: helm, version: v26.7.0",
    kubernetes: str = "1.34",
    spec: str = "",
) -> Plan:
    """The plan of a cluster that Argo CD syncs; ``more`` are fields of `argocd`, ``spec`` others of the cluster."""
    text = f"""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "{kubernetes}"
  gpuOperator: {{{operator}}}
  argocd: {{repoURL: "{REPO}", {more}}}
  {spec}
"""
    return a_plan(text + "".join(pools))


def folder(path: str, *identities: Identity) -> Folder:
    return Folder(path, identities or (config_map("a", "gpu-operator"),))


def config_map(name: str, namespace: str) -> Identity:
    return Identity("", "ConfigMap", namespace, name)


def namespace(name: str) -> Identity:
    return Identity("", "Namespace", "", name)


def manifests(plan: Plan, *folders: Folder) -> list[Manifest]:
    return [found for found in argocd.render(plan, folders) if isinstance(found, Manifest)]


def files(plan: Plan) -> Mapping[str, str]:
    return {found.path: found.data.decode() for found in argocd.render(plan, ()) if isinstance(found, File)}


def get(found: Sequence[Manifest], kind: str, name: str) -> dict[str, Any]:
    """The body of the only object of this kind and name."""
    (body,) = [dict(manifest.body) for manifest in found if (manifest.kind, manifest.name) == (kind, name)]
    return body


def an_application(plan: Plan, path: str, name: str) -> dict[str, Any]:
    return get(manifests(plan, folder(path)), "Application", name)


def the_project(plan: Plan, *folders: Folder) -> dict[str, Any]:
    return get(manifests(plan, *folders), "AppProject", "gpuplan-test")
