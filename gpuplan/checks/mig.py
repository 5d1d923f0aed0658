"""Checks on MIG layouts (GPU200-249): whether they fit, which GPUs they cover, how they are published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuplan.catalog import Gpu
from gpuplan.catalog.operators import DriverEffect, driver_defects
from gpuplan.checks import profiles
from gpuplan.checks.layouts import LayoutUse, instances_at, layout_uses, nearest_that_fit, partitioned, positive, spell
from gpuplan.checks.registry import Check, check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.placement import Refusal, RefusedBy, fits, nearest_layouts
from gpuplan.planning.plan import GPU_RESOURCE, Layout, LayoutEntry, Mig, MigStrategy, Plan, Pool
from gpuplan.wording import listing

# --- Models ------------------------------------------------------------------------------------------------------


@check("GPU200", "mig-not-supported")
def mig_not_supported(plan: Plan) -> Iterator[Finding]:
    """A layout or a pool partitions a GPU model that has no MIG.

    ## Why
    MIG is in the hardware of A30, A100 and what came after them for data centres, and in RTX PRO boards. On any other
    GPU mig-parted cannot switch it on: the node's `nvidia.com/mig.config.state` becomes `failed`.

    ## Instead
    Share such GPUs by `timeSlicing` or `mps`, or give them out whole with `exclusive: {}`.
    """
    for target in _targets(plan):
        if not target.gpu.supports_mig:
            yield Finding(
                target.at,
                f"{target.gpu.id} has no MIG",
                label="cannot be partitioned",
                related=target.related,
                help="share by `timeSlicing: {replicas: 2}` or `mps: {replicas: 2}`, or write `exclusive: {}`",
            )


@check("GPU201", "mig-model-incomplete")
def mig_model_incomplete(plan: Plan) -> Iterator[Finding]:
    """A layout or a pool partitions a GPU model whose profiles are not known well enough to judge it.

    ## Why
    The model has MIG, but sources contradict one another about its profiles or say nothing about where instances may
    start. A guess would be found wrong on the node, after the old partitions are gone.

    ## Instead
    Share the GPUs in another way, or add what `nvidia-smi mig -lgip` and `nvidia-smi mig -lgipp` print on such a board
    to the catalog.
    """
    for target in _targets(plan):
        if target.gpu.supports_mig and not target.gpu.is_complete:
            yield Finding(
                target.at,
                f"the catalog cannot judge MIG layouts of {target.gpu.id}",
                label="profiles not known well enough",
                related=target.related,
                notes=(target.gpu.incomplete_reason,),
                help="share by `timeSlicing` or `mps`, or complete the catalog from `nvidia-smi mig -lgip`",
            )


@dataclass(frozen=True, slots=True)
class _Target:
    """A GPU model that a layout or a pool wants to partition, and where it says so."""

    gpu: Gpu
    at: Origin
    related: tuple[Label, ...]


def _targets(plan: Plan) -> Iterator[_Target]:
    """Every layout's model, and every pool's that differs from its layout's."""
    for use in layout_uses(plan):
        if not use.layout.is_inline:
            yield _Target(use.layout.gpu, use.layout.at / "gpu", use.use_labels)
    for pool, mig in _mig_pools(plan):
        if mig.layout.is_inline or mig.layout.gpu is not pool.gpu:
            yield _Target(pool.gpu, mig.at.key, (Label(pool.at / "gpu", "the pool's GPU"),))


@check("GPU202", "layout-of-another-gpu")
def layout_of_another_gpu(plan: Plan) -> Iterator[Finding]:
    """A pool uses a layout that was made for another GPU model.

    ## Why
    The same profile name is another part of another board: `1g.10gb` fits seven times on an A100-80GB and four times
    on an A100-40GB. A layout is judged on its own model, so on the pool's it may not fit, and its memory and compute
    are not what capacity is counted with.

    ## Instead
    Use a layout for the pool's model, or write the instances in the pool.
    """
    for pool, mig in _mig_pools(plan):
        if mig.layout.gpu is not pool.gpu and pool.gpu.profiles and mig.layout.gpu.supports_mig:
            yield Finding(
                mig.layout_at,
                f"layout `{mig.layout.name}` is for {mig.layout.gpu.id}, pool `{pool.name}` has {pool.gpu.id}",
                label=f"made for {mig.layout.gpu.id}",
                related=(
                    Label(pool.at / "gpu", "the pool's GPU"),
                    Label(mig.layout.at / "gpu", "the layout's GPU"),
                ),
                help=_layout_for(plan, pool.gpu, mig.layout),
            )


