"""Resolve pools: what each hands out, how much of it, and the labels that its nodes get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction as Ratio
from typing import Final, assert_never

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog import Gpu, parse_profile
from gpuplan.compiler.planning.amounts import of_node
from gpuplan.compiler.planning.context import Context
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource, shown_product
from gpuplan.compiler.planning.dra import DRA_PLUGIN_LABEL, class_name
from gpuplan.compiler.planning.layouts import entry_of, is_divided_alike, make_layout
from gpuplan.compiler.planning.placement.placing import Refusal
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    MIG_MANAGER_LABEL,
    POOL_LABEL,
    Counted,
    DynamicMig,
    Exclusive,
    Fraction,
    Isolation,
    Layout,
    Mig,
    MigTimeSlicing,
    Mps,
    Nodes,
    PluginKeys,
    Pool,
    Rollout,
    Sharing,
    Taint,
    TimeSlicing,
    Unit,
    with_places,
)
from gpuplan.compiler.planning.plugin_configs import configuration, key_of
from gpuplan.compiler.planning.schedulers import traits_of
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.models import Allocation, Effect, MigStrategy

ALL_DISABLED = "all-disabled"
"""The entry of the mig-parted file that switches MIG off; the operator labels new nodes with it."""


def resolve_pool(context: Context, at: Origin, pool: models.Pool) -> Pool | None:
    """Return the pool, or None if its GPU model or its layout is unknown."""
    spec = pool.spec
    gpu = context.find_gpu(spec.gpu, at / "gpu")
    if gpu is None:
        return None
    name = pool.metadata.name
    sharing = _sharing(context, at / "sharing", name, gpu, spec.sharing)
    if sharing is None:
        return None
    written = spec.nodes
    names = tuple(written.names or ())
    nodes = Nodes(
        at=at / "nodes",
        count=written.count,
        gpus_per_node=written.gpus_per_node,
        names=names,
        name_pattern=written.name_pattern,
        selector=written.selector,
        boards=tuple(sorted(device.spelt for device in gpu.pci)) if written.match_boards else (),
        millicores=of_node(written, Counted.CPU),
        memory_bytes=of_node(written, Counted.MEMORY),
    )
    # If every key carries a hash, no document defines what the pool's name means.
    by_content = context.plugin_config is models.DevicePluginConfig.FIXED and spec.names.device_plugin_config is None
    own = name if spec.names.device_plugin_config is None else spec.names.device_plugin_config
    meaning = None if by_content else context.retained_configs.get(own)
    resolved = Pool(
        at=at,
        name=name,
        spec=spec,
        gpu=gpu,
        nodes=nodes,
        sharing=sharing,
        units=_units(gpu, nodes, sharing, spec.allocation),
        labels={},
        keys=PluginKeys(context.mig_strategy, own, meaning, by_content),
        taints=tuple(_taints(context, at / "taints", spec.taints)),
    )
    labels = {POOL_LABEL: resolved.name, DEVICE_PLUGIN_CONFIG_LABEL: key_of(resolved)}
    labels |= _division_labels(resolved.gpu, resolved.sharing)
    if resolved.spec.allocation is Allocation.DRA:
        labels[DRA_PLUGIN_LABEL] = "true"
    if label := traits_of(context.scheduler.kind).node_pool_label:
        labels[label] = resolved.name
    resolved = resolved._replace(labels={**spec.node_labels, **labels})
    if spec.rollout is None:
        return resolved
    target = _sharing(context, at / "rollout" / "sharing", name, gpu, spec.rollout.sharing)
    return None if target is None else divided(resolved, at / "rollout", target, spec.rollout.nodes)


def _taints(context: Context, at: Origin, written: Sequence[models.Taint]) -> Iterator[Taint]:
    """Yield the pool's own taints, and the cluster's default taint if none of them keeps pods off."""
    own = [Taint(place, taint.key, taint.value, taint.effect) for place, taint in with_places(at, written)]
    yield from own
    if context.taints_pools_at and not any(taint.keeps_pods_off for taint in own):
        yield Taint(context.taints_pools_at, GPU_RESOURCE, "present", Effect.NO_SCHEDULE)


def _division_labels(gpu: Gpu, sharing: Sharing) -> dict[str, str]:
    """Return the labels by which mig-manager divides GPUs, or none for a model without MIG.

    Where the driver for DRA makes partitions, mig-manager has to stay away: it would dissolve them.
    """
    match sharing:
        case Mig():
            return {MIG_CONFIG_LABEL: sharing.layout.config_name}
        case DynamicMig():
            return {MIG_MANAGER_LABEL: "false"}
        case _:
            return {MIG_CONFIG_LABEL: ALL_DISABLED} if gpu.supports_mig else {}


# --- Sharing -----------------------------------------------------------------------------------------------------


def _sharing(context: Context, at: Origin, name: str, gpu: Gpu, sharing: models.Sharing) -> Sharing | None:
    if sharing.exclusive is not None:
        return Exclusive(at / "exclusive")
    if sharing.time_slicing is not None:
        return TimeSlicing(at / "timeSlicing", sharing.time_slicing)
    if sharing.mps is not None:
        return Mps(at / "mps", sharing.mps)
    if sharing.mig is not None:
        return _mig(context, at / "mig", name, gpu, sharing.mig)
    if sharing.dynamic_mig is not None:
        asked = {gpu.current_name(profile) for profile in sharing.dynamic_mig.profiles}
        profiles = tuple(profile.name for profile in gpu.profiles if profile.name in asked)
        return DynamicMig(at / "dynamicMig", sharing.dynamic_mig, profiles)
    return Fraction(at / "fraction")


def _mig(context: Context, at: Origin, name: str, gpu: Gpu, mig: models.Mig) -> Mig | None:
    if mig.layout is not None:
        layout = context.refer("MigLayout", mig.layout, at / "layout", context.layouts, _as_instances(gpu, mig.layout))
        layout_at = at / "layout"
    else:
        layout = make_layout(at, name, gpu, mig.instances, mig.devices, config_name=mig.config_name, is_inline=True)
        layout_at = at / ("devices" if mig.instances is None else "instances")
    if layout is None:
        return None
    slicing = None if mig.time_slicing is None else MigTimeSlicing(at / "timeSlicing", mig.time_slicing)
    return Mig(at, mig, layout, layout_at, slicing)


def _as_instances(gpu: Gpu, name: str) -> str:
    """Return help for names of mig-parted's own layouts, such as `all-1g.10gb`. It is empty for other names."""
    if name == ALL_DISABLED:
        return "write `exclusive: {}` in place of `mig`"
    full = next((profile for profile in gpu.profiles if name == f"all-{profile.resource_suffix}"), None)
    return f"write `instances: {{{full.name}: {full.max_instances}}}` in place of `layout`" if full else ""


