"""The pools of a cluster that may be cut, as node types, and why others are left alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog.operators import DriverEffect, driver_defects
from gpuplan.compiler.checks.mig import unmet_requirements
from gpuplan.compiler.planning.gpu_operator import stated_driver
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.placement.placing import InstanceCounts
from gpuplan.compiler.planning.plan import Exclusive, Fraction, Mig, Mps, Plan, Pool, TimeSlicing
from gpuplan.compiler.planning.prices import node_price
from gpuplan.compiler.policy.models import Allocation, ClusterMigStrategy, Platform
from gpuplan.features.packing.sizing.answers import Cut, NodeType, Today, Way
from gpuplan.features.packing.sizing.demand.teams import platform_of


class Spared(NamedTuple):
    """A pool that stays as it is, with the reason: it is no part of the question, or is to be kept."""

    pool: str
    why: str


class Fleet(Value):
    """The nodes that may be used: ``pools`` are those in scope, the ``kept`` ones among them.

    ``limits_without_nodes`` are GPU models whose nodes the wish limits, though no pool in scope has any.
    """

    pools: tuple[Pool, ...]
    node_types: tuple[NodeType, ...]
    kept: tuple[Spared, ...] = ()
    left_alone: tuple[Spared, ...] = ()
    limits_without_nodes: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(pool.name for pool in self.pools)

    def find(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)


class Wish(NamedTuple):
    """A restriction of the fleet: to ``pools`` alone, with these pools and layouts kept, and so many nodes of a model.

    ``shares`` are ways of sharing without isolation that may be used even if no pool has them.
    """

    pools: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    most_nodes: Mapping[str, int] = {}
    shares: tuple[Way, ...] = ()
    with_media: bool = False


def fleet_of(plan: Plan, wish: Wish) -> Fleet:
    """Return the fleet of a cluster as it is; trouble if a wish names something that the cluster does not have."""
    pools, layouts = {pool.name for pool in plan.pools}, {layout.name for layout in plan.layouts}
    _check_names("pool", wish.pools, pools)
    _check_names("pool or layout", wish.keep, pools | layouts)
    _check_models(plan, wish.most_nodes)
    reasons = {pool.name: _why_not(pool, wish) for pool in plan.pools}
    scope = [pool for pool in plan.pools if not reasons[pool.name]]
    kept = [Spared(pool.name, why) for pool in scope if (why := _why_kept(pool, wish))]
    types = _node_types(plan, scope, {one.pool for one in kept}, wish)
    alone = (Spared(name, why) for name, why in reasons.items() if why)
    idle = tuple(model for model in wish.most_nodes if model not in {pool.gpu.id for pool in scope})
    return Fleet(tuple(scope), tuple(types), tuple(kept), tuple(alone), idle)


def _check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    listed = sorted(known)
    for name in names:
        if name not in listed:
            close = misspelling(name, listed)
            all_ = (
                f"there {'is' if len(listed) == 1 else 'are'} {listing(listed)}" if listed else "the cluster has none"
            )
            raise GpuplanError(f"there is no {kind} `{name}`", f"did you mean `{close}`?" if close else all_)


def _why_not(pool: Pool, wish: Wish) -> str:
    """Return why a pool is left as it is, with its quotas, or nothing if the pool is in scope."""
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


def _check_models(plan: Plan, models: Iterable[str]) -> None:
    catalog = platform_of(plan).catalog
    for model in models:
        if catalog.find(model) is None:
            near = catalog.suggest(model)
            known = listing(sorted({pool.gpu.id for pool in plan.pools}))
            raise GpuplanError(
                f"there is no GPU model `{model}`",
                f"did you mean {listing(near, last='or')}?" if near else f"pools have {known}",
            )


# --- Cuts --------------------------------------------------------------------------------------------------------


def cut_of(pool: Pool) -> Cut | None:
    """Return how the GPUs of the pool's nodes are cut today, or None if no answer could cut them so."""
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
            per_gpu = [Counter[str]() for _ in entries]
            for instances, entry in zip(per_gpu, entries, strict=True):
                for name, number in entry.instances.items() if entry else ():
                    instances[pool.gpu.current_name(name)] += max(number, 0)
            known = {profile.name for profile in pool.gpu.profiles}
            counts = tuple({name: number for name, number in instances.items() if number} for instances in per_gpu)
            return Cut(Way.MIG, counts) if all(known >= held.keys() for held in counts) else None
        case _:
            return None