def _layout_for(plan: Plan, gpu: Gpu, layout: Layout) -> str:
    others = [other.name for other in plan.layouts if other.gpu is gpu]
    if others:
        return f"layouts for {gpu.id}: {listing(others)}"
    nearest = [spell(near) for entry in layout.entries for near in nearest_layouts(gpu, positive(entry), 1)]
    return f"add a layout for {gpu.id}{f', such as {nearest[0]}' if nearest else ''}"


# --- Fitting -----------------------------------------------------------------------------------------------------


@check("GPU203", "layout-does-not-fit")
def layout_does_not_fit(plan: Plan) -> Iterator[Finding]:
    """A layout asks for GPU instances that cannot be placed together.

    ## Why
    The driver puts each GPU instance at one of a few fixed starts along the board's memory slices, and two may not
    overlap. A layout whose slices or gigabytes add up can still have no arrangement: a `3g.40gb` takes four of eight
    memory slices, so two of them leave none for a `1g.10gb`, although one compute slice is idle. mig-parted tries all
    orders and gives up with `all orderings failed`; by then the node's old partitions are gone.

    ## Instead
    Use one of the layouts that the help line names. `gpuplan catalog` with the model's name draws the slices and lists
    every layout to which nothing can be added.
    """
    for use, entry in partitioned(plan):
        refusal = entry.placed
        if isinstance(refusal, Refusal) and refusal.rule is RefusedBy.NO_ARRANGEMENT:
            at = instances_at(entry)
            yield Finding(
                at.key,
                f"{use.name} does not fit on {use.layout.gpu.id}",
                label=refusal.summary,
                related=tuple(Label(at / name, f"{entry.instances[name]}x `{name}`") for name in refusal.profiles),
                notes=refusal.facts,
                help=nearest_that_fit(use.layout.gpu, entry),
            )


@check("GPU212", "no-instances")
def no_instances(plan: Plan) -> Iterator[Finding]:
    """A layout switches MIG on and makes no instances.

    ## Why
    A GPU in MIG mode without instances runs nothing: it is neither a whole GPU nor divided. The node publishes no
    resource for it.

    ## Instead
    Name the instances, or leave the GPUs whole: `enabled: false` for some of them, `exclusive: {}` for a whole pool.
    """
    for use in layout_uses(plan):
        for entry in use.layout.entries if use.layout.gpu.supports_mig else ():
            if entry.mig_enabled and not entry.instances:
                is_all = entry.at.path[-1] == "instances"
                yield Finding(
                    instances_at(entry).key,
                    f"{use.name} switches MIG on without any instance",
                    label="no instances",
                    notes=("a GPU in MIG mode without instances runs nothing",),
                    help="name the instances, or write `exclusive: {}` in the pool"
                    if is_all
                    else "add `instances`, or `enabled: false` to leave these GPUs whole",
                )


# --- Which GPUs --------------------------------------------------------------------------------------------------

_MOST_GPUS = 32
"""No node has more (GPU160), so no index beyond is asked for."""


@check("GPU213", "gpus-not-covered")
def gpus_not_covered(plan: Plan) -> Iterator[Finding]:
    """A layout says nothing about some GPUs of the nodes that use it.

    ## Why
    mig-parted leaves such GPUs as they are, but then wants every GPU of the node to match the configuration: it never
    reports success, and divides the others anew each time that it starts.

    ## Instead
    Add an entry for the rest: `{gpus: [4, 5, 6, 7], enabled: false}` leaves them whole.
    """
    for use in layout_uses(plan):
        largest = max(use.pools, key=lambda pool: pool.nodes.gpus_per_node, default=None)
        missing = _uncovered(use.layout, largest.nodes.gpus_per_node) if largest else []
        if missing:
            yield Finding(
                (use.layout.at / "devices").key,
                f"{use.name} does not say what {_gpus(missing)} become",
                label=f"nothing about {_gpus(missing)}",
                related=tuple(
                    Label(pool.nodes.at / "gpusPerNode", f"nodes of pool `{pool.name}` have more")
                    for pool in use.pools
                    if pool.nodes.gpus_per_node > missing[0]
                ),
                notes=("mig-parted reports success only when it knows every GPU of the node",),
                help=f"add `{{gpus: {missing}, enabled: false}}` to leave them whole, or give them instances",
            )