def has_unclear_units(pool: Pool) -> bool:
    """Whether a mistake in how a pool shares its GPUs, which is a finding of its own, hides what it hands out."""
    return any(_is_unclear(part) for part in pool.parts)


def _is_unclear(pool: Pool) -> bool:
    match pool.sharing:
        case TimeSlicing() | Mps():
            return pool.sharing.spec.replicas < _LEAST_SHARES
        case Mig():
            slicing = pool.sharing.time_slicing
            stated = slicing.stated if slicing else ()
            is_unshared = any(shares.number < _LEAST_SHARES for shares in stated)
            return is_unshared or _is_layout_unclear(pool, pool.sharing.layout)
        case DynamicMig():
            asked = {pool.gpu.current_name(name) for name in pool.sharing.spec.profiles}
            return asked != set(pool.sharing.profiles)
        case _:
            return False


def _is_layout_unclear(pool: Pool, layout: Layout) -> bool:
    gpu = layout.gpu
    divides_all = any(entry.gpus is None for entry in layout.entries)
    indexes = () if divides_all else range(pool.nodes.gpus_per_node)
    if gpu is not pool.gpu or not gpu.supports_mig or any(entry_of(layout, index) is None for index in indexes):
        return True
    lines = [line for entry in layout.entries for line in entry.instances.items()]
    return any(isinstance(entry.placed, Refusal) for entry in layout.entries) or any(
        count < 1 or (gpu.is_complete and gpu.find_profile(gpu.current_name(name)) is None) for name, count in lines
    )


_LEAST_SHARES = 2


# --- Rollouts ----------------------------------------------------------------------------------------------------