# --- Node types --------------------------------------------------------------------------------------------------


def _node_types(plan: Plan, pools: Sequence[Pool], kept: set[str], wish: Wish) -> Iterator[NodeType]:
    """Yield a type for all pools whose nodes could stand for one another."""
    groups = grouped((_kind_of(plan, pool), pool) for pool in pools)
    by_model = Counter(members[0].gpu.id for members in groups.values())
    for model, most in wish.most_nodes.items():
        staying = [pool for pool in pools if pool.gpu.id == model and pool.name in kept]
        if most < (nodes := sum(pool.nodes.count for pool in staying)):
            raise GpuplanError(
                f"`--nodes-at-most {model}={most}` is fewer than the nodes of "
                f"{listing([pool.name for pool in staying])}, which stay as they are",
                f"allow {nodes}: `--nodes-at-most {model}={nodes}`; or let these pools be cut again",
            )
    for members in groups.values():
        first, model = members[0], members[0].gpu.id
        today = tuple(
            Today(pool.name, pool.nodes.count, cut, pool.name in kept) for pool in members if (cut := cut_of(pool))
        )
        most = wish.most_nodes.get(model, sum(pool.nodes.count for pool in members))
        profiles = _profiles(plan, first, wish)
        shares = [
            way
            for way in (Way.TIME_SLICING, Way.MPS)
            if any(one.cut.way is way for one in today) or (way in wish.shares and may_share(plan, members))
        ]
        yield NodeType(
            name=model if by_model[model] == 1 else f"{model} like {first.name}",
            gpu=first.gpu,
            gpus_per_node=first.nodes.gpus_per_node,
            nodes=most,
            price=price.per_node_hour if (price := node_price(plan, first)) else None,
            profiles=profiles,
            ways=(Way.WHOLE, *([Way.MIG] if profiles else []), *shares),
            pools=today,
            nodes_of_model=wish.most_nodes.get(model) if by_model[model] > 1 else None,
            is_equal_within_node=plan.cluster.gpu_operator.spec.mig_strategy is ClusterMigStrategy.SINGLE
            or not plan.scheduler.uses_whole_gpus_beside_mig
            or _has(plan, first, DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS),
        )


def _kind_of(plan: Plan, pool: Pool) -> object:
    nodes, spec = pool.nodes, pool.spec
    driver = spec.driver.model_dump_json() if spec.driver else ""
    is_by_label = bool(nodes.selector) and not nodes.names and nodes.name_pattern is None
    price = node_price(plan, pool)
    by_itself = pool.name if is_by_label or nodes.are_by_board else ""
    return (
        *(pool.gpu.id, nodes.gpus_per_node, nodes.millicores, nodes.memory_bytes, spec.allocation, driver),
        *(stated_driver(plan, pool)[0], by_itself, price and price.per_node_hour),
    )


def _has(plan: Plan, pool: Pool, effect: DriverEffect) -> bool:
    driver, _ = stated_driver(plan, pool)
    return driver is not None and any(one.effect is effect and one.has(driver) for one in driver_defects())


def _profiles(plan: Plan, pool: Pool, wish: Wish) -> tuple[str, ...]:
    """Return the profiles that the scheduler counts and the driver can make; of a pair that it cannot, neither."""
    gpu = pool.gpu
    if not gpu.supports_mig or not gpu.is_complete or _has(plan, pool, DriverEffect.NO_MIG):
        return ()
    driver, _ = stated_driver(plan, pool)
    names = frozenset(profile.name for profile in gpu.profiles)
    too_new = {feature for feature, _ in unmet_requirements(driver, gpu, (names,))} if driver else set()
    if "MIG" in too_new:
        return ()
    out = {name for feature in too_new for name in feature.split(" + ")}
    is_counted = not plan.scheduler.reads_sizes_from_names
    chosen = gpu.profiles if wish.with_media and is_counted else gpu.plain_profiles
    return tuple(profile.name for profile in chosen if profile.name not in out)


def may_share(plan: Plan, pools: Iterable[Pool]) -> bool:
    """Whether GPUs may be time-sliced, or shared by MPS, that no pool shares so today."""
    is_claimed = any(pool.spec.allocation is Allocation.DRA for pool in pools)
    return (
        not plan.scheduler.supports("fraction")
        and not is_claimed
        and plan.cluster.spec.platform is not Platform.OPENSHIFT
    )