def _uncovered(layout: Layout, gpus_per_node: int) -> list[int]:
    if any(entry.gpus is None for entry in layout.entries):
        return []
    covered = {index for _, _, index in _named(layout)}
    return [index for index in range(min(gpus_per_node, _MOST_GPUS)) if index not in covered]


@check("GPU214", "gpu-index-out-of-range")
def gpu_index_out_of_range(plan: Plan) -> Iterator[Finding]:
    """A layout names a GPU that nodes which use it do not have.

    ## Why
    Indexes count from 0, as NVML does: a node with 8 GPUs has 0 to 7. mig-parted ignores an index beyond without a
    word, and the instances that the entry asks for exist nowhere.

    ## Instead
    Remove the index, or correct `gpusPerNode`. A layout for nodes of different sizes can use `gpus: all`.
    """
    for use in layout_uses(plan):
        for entry, position, index in _named(use.layout):
            short = [pool for pool in use.pools if index >= pool.nodes.gpus_per_node]
            if short:
                is_nowhere = len(short) == len(use.pools)
                yield Finding(
                    entry.at / "gpus" / position,
                    f"pool `{short[0].name}` has no GPU {index}",
                    label=f"its nodes have 0 to {short[0].nodes.gpus_per_node - 1}",
                    related=tuple(Label(pool.nodes.at / "gpusPerNode", f"pool `{pool.name}`") for pool in short),
                    help="remove the index, or correct `gpusPerNode`",
                    severity=None if is_nowhere else Severity.WARNING,
                )


@check("GPU215", "gpu-index-twice")
def gpu_index_twice(plan: Plan) -> Iterator[Finding]:
    """A layout says twice what one GPU becomes.

    ## Why
    Where two entries name a GPU and one leaves MIG off, mig-parted fails; where both switch it on, the last one holds
    and the first is ignored without a word. `all` names every GPU.

    ## Instead
    Name each GPU in one entry.
    """
    for use in layout_uses(plan):
        yield from _named_twice(use.layout)
        yield from _beside_all(use.layout)


def _named_twice(layout: Layout) -> Iterator[Finding]:
    first: dict[int, Origin] = {}
    for entry, position, index in _named(layout):
        at = entry.at / "gpus" / position
        before = first.setdefault(index, at)
        if before is not at:
            yield Finding(
                at,
                f"GPU {index} is named twice",
                label="again",
                related=(Label(before, "the first time"),),
                help=f"name GPU {index} in one entry",
            )


def _beside_all(layout: Layout) -> Iterator[Finding]:
    everything = next((entry for entry in layout.entries if entry.gpus is None), None)
    for entry in layout.entries if everything else ():
        if everything and entry is not everything:
            yield Finding(
                entry.at / "gpus",
                "this entry stands beside one for all GPUs",
                label="named by `all` as well",
                related=(Label(everything.at / "gpus", "every GPU"),),
                help="replace `all` by the indexes that are left, or remove this entry",
            )


@check("GPU216", "entry-without-gpus")
def entry_without_gpus(plan: Plan) -> Iterator[Finding]:
    """A layout has an entry for no GPU.

    ## Why
    mig-parted applies an entry with an empty list to nothing. What it asks for exists nowhere.

    ## Instead
    Name the GPUs, or remove the entry.
    """
    for use in layout_uses(plan):
        for entry in use.layout.entries:
            if entry.gpus == ():
                yield Finding(
                    entry.at / "gpus",
                    f"an entry of {use.name} is for no GPU",
                    label="empty",
                    help="name the GPUs, such as `gpus: [0, 1]`, or remove the entry",
                )


@check("GPU217", "instances-without-mig")
def instances_without_mig(plan: Plan) -> Iterator[Finding]:
    """A layout names instances for GPUs on which it leaves MIG off.

    ## Why
    mig-parted refuses a file that has an entry with both, and it reads the file as a whole: no node of the cluster
    would be partitioned.

    ## Instead
    Remove `enabled: false` to divide the GPUs, or `instances` to leave them whole.
    """
    for use in layout_uses(plan):
        for entry in use.layout.entries:
            if entry.instances and not entry.mig_enabled:
                yield Finding(
                    (entry.at / "instances").key,
                    f"{use.name} names instances where MIG is off",
                    label="never made",
                    related=(Label(entry.at / "enabled", "MIG is off"),),
                    help="remove `enabled: false` to divide these GPUs, or `instances` to leave them whole",
                )


