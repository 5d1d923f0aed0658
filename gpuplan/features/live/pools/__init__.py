"""Read the pools of a cluster, and what they name: layouts, GPU models, what is retained."""

from __future__ import annotations

from gpuplan.features.live.draft import Found
from gpuplan.features.live.dump import Dump

__all__ = ["read"]


def read(dump: Dump, cluster: str) -> Found:  # noqa: ARG001 - as all readers of the cluster
    """Drafts of `Pool`, `MigLayout`, `Gpu` and `Retained`."""
    from gpuplan.features.live.pools.reading import read_pools  # which asks readers of the cluster

    return read_pools(dump)