def divided(pool: Pool, at: Origin, sharing: Sharing, moved: Sequence[str]) -> Pool:
    """Return the pool with some nodes moved to another way of sharing."""
    names = tuple(dict.fromkeys(moved))
    left = _with_nodes(
        pool,
        replace(
            pool.nodes,
            count=max(pool.nodes.count - len(names), 0),
            names=tuple(name for name in pool.nodes.names if name not in names),
            moved=names,
            # Where the rollout has moved all that are named, none is left.
            boards=() if pool.nodes.names else pool.nodes.boards,
        ),
    )
    there = moved_to(pool, sharing)
    nodes = replace(pool.nodes, count=len(names), names=names, name_pattern=None, selector={})
    reached = _with_nodes(there, nodes)
    return pool._replace(units=_joined(left.units, reached.units), rollout=Rollout(at, tuple(moved), left, reached))


def moved_to(pool: Pool, sharing: Sharing) -> Pool:
    """Return the pool with all of its nodes shared as a rollout leads to."""
    own = {MIG_CONFIG_LABEL, MIG_MANAGER_LABEL} - pool.spec.node_labels.keys()
    labels = {key: value for key, value in pool.labels.items() if key not in own}
    labels |= _division_labels(pool.gpu, sharing)
    units = _units(pool.gpu, pool.nodes, sharing, pool.spec.allocation)
    moved = pool._replace(sharing=sharing, units=units, labels=labels, rollout=None)
    if pool.keys.by_content or pool.keys.meaning is not None:
        labels[DEVICE_PLUGIN_CONFIG_LABEL] = key_of(moved)
    elif not is_configured_alike(pool.sharing, sharing):
        labels[DEVICE_PLUGIN_CONFIG_LABEL] = f"{pool.name}{ROLLOUT_SUFFIX}"
    return moved


def with_meaning(pool: Pool) -> Pool:
    """Return the pool as if a document retained its present file, unless a document already defines its name."""
    if pool.keys.by_content or pool.keys.meaning is not None:
        return pool
    return pool._replace(keys=pool.keys._replace(meaning=configuration(pool, pool.keys.strategy)))


def hangs_on_retained(pool: Pool) -> bool:
    """Whether nodes of a pool would have other labels without the document that says what its own name means."""
    if pool.keys.meaning is None:  # nobody says it, or nobody has to
        return False
    own, *moved = (part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in pool.parts)
    if pool.rollout is None:
        return own != pool.keys.own
    is_same = is_configured_alike(pool.sharing, pool.rollout.moved.sharing)
    return own != pool.keys.own or moved != [pool.keys.own if is_same else f"{pool.name}{ROLLOUT_SUFFIX}"]


ROLLOUT_SUFFIX: Final = ".rollout"
"""Ends the key of the file of nodes that were moved, where nothing says what the pool's own name means.

So it was before keys told contents apart; a rollout that began then keeps the labels of its nodes. No pool's name has a
dot.

The plugin's config-manager takes any file but those that begin with two dots (`getConfigFileNameMap` in
`cmd/config-manager/main.go` of NVIDIA/k8s-device-plugin).
"""

LONGEST_ROLLOUT_NAME: Final = 63 - len(ROLLOUT_SUFFIX)
"""The longest name of a pool that may have a rollout, since the name is part of a label's value."""


def is_configured_alike(sharing: Sharing, other: Sharing) -> bool:
    """Whether one configuration of the device plugin is right for both: it knows no layouts."""
    return (
        isinstance(sharing, Mig)
        and isinstance(other, Mig)
        and sharing.spec.strategy is other.spec.strategy
        and not (sharing.time_slicing or other.time_slicing)
    )


def is_alike(sharing: Sharing, other: Sharing) -> bool:
    """Whether two ways of sharing leave a node the same, wherever they are written."""
    match sharing, other:
        case (Exclusive(), Exclusive()) | (Fraction(), Fraction()):
            return True
        case (TimeSlicing() as shares, TimeSlicing() as others) | (Mps() as shares, Mps() as others):
            return shares.spec == others.spec
        case DynamicMig() as some, DynamicMig() as others:
            return some.profiles == others.profiles
        case Mig() as mig, Mig() as another:
            is_sliced_alike = mig.spec.time_slicing == another.spec.time_slicing
            is_named_alike = mig.layout.config_name == another.layout.config_name
            is_cut_alike = is_named_alike and is_divided_alike(mig.layout, another.layout)
            return is_cut_alike and mig.spec.strategy is another.spec.strategy and is_sliced_alike
        case _:
            return False