@check("GPU218", "nothing-partitioned", Severity.WARNING)
def nothing_partitioned(plan: Plan) -> Iterator[Finding]:
    """A layout leaves every GPU whole.

    ## Why
    Its pool hands out whole GPUs, but looks as if it were partitioned, and each change of the layout goes through
    mig-manager, which stops the GPU services of the node.

    ## Instead
    Write `exclusive: {}` in the pool, or switch MIG on for some GPUs.
    """
    for use in layout_uses(plan):
        if not any(entry.mig_enabled for entry in use.layout.entries):
            yield Finding(
                (use.layout.at / "devices").key,
                f"{use.name} partitions no GPU",
                label="MIG is off everywhere",
                related=use.use_labels,
                help="write `exclusive: {}` in the pool instead",
            )


def _named(layout: Layout) -> Iterator[tuple[LayoutEntry, int, int]]:
    """Every index that is written: its entry, its place in the list, the index."""
    for entry in layout.entries:
        for position, index in enumerate(entry.gpus or ()):
            yield entry, position, index


def _gpus(indexes: Sequence[int]) -> str:
    """Some GPUs in words: `GPU 3`, `GPUs 4 to 7`, `GPUs 1, 4 and 5`."""
    if len(indexes) == 1:
        return f"GPU {indexes[0]}"
    if len(indexes) > 2 and indexes[-1] - indexes[0] == len(indexes) - 1:
        return f"GPUs {indexes[0]} to {indexes[-1]}"
    return f"GPUs {', '.join(map(str, indexes[:-1]))} and {indexes[-1]}"


# --- Strategy ----------------------------------------------------------------------------------------------------


@check("GPU219", "single-needs-equal-instances")
def single_needs_equal_instances(plan: Plan) -> Iterator[Finding]:
    """A pool publishes unequal instances under the strategy `single`.

    ## Why
    `single` publishes every MIG device as `nvidia.com/gpu`, so they must all be of one profile, on every GPU of the
    node. Otherwise the device plugin exits with `more than one MIG device type present on node`, GPU feature discovery
    labels the node `-MIG-INVALID`, and it has no GPUs at all.

    ## Instead
    Use the strategy `mixed`, under which each profile is a resource of its own, or one profile on all GPUs.
    """
    for pool, mig in _mig_pools(plan):
        profiles_used = [unit.name for unit in pool.units if unit.name != "gpu"]
        leaves_whole = len(profiles_used) < len(pool.units)
        if mig.strategy is MigStrategy.SINGLE and len(pool.units) > 1:
            what = f"makes {listing(profiles_used)}{', and leaves some GPUs whole' if leaves_whole else ''}"
            yield Finding(
                mig.at / "strategy",
                f"strategy `single` needs equal instances on every GPU of pool `{pool.name}`",
                label="needs one profile",
                related=(Label(mig.layout_at, what),),
                notes=(f"under `single` the nodes would publish no `{GPU_RESOURCE}` at all (`MIG-INVALID`)",),
                help="write `strategy: mixed`; pods then ask for `nvidia.com/mig-<profile>`",
            )


@check("GPU220", "layout-leaves-room", Severity.NOTE)
def layout_leaves_room(plan: Plan) -> Iterator[Finding]:
    """A layout has room for one more instance of a profile that it has already.

    ## Why
    What no instance takes lies idle until the next repartition, which empties the node. A layout that could have seven
    instances and has six was most likely counted by hand.

    ## Instead
    Raise the count, unless the rest is kept free on purpose.
    """
    for use, entry in partitioned(plan):
        if isinstance(entry.placed, Refusal):
            continue
        more = [name for name in positive(entry) if fits(use.layout.gpu, _one_more(entry, name))]
        if more:
            at = instances_at(entry) / more[0]
            yield Finding(
                at,
                f"one more `{more[0]}` fits beside {use.name}",
                label="one more fits",
                help=f"write `{more[0]}: {entry.instances[more[0]] + 1}`",
            )


