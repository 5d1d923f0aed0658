"""Count what remains while nodes or single GPUs are away, and the guarantees that do not hold meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import renaming
from gpuplan.compiler.planning.dra import certain_units
from gpuplan.compiler.planning.node_patterns import has_node
from gpuplan.compiler.planning.plan import Amount, DynamicMig, Plan, Pool, Total

_HINT: Final = "write a node's name, `NODE:INDEX` for one of its GPUs, or a pool's name for any node of it"


class Away(NamedTuple):
    """GPUs of a node that are away, by NVML's indexes. If the node is away these are all of its GPUs."""

    name: str
    pool: Pool
    part: Pool
    gpus: frozenset[int]

    @property
    def is_whole(self) -> bool:
        return len(self.gpus) == self.part.nodes.gpus_per_node

    @property
    def node(self) -> Away:
        """The same node with all of its GPUs away, as during a repair."""
        return self._replace(gpus=frozenset(range(self.part.nodes.gpus_per_node)))

    @property
    def is_named(self) -> bool:
        """Whether it is a node with a name, rather than any node of its pool."""
        return self.name != self.pool.name


class Level(NamedTuple):
    """The amount of a unit that remains. ``total`` is what tenants have of the unit, or None if they have none."""

    pool: Pool
    unit: str
    capacity: int
    left: int
    total: Total | None

    @property
    def guaranteed(self) -> Amount:
        return self.total.guaranteed if self.total else 0

    @property
    def short(self) -> Amount:
        """The amount by which guarantees exceed what remains, or 0 if all hold."""
        return max(self.guaranteed - self.left, 0)


def find_away(plans: Sequence[Plan], asked: Sequence[str]) -> Iterator[tuple[Plan, tuple[Away, ...]]]:
    """Yield the plans that have nodes of these names, with the nodes.

    Raises GpuplanError for what is no node of a pool, or no GPU of it, and for more nodes than a pool counts.
    """
    found = [(plan, tuple(_merged(away for text in asked if (away := _find(plan, text))))) for plan in plans]
    for text in asked:
        name = text.partition(":")[0]
        if not any(away.name == name for _, aways in found for away in aways):
            raise GpuplanError(f"no pool has a node `{name}`", _help(plans, name))
    for plan, aways in found:
        _refuse_too_many(aways)
        if aways:
            yield plan, aways


def levels(plan: Plan, aways: Iterable[Away]) -> Iterator[Level]:
    """Yield the units of the pools whose nodes are away, in the order of the plan.

    For partitions on demand these are the certain numbers before and meanwhile.
    """
    gone = grouped((away.pool.name, away) for away in aways)
    totals = {total.key: total for total in plan.totals}
    for pool in plan.pools:
        if pool.name in gone and isinstance(pool.sharing, DynamicMig) and pool.rollout is None:
            before = certain_units(plan, pool)
            after = certain_units(plan, pool, sum(len(away.gpus) for away in gone[pool.name]))
            for name in before:
                yield Level(pool, name, before[name], after[name], totals.get((pool.name, name)))
            continue
        for unit in pool.units if pool.name in gone else ():
            lost = 0
            for away in gone[pool.name]:
                same = away.part.find_unit(unit.name)
                lost += sum(same.per_gpu[index] for index in away.gpus) if same else 0
            yield Level(pool, unit.name, unit.capacity, unit.capacity - lost, totals.get((pool.name, unit.name)))


def _find(plan: Plan, text: str) -> Away | None:
    name, colon, index = text.partition(":")
    for pool in plan.pools:
        parts = [part for part in pool.parts if part.nodes.count]
        part = next((part for part in parts if name == pool.name or has_node(part.nodes, name)), None)
        if part is not None:
            gpus = range(part.nodes.gpus_per_node)
            if colon and not (index.isascii() and index.isdigit() and len(index) < 4 and int(index) in gpus):
                raise GpuplanError(f"`{text}` is no GPU of the node", f"its GPUs are 0 to {gpus[-1]}")
            return Away(name, pool, part, frozenset([int(index)] if colon else gpus))
    return None


def _merged(aways: Iterable[Away]) -> Iterator[Away]:
    """Yield the nodes, each once. A pool's name stands for another node each time."""
    nodes: dict[str, Away] = {}
    for away in aways:
        if away.is_named:
            earlier = nodes.get(away.name, away)
            nodes[away.name] = away._replace(gpus=away.gpus | earlier.gpus)
        else:
            yield away
    yield from nodes.values()


def _refuse_too_many(aways: Sequence[Away]) -> None:
    for away in aways:
        number = sum(other.part is away.part for other in aways)
        if number > away.part.nodes.count:
            raise GpuplanError(
                f"pool `{away.pool.name}` counts {away.part.nodes.count} such nodes, and {number} would be away",
                "name no more than there are, or correct `nodes.count`",
            )


def _help(plans: Sequence[Plan], name: str) -> str:
    known = {name for plan in plans for pool in plan.pools for name in (pool.name, *pool.nodes.names)}
    close = renaming(name, sorted(known))
    return f"did you mean `{close}`?" if close else _HINT
