"""The steps after an answer is written: work on nodes by hand, and commands that make the change a safe one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.planning.plan import Mig
from gpuplan.features.packing.model import Variant


def tasks_of(variant: Variant) -> Iterator[str]:
    """Yield what only people can do, and what they may want to check."""
    if variant.plan is None:
        return
    for place in variant.assignment.places:
        if place.is_new and place.pattern:
            yield (
                f"pool `{place.pool}` has nodes whose names match `{place.pattern}`: call {count(place.nodes, 'node')} "
                f"so, or write the `names` of those that it gets"
            )
        elif not place.names and place.nodes != place.source.nodes.count and not place.is_new:
            change = place.nodes - place.source.nodes.count
            gone = sum(one.nodes for one in variant.assignment.departures if one.pool == place.pool)
            moved = -change - gone
            ways = ((change, f"add {change}"), (gone, f"take away {gone}"), (moved, f"give {moved} to pools that grow"))
            steps = joined([text for number, text in ways if number > 0])
            yield f"pool `{place.pool}` has {count(place.nodes, 'node')}: {steps}"
    for pool in variant.pools:
        was = variant.fleet.find(pool.name)
        if was and was.spec.fallback and not pool.spec.fallback:
            yield f"pool `{pool.name}` falls back to no pool now: `{was.spec.fallback}` hands out other units"


_BY_ROLLOUT: Final = frozenset(("GPU700", "GPU708", "GPU709", "GPU729", "GPU738"))
"""The rules that hold no longer if a pool is cut node by node."""
_BY_RETAIN: Final = frozenset(("GPU701", "GPU702", "GPU703", "GPU704", "GPU736", "GPU739"))
"""The rules that hold no longer if nodes and queues keep what they name."""


def commands_of(variant: Variant) -> Iterator[str]:
    """Yield what to type after the policies are written; `rollout` and `retain` are for a step that is not safe."""
    if variant.plan is None or variant.diff is None or not variant.files:
        return
    cluster = variant.plan.cluster.name
    codes = {item.code for item in variant.diff.findings}
    if codes & _BY_RETAIN:
        yield f"gpuplan retain --cluster {cluster} --write"
    if codes & _BY_ROLLOUT:
        for pool in variant.pools:
            was = variant.fleet.find(pool.name)
            if was is None or not isinstance(pool.sharing, Mig):
                continue
            layout = was.sharing.layout.config_name if isinstance(was.sharing, Mig) else None
            if layout != pool.sharing.layout.config_name:
                yield f"gpuplan rollout {pool.name} --cluster {cluster} --to {pool.sharing.layout.name}"
    yield f"gpuplan validate --cluster {cluster} --against HEAD"
    yield f"gpuplan build --cluster {cluster}"