def _one_more(entry: LayoutEntry, name: str) -> dict[str, int]:
    return {**positive(entry), name: entry.instances[name] + 1}


# --- Drivers -----------------------------------------------------------------------------------------------------


@check("GPU222", "driver-too-old-for-mig")
def driver_too_old_for_mig(plan: Plan) -> Iterator[Finding]:
    """The cluster's driver is older than what a layout needs.

    ## Why
    Drivers learn models and profiles one by one: an H100 is divided from R525 on, `4g` and `3g` stand together on an
    A100 from R510 on. An older one does not list the profile, and mig-parted fails on every node of the pool.

    ## Instead
    Raise `gpuOperator.driver.version`, or use a layout without what the finding names.
    """
    driver = _version(plan.cluster.gpu_operator.driver_version)
    needed: dict[str, tuple[str, LayoutUse]] = {}
    for use in layout_uses(plan) if driver else ():
        for what, least in _requirements(use.layout) if use.pools else ():
            if driver < _version(least):
                needed.setdefault(f"{use.layout.gpu.id} {what}", (least, use))
    for what, (least, use) in needed.items():
        yield Finding(
            _driver_at(plan),
            f"driver {plan.cluster.gpu_operator.driver_version} is too old for {what}",
            label=f"needs {least}",
            related=use.use_labels or (Label(use.layout.at.key, f"{use.name} needs it"),),
            help=f"write a driver version from {least} on",
        )


def _requirements(layout: Layout) -> Iterator[tuple[str, str]]:
    """What the layout needs of a driver: the key of the catalog's table, and the version."""
    used = [{name for name, count in entry.instances.items() if count > 0} for entry in layout.entries]
    for what, least in layout.gpu.min_drivers.items():
        if what == "MIG" or any(one.issuperset(what.split(" + ")) for one in used):
            yield what, least


@check("GPU223", "driver-breaks-mig")
def driver_breaks_mig(plan: Plan) -> Iterator[Finding]:
    """The cluster's driver is known not to work with MIG, or not with how a pool uses it.

    ## Why
    Driver 575.57.08 does not support MIG. With 570.124.06, 570.133.20, 570.148.08 and 570.158.01, pods stay Pending on
    a node that has both partitioned and whole GPUs.

    ## Instead
    Use another driver: 570.172.08 and 580.65.06 have the fix. Or divide all GPUs of a node, or none.
    """
    driver = plan.cluster.gpu_operator.driver_version
    defects = [defect for defect in driver_defects() if defect.has(driver)] if driver else []
    for pool, mig in _mig_pools(plan) if defects else ():
        for defect in defects:
            if fault := _fault(defect.effect, pool):
                yield Finding(
                    _driver_at(plan),
                    f"driver {driver} {fault}",
                    label="known not to work",
                    related=(Label(mig.layout_at, f"pool `{pool.name}` needs it"),),
                    notes=(defect.source,),
                    help="write a later version, such as `580.95.05`",
                )
                return


def _fault(effect: DriverEffect, pool: Pool) -> str:
    """What the driver does to the pool; its modes (CDMM) are another check's business (GPU614)."""
    if effect is DriverEffect.NO_MIG:
        return "does not support MIG"
    if effect is DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS and pool.find_unit("gpu"):
        return "does not work with MIG beside whole GPUs"
    return ""


def _version(text: str) -> tuple[int, ...]:
    """A driver's version as numbers; the branch `R525` is its first release."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text))


def _driver_at(plan: Plan) -> Origin:
    return plan.cluster.gpu_operator.at / "driver" / "version"


def _mig_pools(plan: Plan) -> Iterator[tuple[Pool, Mig]]:
    for pool in plan.pools:
        if isinstance(pool.sharing, Mig):
            yield pool, pool.sharing


CHECKS: tuple[Check, ...] = (
    mig_not_supported,
    mig_model_incomplete,
    layout_of_another_gpu,
    layout_does_not_fit,
    *profiles.CHECKS,
    no_instances,
    gpus_not_covered,
    gpu_index_out_of_range,
    gpu_index_twice,
    entry_without_gpus,
    instances_without_mig,
    nothing_partitioned,
    single_needs_equal_instances,
    layout_leaves_room,
    driver_too_old_for_mig,
    driver_breaks_mig,
)
