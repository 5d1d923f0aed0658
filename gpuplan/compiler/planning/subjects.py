"""The documents of the policy that parts of a plan were made of, which objects are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.manifests import Subject
from gpuplan.compiler.planning.plan import (
    Cluster,
    Layout,
    OwnGpu,
    Pool,
    Prices,
    PriorityClass,
    Retained,
    Tenant,
    Workload,
)
from gpuplan.compiler.planning.tree import Tree

Part = Cluster | Layout | OwnGpu | Pool | Prices | PriorityClass | Retained | Tenant | Workload

_KINDS: Final[Mapping[type[Part], str]] = {
    Cluster: "Cluster",
    Layout: "MigLayout",
    OwnGpu: "Gpu",
    Pool: "Pool",
    Prices: "Prices",
    PriorityClass: "PriorityClass",
    Retained: "Retained",
    Tenant: "Tenant",
    Workload: "Workload",
}


def subject_of(part: Part) -> Subject:
    return Subject(_KINDS[type(part)], part.name)


def about(*parts: Part) -> tuple[Subject, ...]:
    """Return the documents of these parts, each once, and those of the platform's own GPU models that they name.

    The parts of a pool that a rollout divides are one pool.
    """
    return tuple(dict.fromkeys(subject for part in parts for subject in (subject_of(part), *_models(part))))


def _models(part: Part) -> Iterator[Subject]:
    gpu = part.gpu if isinstance(part, Pool | Layout) else None
    if gpu is not None and gpu.written_at is not None:
        yield Subject(_KINDS[OwnGpu], gpu.id)


def every(*kinds: type[Part]) -> tuple[Subject, ...]:
    """Return subjects that mean all documents of these kinds, since thousands of objects may follow from hundreds."""
    return tuple(Subject(_KINDS[kind], "") for kind in kinds)


RESOURCES: Final = every(Pool, Layout, OwnGpu, Retained)
"""The kinds of documents that decide which resources and devices a cluster may hand out."""


def families(tree: Tree) -> Mapping[str, tuple[Tenant, ...]]:
    """Return all tenants of the same tree by each one's name. What one has follows from what the others have."""
    found = grouped((tree.path(tenant)[-1].name, tenant) for tenant in tree.tenants)
    return {tenant.name: family for family in found.values() for tenant in family}
