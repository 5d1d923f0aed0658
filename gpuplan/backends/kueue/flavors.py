"""ResourceFlavors, which are Kueue's pools, and the Topologies of those that have one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.planning.kueue import counted_units
from gpuplan.planning.plan import POOL_LABEL, Plan, Pool
from gpuplan.planning.tolerations import tolerations

API_VERSION = "kueue.x-k8s.io/v1beta2"


def flavors(plan: Plan) -> Iterator[tuple[Pool, dict[str, Any]]]:
    """A flavor for each pool that hands out something that can be counted."""
    for pool in plan.pools:
        if counted_units(pool):
            if pool.spec.topology:
                yield pool, _topology(pool)
            yield pool, _flavor(pool)


def _topology(pool: Pool) -> dict[str, Any]:
    """The levels of a Topology can never be changed."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Topology",
        "metadata": {"name": pool.name},
        "spec": {"levels": [{"nodeLabel": label} for label in pool.spec.topology]},
    }


def _flavor(pool: Pool) -> dict[str, Any]:
    """Kueue adds the labels to the node selector of pods that it admits, and the tolerations to theirs.

    Taints are not named as the flavor's own: Kueue would admit only pods that bring tolerations themselves.
    """
    spec: dict[str, Any] = {"nodeLabels": {POOL_LABEL: pool.name}}
    if pool.spec.taints:
        spec["tolerations"] = tolerations(pool)
    if pool.spec.topology:
        spec["topologyName"] = pool.name
    return {"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": pool.name}, "spec": spec}
