"""Checks on MIG layouts as a whole (GPU200-249): their model, whether they fit, how they are published."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog import Gpu
from gpuplan.checks.layouts import (
    instances_at,
    layout_uses,
    mig_pools,
    nearest_that_fit,
    partitioned,
    positive,
    spell,
    written,
)
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.placement import Refusal, RefusedBy, fits, nearest_layouts
from gpuplan.planning.plan import GPU_RESOURCE, Layout, LayoutEntry, Plan
from gpuplan.policy.models import MigStrategy
from gpuplan.values import Value
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


class _Target(Value):
    """A GPU model that a layout or a pool wants to partition, and where it says so."""

    gpu: Gpu
    at: Origin
    related: tuple[Label, ...]


def _targets(plan: Plan) -> Iterator[_Target]:
    """Every layout's model, and every pool's that differs from its layout's."""
    for use in layout_uses(plan):
        if not use.layout.is_inline:
            yield _Target(use.layout.gpu, use.layout.at / "gpu", use.use_labels)
    for pool, mig in mig_pools(plan):
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
    for pool, mig in mig_pools(plan):
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
            at, names = instances_at(entry), written(use.layout.gpu, entry, refusal.profiles)
            yield Finding(
                at.key,
                f"{use.name} does not fit on {use.layout.gpu.id}",
                label=refusal.summary,
                related=tuple(Label(at / name, f"{entry.instances[name]}x `{name}`") for name in names),
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
    for pool, mig in mig_pools(plan):
        profiles_used = [unit.name for unit in pool.units if unit.name != "gpu"]
        leaves_whole = len(profiles_used) < len(pool.units)
        if mig.spec.strategy is MigStrategy.SINGLE and len(pool.units) > 1:
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
        if isinstance(entry.placed, Refusal) or use.is_retained:
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