def clashes(units: Iterable[Unit], others: Sequence[Unit]) -> Iterator[tuple[Unit, Unit]]:
    """Yield units of two ways of sharing that one pool cannot hand out at once, as they share a name or a resource.

    Whole GPUs and what a scheduler cuts from them are published as `nvidia.com/gpu`.
    """
    for unit in units:
        for other in others:
            is_one = unit.name == other.name or (unit.asked_as or GPU_RESOURCE) == (other.asked_as or GPU_RESOURCE)
            if is_one and _worth(unit) != _worth(other):
                yield unit, other


def _worth(unit: Unit) -> tuple[object, ...]:
    return unit.name, unit.asked_as, unit.gpu_weight, unit.memory_mib, unit.isolation


def _with_nodes(pool: Pool, nodes: Nodes) -> Pool:
    return pool._replace(
        nodes=nodes, units=tuple(unit._replace(capacity=unit.per_node * nodes.count) for unit in pool.units)
    )


def _joined(units: Sequence[Unit], others: Sequence[Unit]) -> tuple[Unit, ...]:
    """Return the units of both. A unit of both has the sum as its capacity, and the larger number on each node."""
    found = {unit.name: unit for unit in units}
    for unit in others:
        same = found.get(unit.name)
        found[unit.name] = (
            unit
            if same is None
            else same._replace(
                per_gpu=tuple(map(max, same.per_gpu, unit.per_gpu)),
                per_node=max(same.per_node, unit.per_node),
                capacity=same.capacity + unit.capacity,
            )
        )
    return tuple(found.values())


# --- Units -------------------------------------------------------------------------------------------------------


def _units(gpu: Gpu, nodes: Nodes, sharing: Sharing, allocation: Allocation) -> tuple[Unit, ...]:
    units = _resources(gpu, nodes, sharing)
    if allocation is Allocation.DEVICE_PLUGIN:
        return units
    return tuple(unit._replace(resource=None, device_class=class_name(gpu, unit.name)) for unit in units)


def _resources(gpu: Gpu, nodes: Nodes, sharing: Sharing) -> tuple[Unit, ...]:
    match sharing:
        case Exclusive():
            return (_whole_gpus("gpu", GPU_RESOURCE, gpu, nodes, 1, Isolation.WHOLE_GPU),)
        case TimeSlicing():
            return (_whole_gpus("shared", _shared(sharing), gpu, nodes, sharing.spec.replicas, Isolation.NONE),)
        case Mps():
            return (_whole_gpus("shared", _shared(sharing), gpu, nodes, sharing.spec.replicas, Isolation.MPS),)
        case Fraction():
            return (_whole_gpus("fraction", None, gpu, nodes, 1, Isolation.NONE),)
        case Mig():
            return _mig_units(gpu, nodes, sharing)
        case DynamicMig():
            return tuple(_on_demand(name, gpu, nodes) for name in sharing.profiles)
        case _:
            assert_never(sharing)


def _shared(sharing: TimeSlicing | MigTimeSlicing | Mps, resource: str = GPU_RESOURCE) -> str:
    return f"{resource}.shared" if sharing.spec.rename else resource


def _whole_gpus(name: str, resource: str | None, gpu: Gpu, nodes: Nodes, replicas: int, isolation: Isolation) -> Unit:
    per_gpu = (max(replicas, 0),) * nodes.gpus_per_node
    memory = gpu_memory_mib(gpu) // max(replicas, 1)
    return _unit(name, resource, per_gpu, nodes, Ratio(1, max(replicas, 1)), memory, isolation)


def _mig_units(gpu: Gpu, nodes: Nodes, mig: Mig) -> tuple[Unit, ...]:
    """Return one unit per profile in catalog order, and `gpu` if some GPUs stay whole."""
    entries = [entry_of(mig.layout, index) for index in range(nodes.gpus_per_node)]
    order = {profile.name: index for index, profile in enumerate(gpu.profiles)}
    names = {name for entry in entries if entry for name, count in entry.instances.items() if count > 0}
    units = [
        _mig_unit(name, gpu, nodes, mig, tuple(entry.instances.get(name, 0) if entry else 0 for entry in entries))
        for name in sorted(names, key=lambda name: (order.get(name, len(order)), name))
    ]
    whole = tuple(0 if entry is None or entry.mig_enabled else 1 for entry in entries)
    if any(whole):
        units.append(_unit("gpu", GPU_RESOURCE, whole, nodes, Ratio(1), gpu_memory_mib(gpu), Isolation.WHOLE_GPU))
    return tuple(units)


