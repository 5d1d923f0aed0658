"""MIG layouts as checks see them: each once, with the pools that use it, and how to speak of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.catalog import Gpu
from gpuplan.diagnostics import Label, Origin
from gpuplan.planning.placement import nearest_layouts
from gpuplan.planning.plan import Layout, LayoutEntry, Mig, Plan, Pool
from gpuplan.values import Value


class LayoutUse(Value):
    """A layout and the pools that use it; none where it is only defined, or retained."""

    layout: Layout
    pools: tuple[Pool, ...]
    is_retained: bool = False

    @property
    def name(self) -> str:
        """How a message calls it."""
        if self.is_retained:
            return f"retained layout `{self.layout.name}`"
        return f"layout of pool `{self.layout.name}`" if self.layout.is_inline else f"layout `{self.layout.name}`"

    @property
    def use_labels(self) -> tuple[Label, ...]:
        """Where pools name it; a pool that writes its own layout needs no such label."""
        if self.layout.is_inline:
            return ()
        return tuple(
            Label(pool.sharing.layout_at, f"pool `{pool.name}` uses it")
            for pool in self.pools
            if isinstance(pool.sharing, Mig)
        )


def layout_uses(plan: Plan) -> Iterator[LayoutUse]:
    """Every layout once: the named ones, used or not, then those written in pools, and what is retained."""
    pools: dict[int, list[Pool]] = {}
    inline: list[Layout] = []
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            pools.setdefault(id(pool.sharing.layout), []).append(pool)
            if pool.sharing.layout.is_inline:
                inline.append(pool.sharing.layout)
    for layout in (*plan.layouts, *inline):
        yield LayoutUse(layout, tuple(pools.get(id(layout), ())))
    for retained in plan.retained_layouts:
        yield LayoutUse(retained.layout, (), is_retained=True)


def mig_pools(plan: Plan) -> Iterator[tuple[Pool, Mig]]:
    """The pools whose GPUs are divided, with how."""
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            yield pool, pool.sharing


def partitioned(plan: Plan) -> Iterator[tuple[LayoutUse, LayoutEntry]]:
    """The entries that switch MIG on, of layouts for models that the catalog can judge."""
    for use in layout_uses(plan):
        if use.layout.gpu.profiles:
            for entry in use.layout.entries:
                if entry.mig_enabled:
                    yield use, entry


def instances_at(entry: LayoutEntry) -> Origin:
    """The mapping of profiles to counts: a layout without `devices` is that mapping itself."""
    return entry.at if entry.at.path[-1] == "instances" else entry.at / "instances"


def positive(entry: LayoutEntry) -> dict[str, int]:
    """The instances that are really asked for."""
    return {name: count for name, count in entry.instances.items() if count > 0}


def written(gpu: Gpu, entry: LayoutEntry, profiles: Iterable[str]) -> list[str]:
    """The names under which the layout has these profiles: some drivers report other ones."""
    return [name for name in positive(entry) if gpu.current_name(name) in profiles]


def nearest_that_fit(gpu: Gpu, entry: LayoutEntry) -> str:
    """What to type instead of instances that do not fit together."""
    return f"nearest that fit: {' or '.join(spell(layout) for layout in nearest_layouts(gpu, positive(entry)))}"


def spell(instances: Mapping[str, int]) -> str:
    """Instances as one types them: `` `{3g.40gb: 1, 2g.20gb: 2}` ``."""
    return f"`{{{', '.join(f'{name}: {count}' for name, count in instances.items())}}}`"
