"""What of a cluster may be cut: its pools as node types, and why others are left alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.operators import DriverEffect, driver_defects
from gpuplan.compiler.checks.mig import unmet_requirements
from gpuplan.compiler.planning.gpu_operator import stated_driver
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Key, as_key
from gpuplan.compiler.planning.plan import Exclusive, Fraction, Mig, Mps, Plan, Pool, TimeSlicing
from gpuplan.compiler.planning.prices import node_price
from gpuplan.compiler.policy.models import Allocation, MigStrategy, Platform
from gpuplan.features.packing.sizing.answers import Cut, NodeType, Today, Way


class LeftAlone(NamedTuple):
    """A pool that is no part of the question, and why."""

    pool: str
    why: str


class Kept(NamedTuple):
    """A pool that stays cut as it is, and why."""

    pool: str
    why: str


class Fleet(Value):
    """The nodes that may be used: ``pools`` are those in scope, the ``kept`` ones among them."""

    pools: tuple[Pool, ...]
    node_types: tuple[NodeType, ...]
    kept: tuple[Kept, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(pool.name for pool in self.pools)

    def find(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)


class Wish(NamedTuple):
    """What is asked for of the fleet: ``pools`` alone, ``keep`` these pools and layouts, so many nodes of a model.

    ``shares`` are ways of sharing without isolation that may be used where no pool has them.
    """

    pools: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    most_nodes: Mapping[str, int] = {}
    shares: tuple[Way, ...] = ()
    with_media: bool = False


def fleet_of(plan: Plan, wish: Wish) -> Fleet:
    """The fleet of a cluster as it is; trouble where a wish names what is not there."""
    _know(plan, wish)
    scope: list[Pool] = []
    kept: list[Kept] = []
    left: list[LeftAlone] = []
    for pool in plan.pools:
        if why := _why_not(pool, wish):
            left.append(LeftAlone(pool.name, why))
            continue
        scope.append(pool)
        if found := _why_kept(pool, wish):
            kept.append(Kept(pool.name, found))
    stays = {item.pool for item in kept}
    return Fleet(tuple(scope), tuple(_node_types(plan, scope, stays, wish)), tuple(kept), tuple(left))


def _know(plan: Plan, wish: Wish) -> None:
    pools, layouts = {pool.name for pool in plan.pools}, {layout.name for layout in plan.layouts}
    models = {pool.gpu.id for pool in plan.pools}
    for name in wish.pools:
        if name not in pools:
            raise _unknown("pool", name, pools)
    for name in wish.keep:
        if name not in pools | layouts:
            raise _unknown("pool or layout", name, pools | layouts)
    for name in wish.most_nodes:
        if name not in models:
            raise _unknown("GPU model in this cluster's pools", name, models)


def _unknown(what: str, name: str, known: Iterable[str]) -> GpuplanError:
    close = misspelling(name, sorted(known))
    return GpuplanError(f"there is no {what} `{name}`", f"did you mean `{close}`?" if close else _there(known))


def _there(known: Iterable[str]) -> str:
    names = sorted(known)
    return f"there {'is' if len(names) == 1 else 'are'} {listing(names)}" if names else "the cluster has none"


def _why_not(pool: Pool, wish: Wish) -> str:
    """Why a pool is left as it is, with its quotas; empty where it is in scope."""
    if wish.pools and pool.name not in wish.pools:
        return "not asked for"
    if pool.rollout is not None:
        return "a rollout is under way"
    if not pool.nodes.count:
        return "it has no nodes"
    match pool.sharing:
        case Exclusive() | TimeSlicing() | Mps():
            return ""
        case Fraction():
            return "its scheduler divides GPUs as pods ask"
        case Mig() if pool.sharing.time_slicing is not None:
            return "its MIG devices are divided further"
        case Mig() if not pool.gpu.is_complete:
            return "the catalog cannot judge its profiles"
        case Mig():
            return "" if cut_of(pool) else "its layout is not known for all GPUs"
        case _:
            return "pods make its partitions as they claim them"


def _why_kept(pool: Pool, wish: Wish) -> str:
    if pool.name in wish.keep:
        return "asked for"
    if isinstance(pool.sharing, Mig) and pool.sharing.layout.name in wish.keep:
        return f"layout `{pool.sharing.layout.name}` is kept"
    return "its nodes are chosen by their boards alone" if pool.nodes.are_by_board else ""


# --- Cuts --------------------------------------------------------------------------------------------------------


def cut_of(pool: Pool) -> Cut | None:
    """How the GPUs of the pool's nodes are cut today; None where that is no cut that an answer could have."""
    gpus = pool.nodes.gpus_per_node
    whole: tuple[InstanceCounts, ...] = ({},) * gpus
    match pool.sharing:
        case Exclusive():
            return Cut(Way.WHOLE, whole)
        case TimeSlicing():
            return Cut(Way.TIME_SLICING, whole, pool.sharing.spec.replicas)
        case Mps():
            return Cut(Way.MPS, whole, pool.sharing.spec.replicas)
        case Mig():
            entries = [entry_of(pool.sharing.layout, index) for index in range(gpus)]
            found = tuple(_instances(pool.gpu, entry.instances) if entry else {} for entry in entries)
            known = {profile.name for profile in pool.gpu.profiles}
            return Cut(Way.MIG, found) if all(known >= counts.keys() for counts in found) else None
        case _:
            return None


def _instances(gpu: Gpu, counts: InstanceCounts) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in counts.items():
        if count > 0:
            found[gpu.current_name(name)] = found.get(gpu.current_name(name), 0) + count
    return found


CutKey = tuple[Way, tuple[Key, ...], int]