def _mig_unit(name: str, gpu: Gpu, nodes: Nodes, mig: Mig, per_gpu: tuple[int, ...]) -> Unit:
    shares = mig.time_slicing.find(name) if mig.time_slicing else None
    replicas = max(shares.number, 1) if shares else 1
    is_single = mig.spec.strategy is MigStrategy.SINGLE
    resource = GPU_RESOURCE if is_single else mig_resource(name)
    return _unit(
        name,
        _shared(mig.time_slicing, resource) if mig.time_slicing and shares else resource,
        tuple(count * replicas for count in per_gpu),
        nodes,
        Ratio(1 if is_single else _compute_slices(gpu, name), replicas),
        profile_memory_mib(gpu, name, replicas),
        Isolation.NONE if shares else Isolation.HARDWARE,
    )


def _on_demand(name: str, gpu: Gpu, nodes: Nodes) -> Unit:
    """Return a unit with as many instances as fit on GPUs that hold nothing else."""
    profile = gpu.find_profile(name)
    most = profile.max_instances if profile else 0
    memory, slices = profile_memory_mib(gpu, name, 1), Ratio(_compute_slices(gpu, name))
    resource = mig_resource(name)
    return _unit(name, resource, (most,) * nodes.gpus_per_node, nodes, slices, memory, Isolation.HARDWARE)


def _unit(
    name: str,
    resource: str | None,
    per_gpu: tuple[int, ...],
    nodes: Nodes,
    gpu_weight: Ratio,
    memory_mib: int | None,
    isolation: Isolation,
) -> Unit:
    per_node = sum(per_gpu)
    return Unit(name, resource, None, per_gpu, per_node, per_node * nodes.count, gpu_weight, memory_mib, isolation)


def gpu_memory_mib(gpu: Gpu) -> int:
    """Return the whole GPU's memory: what the driver reports if that is known, else the nominal size."""
    return gpu.memory_mib or gpu.memory_gib * 1024


def divisible_mib(gpu: Gpu) -> int:
    """Return the memory of a GPU that KAI-Scheduler divides: whole hundreds of MiB, one at least.

    (`getNodeGpuMemory` in `pkg/scheduler/api/node_info/node_info.go` there, of the label `nvidia.com/gpu.memory`.)
    """
    return max(gpu_memory_mib(gpu) // 100, 1) * 100


def profile_memory_mib(gpu: Gpu, name: str, replicas: int) -> int | None:
    profile = gpu.find_profile(gpu.current_name(name))
    if profile is None:
        return None
    if profile.memory_mib is not None:
        return profile.memory_mib // replicas
    return None if profile.memory_gib is None else int(profile.memory_gib * 1024) // replicas


def _compute_slices(gpu: Gpu, name: str) -> int:
    """Return the compute slices of a MIG device, which KAI-Scheduler reads from the resource's name.

    (`pkg/scheduler/api/common_info/resources/mig.go` there.) Under `single` the name is `nvidia.com/gpu`, of which it
    counts one for each (`ResourceFromResourceList` in `pkg/scheduler/api/resource_info/resource_info.go`).
    """
    profile = gpu.find_profile(gpu.current_name(name))
    if profile is not None:
        return profile.compute_slices
    parsed = parse_profile(name)
    return parsed.compute_slices if parsed else 0


def shown_products(part: Pool) -> list[str]:
    """Return the product labels that nodes of the pool may have. The strategy `mixed` leaves them alone."""
    is_shared, profile = bool(part.shares and not part.shares.spec.rename), ""
    if isinstance(part.sharing, Mig):
        profiles = {name for entry in part.sharing.layout.entries for name in entry.instances}
        is_single = part.sharing.spec.strategy is MigStrategy.SINGLE and len(profiles) == 1
        is_shared, profile = is_shared and is_single, next(iter(profiles)) if is_single else ""
    return [shown_product(item.label, profile=profile, is_shared=is_shared) for item in part.gpu.products]
