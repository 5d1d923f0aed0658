"""What is to be done when an answer is written: by hand with nodes, and which commands make the step a safe one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.wording import count
from gpuplan.compiler.planning.plan import Mig, Pool
from gpuplan.features.packing.assigning import Place
from gpuplan.features.packing.model import Variant


def tasks_of(variant: Variant) -> Iterator[str]:
    """What only people can do, and what they may want to check."""
    if variant.plan is None:
        return
    for place in variant.assignment.places:
        if place.is_new and place.pattern:
            yield (
                f"pool `{place.pool}` has nodes whose names match `{place.pattern}`: call {count(place.nodes, 'node')} "
                f"so, or write the `names` of those that it gets"
            )
        elif not place.names and place.nodes != place.source.nodes.count and not place.is_new:
            yield _count_text(place)
    for pool in variant.pools:
        was = variant.fleet.find(pool.name)
        if was and was.spec.fallback and not pool.spec.fallback:
            yield f"pool `{pool.name}` falls back to no pool now: `{was.spec.fallback}` hands out other units"


def _count_text(place: Place) -> str:
    change = place.nodes - place.source.nodes.count
    way = "add" if change > 0 else "take away"
    return f"pool `{place.pool}` has {count(place.nodes, 'node')}: {way} {abs(change)}"


_BY_ROLLOUT: Final = frozenset(("GPU700", "GPU708", "GPU709", "GPU729", "GPU738"))
"""What ends where a pool is cut node by node."""
_BY_RETAIN: Final = frozenset(("GPU701", "GPU702", "GPU703", "GPU704", "GPU736", "GPU739"))
"""What ends where nodes, and queues, keep what they name."""


def commands_of(variant: Variant) -> Iterator[str]:
    """What to type after the policies are written, where one commit is not safe."""
    if variant.plan is None or variant.diff is None or not variant.files:
        return
    cluster = variant.plan.cluster.name
    codes = {item.code for item in variant.diff.findings}
    if codes & _BY_RETAIN:
        yield f"gpuplan retain --cluster {cluster} --write"
    if codes & _BY_ROLLOUT:
        for pool in variant.pools:
            was = variant.fleet.find(pool.name)
            if was is not None and _is_cut_again(was, pool) and isinstance(pool.sharing, Mig):
                yield f"gpuplan rollout {pool.name} --cluster {cluster} --to {pool.sharing.layout.name}"
    yield f"gpuplan validate --cluster {cluster} --against HEAD"
    yield f"gpuplan build --cluster {cluster}"


def _is_cut_again(was: Pool, pool: Pool) -> bool:
    if not isinstance(was.sharing, Mig) or not isinstance(pool.sharing, Mig):
        return was.sharing != pool.sharing
    return was.sharing.layout.config_name != pool.sharing.layout.config_name