def key_of(cut: Cut) -> CutKey:
    """What tells two cuts apart, wherever in the node a GPU is."""
    return cut.way, tuple(sorted(as_key(counts) for counts in cut.per_gpu)), cut.replicas


# --- Node types --------------------------------------------------------------------------------------------------


def _node_types(plan: Plan, pools: Sequence[Pool], kept: set[str], wish: Wish) -> Iterator[NodeType]:
    """Pools whose nodes could stand for one another are of one type."""
    groups: dict[object, list[Pool]] = {}
    for pool in pools:
        groups.setdefault(_alike(plan, pool), []).append(pool)
    by_model: dict[str, int] = {}
    for members in groups.values():
        by_model[members[0].gpu.id] = by_model.get(members[0].gpu.id, 0) + 1
    for name, most in wish.most_nodes.items() if groups else ():
        if name not in by_model:
            raise GpuplanError(f"no pool in question has nodes of `{name}`", f"they have {listing(sorted(by_model))}")
        if by_model[name] > 1:
            raise GpuplanError(
                f"`--nodes-at-most {name}={most}` is about {by_model[name]} kinds of nodes",
                "choose those of one kind with `--pool`",
            )
    for members in groups.values():
        first = members[0]
        there = sum(pool.nodes.count for pool in members)
        todays = tuple(
            Today(pool.name, pool.nodes.count, cut, pool.name in kept) for pool in members if (cut := cut_of(pool))
        )
        _leave_kept(todays, wish.most_nodes.get(first.gpu.id), first.gpu.id)
        profiles = _profiles(plan, first, wish)
        yield NodeType(
            name=first.gpu.id if by_model[first.gpu.id] == 1 else f"{first.gpu.id} like {first.name}",
            gpu=first.gpu,
            gpus_per_node=first.nodes.gpus_per_node,
            nodes=wish.most_nodes.get(first.gpu.id, there),
            price=price.per_node_hour if (price := node_price(plan, first)) else None,
            profiles=profiles,
            ways=tuple(_ways(plan, members, profiles, wish)),
            pools=todays,
            is_equal_within_node=_is_single(first)
            or not plan.scheduler.uses_whole_gpus_beside_mig
            or _has(plan, first, DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS),
        )


def _leave_kept(todays: Iterable[Today], most: int | None, model: str) -> None:
    """Trouble where there may be fewer nodes than the pools have that are kept."""
    kept = [today for today in todays if today.is_kept]
    nodes = sum(today.nodes for today in kept)
    if most is not None and most < nodes:
        raise GpuplanError(
            f"`--nodes-at-most {model}={most}` is fewer than the nodes of {listing([today.pool for today in kept])}, "
            f"which stay as they are",
            f"allow {nodes}: `--nodes-at-most {model}={nodes}`; or let these pools be cut again",
        )


def _alike(plan: Plan, pool: Pool) -> object:
    nodes, spec = pool.nodes, pool.spec
    driver = spec.driver.model_dump_json() if spec.driver else ""
    is_by_label = bool(nodes.selector) and not nodes.names and nodes.name_pattern is None
    price = node_price(plan, pool)
    own = pool.name if is_by_label or nodes.are_by_board else ""
    return (
        *(pool.gpu.id, nodes.gpus_per_node, nodes.millicores, nodes.memory_bytes, spec.allocation, driver),
        *(_is_single(pool), stated_driver(plan, pool)[0], own, price and price.per_node_hour),
    )


def _is_single(pool: Pool) -> bool:
    return isinstance(pool.sharing, Mig) and pool.sharing.spec.strategy is MigStrategy.SINGLE


def _has(plan: Plan, pool: Pool, effect: DriverEffect) -> bool:
    driver, _ = stated_driver(plan, pool)
    return driver is not None and any(item.effect is effect and item.has(driver) for item in driver_defects())


def _profiles(plan: Plan, pool: Pool, wish: Wish) -> tuple[str, ...]:
    """The profiles that the scheduler counts and the pool's driver can make; of a pair that it cannot, neither."""
    gpu = pool.gpu
    if not gpu.supports_mig or not gpu.is_complete or _has(plan, pool, DriverEffect.NO_MIG):
        return ()
    driver, _ = stated_driver(plan, pool)
    names = frozenset(profile.name for profile in gpu.profiles)
    too_new = {what for what, _ in unmet_requirements(driver, gpu, (names,))} if driver else set()
    if "MIG" in too_new:
        return ()
    out = {name for what in too_new for name in what.split(" + ")}
    is_counted = not plan.scheduler.reads_sizes_from_names
    chosen = gpu.profiles if wish.with_media and is_counted else gpu.plain_profiles
    return tuple(profile.name for profile in chosen if profile.name not in out)


def _ways(plan: Plan, pools: Sequence[Pool], profiles: Sequence[str], wish: Wish) -> Iterator[Way]:
    yield Way.WHOLE
    if profiles:
        yield Way.MIG
    today = {cut.way for pool in pools if (cut := cut_of(pool))}
    for way in _SHARES:
        if way in today or (way in wish.shares and may_share(plan, pools)):
            yield way


_SHARES: Final = (Way.TIME_SLICING, Way.MPS)


def may_share(plan: Plan, pools: Iterable[Pool]) -> bool:
    """Whether GPUs that no pool shares so today may be time-sliced, or shared by MPS."""
    is_claimed = any(pool.spec.allocation is Allocation.DRA for pool in pools)
    return (
        not plan.scheduler.supports("fraction")
        and not is_claimed
        and plan.cluster.spec.platform is not Platform.OPENSHIFT
    )
