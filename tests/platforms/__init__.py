"""Policies of a few words, and plans of them: ``a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 4"))``."""

from __future__ import annotations

from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan


def a_platform(*documents: str, scheduler: str = "kubernetes", kubernetes: str = "1.34") -> Plan:
    """The plan of these policies on a cluster with a scheduler."""
    cluster = a_cluster(f"kind: {scheduler}").replace("1.34", kubernetes)
    return a_plan(cluster + "".join(documents))


def document(kind: str, name: str, *fields: str) -> str:
    """A policy, its fields written `key: value`; empty ones are left out. Others are put right behind it."""
    spec = ", ".join(filter(None, fields))
    return f"---\napiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


def pool(
    name: str,
    sharing: str = "exclusive: {}",
    *more: str,
    gpu: str = "A100-80GB",
    nodes: str = "count: 2, gpusPerNode: 8",
) -> str:
    return document("Pool", name, f"gpu: {gpu}", f"nodes: {{{nodes}}}", f"sharing: {{{sharing}}}", *more)


def tenant(name: str, *quotas: str, namespaces: str | None = None, more: str = "") -> str:
    """A tenant with a namespace of its name, unless others are named; a quota is such as `pool: a, guaranteed: 8`."""
    listed = name if namespaces is None else namespaces
    granted = f"quotas: [{', '.join(f'{{{quota}}}' for quota in quotas)}]" if quotas else ""
    return document("Tenant", name, f"namespaces: [{listed}]" if listed else "", granted, more)


def priority_class(name: str, value: int, more: str = "") -> str:
    return document("PriorityClass", name, f"value: {value}", more)
