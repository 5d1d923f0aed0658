"""Checks on MIG layouts (GPU200-203, 212-220, 222-223, 225-226): whether they fit, for which GPUs, by which driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.catalog.operators import DriverDefect, DriverEffect, driver_defects
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import gpu_numbers, in_flow, repeats
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.gpu_operator import stated_driver
from gpuplan.compiler.planning.layouts import is_divided_alike
from gpuplan.compiler.planning.placement.layouts import nearest_layouts
from gpuplan.compiler.planning.placement.placing import Refusal, RefusedBy, fits
from gpuplan.compiler.planning.plan import Layout, LayoutEntry, Mig, Plan, Pool, with_places
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import MigStrategy

# --- Layouts as checks see them ----------------------------------------------------------------------------------


class LayoutUse(Value):
    """A layout and the pools that use it. There are none if it is only defined or retained."""

    layout: Layout
    pools: tuple[Pool, ...]
    is_retained: bool = False

    @property
    def name(self) -> str:
        """The name of the layout in messages."""
        kind = "retained layout" if self.is_retained else "layout of pool" if self.layout.is_inline else "layout"
        return f"{kind} `{self.layout.name}`"

    @property
    def use_labels(self) -> tuple[Label, ...]:
        """Where pools name it; a pool that writes its own layout needs no such label."""
        used = [(pool.name, pool.sharing) for pool in self.pools if not self.layout.is_inline]
        return tuple(Label(mig.layout_at, f"pool `{name}` uses it") for name, mig in used if isinstance(mig, Mig))


def layout_uses(plan: Plan) -> Iterator[LayoutUse]:
    """Yield every layout once: the named ones, used or not, then those written in pools and those retained."""
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
    """Yield the pools whose GPUs are divided, with how."""
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            yield pool, pool.sharing


def partitioned(plan: Plan) -> Iterator[tuple[LayoutUse, LayoutEntry]]:
    """Yield the entries that switch MIG on, of layouts for models that the catalog can judge."""
    for use in layout_uses(plan):
        if use.layout.gpu.profiles:
            for entry in use.layout.entries:
                if entry.mig_enabled:
                    yield use, entry


def refused(plan: Plan, rule: RefusedBy, message: str, part: str) -> Iterator[Finding]:
    """Find layouts whose instances a rule keeps from being placed together. ``message`` and ``part`` are templates."""
    for use, entry in partitioned(plan):
        refusal, gpu = entry.placed, use.layout.gpu
        if isinstance(refusal, Refusal) and refusal.rule is rule:
            at = instances_at(entry)
            names = [name for name in positive(entry) if gpu.current_name(name) in refusal.profiles]
            yield Finding(
                at.key,
                message.format(layout=use.name, gpu=gpu.id),
                label=refusal.summary,
                related=tuple(Label(at / name, part.format(count=entry.instances[name], name=name)) for name in names),
                notes=refusal.facts,
                help=nearest_that_fit(gpu, entry),
            )


def instances_at(entry: LayoutEntry) -> Origin:
    """Return where profiles are mapped to counts. A layout without `devices` is that mapping itself."""
    return entry.at if entry.at.path[-1] == "instances" else entry.at / "instances"


def positive(entry: LayoutEntry) -> dict[str, int]:
    """Return the instances of which there is to be at least one."""
    return {name: count for name, count in entry.instances.items() if count > 0}


def nearest_that_fit(gpu: Gpu, entry: LayoutEntry) -> str:
    """Return what to type instead of instances that do not fit together."""
    return (
        f"nearest that fit: {' or '.join(f'`{in_flow(layout)}`' for layout in nearest_layouts(gpu, positive(entry)))}"
    )


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
    for gpu, at, related in _targets(plan):
        if not gpu.supports_mig:
            yield Finding(
                at,
                f"{gpu.id} has no MIG",
                label="cannot be partitioned",
                related=related,
                notes=() if gpu.written_at is None else ("its `Gpu` document says nothing of MIG",),
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
    for gpu, at, related in _targets(plan):
        if gpu.supports_mig and not gpu.is_complete and gpu.written_at is None:  # GPU224 says it of a document
            yield Finding(
                at,
                f"the catalog cannot judge MIG layouts of {gpu.id}",
                label="profiles not known well enough",
                related=related,
                notes=(gpu.incomplete_reason,),
                help="share by `timeSlicing` or `mps`, or complete the catalog from `nvidia-smi mig -lgip`",
            )


def _targets(plan: Plan) -> Iterator[tuple[Gpu, Origin, tuple[Label, ...]]]:
    """Yield every model to be partitioned, with where that is said: a layout's, and a pool's that differs from it."""
    for use in layout_uses(plan):
        if not use.layout.is_inline:
            yield use.layout.gpu, use.layout.at / "gpu", use.use_labels
    for pool, mig in mig_pools(plan):
        if mig.layout.is_inline or mig.layout.gpu is not pool.gpu:
            yield pool.gpu, mig.at.key, (Label(pool.at / "gpu", "the pool's GPU"),)


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
        made_for = mig.layout.gpu
        if made_for is not pool.gpu and pool.gpu.profiles and made_for.supports_mig:
            others = [other.name for other in plan.layouts if other.gpu is pool.gpu]
            nearest = [
                f"`{in_flow(near)}`"
                for entry in mig.layout.entries
                for near in (nearest_layouts(pool.gpu, positive(entry), 1) if not others else ())
            ]
            such = f", such as {nearest[0]}" if nearest else ""
            yield Finding(
                mig.layout_at,
                f"layout `{mig.layout.name}` is for {made_for.id}, pool `{pool.name}` has {pool.gpu.id}",
                label=f"made for {made_for.id}",
                related=(Label(pool.at / "gpu", "the pool's GPU"), Label(mig.layout.at / "gpu", "the layout's GPU")),
                help=f"layouts for {pool.gpu.id}: {listing(others)}"
                if others
                else f"add a layout for {pool.gpu.id}{such}",
            )


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
    yield from refused(plan, RefusedBy.NO_ARRANGEMENT, "{layout} does not fit on {gpu}", "{count}x `{name}`")


@check("GPU212", "no-instances")
def no_instances(plan: Plan) -> Iterator[Finding]:
    """A layout switches MIG on and makes no instances.

    ## Why
    A GPU in MIG mode without instances runs nothing: it is neither a whole GPU nor divided. The node publishes no
    resource for it.

    ## Instead
    Name the instances, or leave the GPUs whole: `enabled: false` for some of them, `exclusive: {}` for a whole pool.
    """
    for use, entry in _entries(plan):
        if entry.mig_enabled and not entry.instances and use.layout.gpu.supports_mig:
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
        asked = positive(entry)
        more = next((name for name in asked if fits(use.layout.gpu, {**asked, name: asked[name] + 1})), None)
        if more:
            yield Finding(
                instances_at(entry) / more,
                f"one more `{more}` fits beside {use.name}",
                label="one more fits",
                help=f"write `{more}: {asked[more] + 1}`",
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


# --- Which GPUs of a node ----------------------------------------------------------------------------------------


MOST_GPUS = 32
"""No node has more (GPU160), so no index beyond is asked for."""


@check("GPU213", "gpus-not-covered")
def gpus_not_covered(plan: Plan) -> Iterator[Finding]:
    """A layout says nothing about some GPUs of the nodes that use it.

    ## Why
    mig-parted leaves such GPUs as they are, but then wants every GPU of the node to match the configuration: it never
    reports success, and divides the others again each time that it starts.

    ## Instead
    Add an entry for the rest: `{gpus: [4, 5, 6, 7], enabled: false}` leaves them whole.
    """
    for use in layout_uses(plan):
        largest = max(use.pools, key=lambda pool: pool.nodes.gpus_per_node, default=None)
        missing = _uncovered(use.layout, largest.nodes.gpus_per_node) if largest else []
        if missing:
            yield Finding(
                (use.layout.at / "devices").key,
                f"{use.name} does not say what {gpu_numbers(missing)} {'become' if missing[1:] else 'becomes'}",
                label=f"nothing about {gpu_numbers(missing)}",
                related=tuple(
                    Label(pool.nodes.at / "gpusPerNode", f"nodes of pool `{pool.name}` have more")
                    for pool in use.pools
                    if pool.nodes.gpus_per_node > missing[0]
                ),
                notes=("mig-parted reports success only when it knows every GPU of the node",),
                help=f"add `{{gpus: {missing}, enabled: false}}` to leave them whole, or give them instances",
            )


def _uncovered(layout: Layout, gpus_per_node: int) -> list[int]:
    """Return the GPUs that no entry names. There are none if an entry is for all, or for no GPU, which is reported."""
    if not all(entry.gpus for entry in layout.entries):
        return []
    covered = {index for _, index in _named(layout)}
    return [index for index in range(min(gpus_per_node, MOST_GPUS)) if index not in covered]


@check("GPU214", "gpu-index-out-of-range")
def gpu_index_out_of_range(plan: Plan) -> Iterator[Finding]:
    """A layout names a GPU that nodes which use it do not have.

    ## Why
    Indexes count from 0, as NVML does: a node with 8 GPUs has 0 to 7. mig-parted ignores an index beyond without a
    word, and the instances that the entry asks for exist nowhere.

    ## Instead
    Remove the index, or correct `gpusPerNode`. A layout for nodes of different sizes can use `gpus: all`.
    """
    for use, entry in _entries(plan):
        # One finding for all indexes that the same pools lack: the more pools, the larger the index.
        lacking = grouped((len(_short(use, index)), index) for index in sorted(set(entry.gpus or ())))
        for indexes in (indexes for how_many, indexes in lacking.items() if how_many):
            short = _short(use, indexes[0])
            yield Finding(
                entry.at / "gpus" / (entry.gpus or ()).index(indexes[0]),
                f"pool `{short[0].name}` has no {gpu_numbers(indexes)}",
                label=f"its nodes have {short[0].nodes.gpus_per_node}, counted from 0",
                related=tuple(Label(pool.nodes.at / "gpusPerNode", f"pool `{pool.name}`") for pool in short),
                help=f"remove {gpu_numbers(indexes)}, or correct `gpusPerNode`",
                severity=None if len(short) == len(use.pools) else Severity.WARNING,
            )


def _short(use: LayoutUse, index: int) -> list[Pool]:
    return [pool for pool in use.pools if index >= pool.nodes.gpus_per_node]


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
        for (at, index), (before, _) in repeats(_named(use.layout), itemgetter(1)):
            yield Finding(
                at,
                f"GPU {index} is named twice",
                label="again",
                related=(Label(before, "the first time"),),
                help=f"name GPU {index} in one entry",
            )
        everything = next((entry for entry in use.layout.entries if entry.gpus is None), None)
        for entry in use.layout.entries if everything else ():
            if everything and entry is not everything and entry.gpus != ():
                yield Finding(
                    entry.at / "gpus",
                    "this entry stands beside one for all GPUs",
                    label="named by `all` as well",
                    related=(Label(everything.at / "gpus", "every GPU"),),
                    help="replace `all` by the indexes that are left, or remove this entry",
                )


@check("GPU225", "entry-name-beside-layout")
def entry_name_beside_layout(plan: Plan) -> Iterator[Finding]:
    """A pool uses a MigLayout and names the entry of the MIG manager's file itself.

    ## Why
    A MigLayout is one entry of the file, whichever pools use it, so its name is written with it. In a pool it would
    rename nothing.

    ## Instead
    Write `configName` in the MigLayout; or write the pool's `instances` in place of `layout`.
    """
    for pool, mig in mig_pools(plan):
        if mig.spec.config_name is not None and mig.spec.layout is not None:
            yield Finding(
                mig.at / "configName",
                f"the entry of layout `{mig.spec.layout}` is named in the layout, not in pool `{pool.name}`",
                label="renames nothing",
                related=(Label(mig.at / "layout", "the pool uses it"),),
                help=f"write `configName: {mig.spec.config_name}` in MigLayout `{mig.spec.layout}`",
            )


@check("GPU226", "entry-of-two-layouts", ignorable=False)
def entry_of_two_layouts(plan: Plan) -> Iterator[Finding]:
    """Two layouts have one entry in the MIG manager's file, or one has the entry that switches MIG off.

    ## Why
    Nodes name an entry by its name, and a name has one meaning in the file. Of two layouts only one would be written,
    and nodes of the other would be divided as that one says. `all-disabled` is there anyway: the GPU Operator labels
    nodes so that have no label, and they stay whole. Layouts of
    two models may keep one name, as `all-balanced` of NVIDIA's own file stands for another division on each model: a
    filter of PCI ids tells their boards apart.

    ## Instead
    Keep the name (`configName`) for one of the layouts. Without it the other one has an entry of its own, and its nodes
    get another label; the MIG manager compares their GPUs with that entry, finds them right and touches nothing.
    """
    known: dict[str, list[LayoutUse]] = {}
    uses = (use for use in layout_uses(plan) if not use.is_retained)
    for use in sorted(uses, key=lambda use: use.layout.keeps_name):
        layout = use.layout
        if layout.keeps_name and layout.config_name == ALL_DISABLED:
            yield Finding(
                layout.at / "configName",
                f"`{ALL_DISABLED}` switches MIG off on every node that has no other label",
                label="means something else to the GPU Operator",
                help="leave `configName` out",
            )
        earlier = known.setdefault(layout.config_name, [])
        other = next((found for found in earlier if _meet(found.layout, layout)), None)
        earlier.append(use)
        if layout.keeps_name and other is not None:
            models = layout.gpu.id, other.layout.gpu.id
            yield Finding(
                layout.at / "configName",
                f"`{layout.config_name}` names the entry of {other.name}, which divides GPUs otherwise",
                label="one name for two divisions",
                related=(Label(other.layout.at, f"{other.name} has the name, too"),),
                notes=(f"no PCI id tells boards of {models[0]} and {models[1]} apart",)
                if models[0] != models[1]
                else (),
                help="leave `configName` out here: the nodes get another label, and their GPUs stay as they are",
            )


def _meet(layout: Layout, other: Layout) -> bool:
    """Whether one entry cannot stand for both: neither the division is the same, nor are the boards told apart."""
    if is_divided_alike(layout, other):
        return False
    boards, others = ({device.filter for device in each.gpu.pci} for each in (layout, other))
    is_told_apart = boards and others and boards.isdisjoint(others)
    return not is_told_apart or not (layout.keeps_name and other.keeps_name)


@check("GPU216", "entry-without-gpus")
def entry_withoutgpu_numbers(plan: Plan) -> Iterator[Finding]:
    """A layout has an entry for no GPU.

    ## Why
    mig-parted applies an entry with an empty list to nothing. What it asks for exists nowhere.

    ## Instead
    Name the GPUs, or remove the entry.
    """
    for use, entry in _entries(plan):
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
    for use, entry in _entries(plan):
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
        # Instances where MIG is off, and no entry at all on a node that has GPUs, are reported for themselves.
        entries = use.layout.entries
        if (entries or not use.pools) and not any(entry.instances or entry.mig_enabled for entry in entries):
            yield Finding(
                (use.layout.at / "devices").key,
                f"{use.name} partitions no GPU",
                label="MIG is off everywhere",
                related=use.use_labels,
                help="write `exclusive: {}` in the pool instead",
            )


def _entries(plan: Plan) -> Iterator[tuple[LayoutUse, LayoutEntry]]:
    return ((use, entry) for use in layout_uses(plan) for entry in use.layout.entries)


def _named(layout: Layout) -> Iterator[tuple[Origin, int]]:
    """Yield every index that is written, with its place."""
    return (found for entry in layout.entries for found in with_places(entry.at / "gpus", entry.gpus or ()))


# --- Drivers -----------------------------------------------------------------------------------------------------


@check("GPU222", "driver-too-old-for-mig")
def driver_too_old_for_mig(plan: Plan) -> Iterator[Finding]:
    """The driver is older than what a layout needs, or the board.

    ## Why
    Drivers learn models and profiles one by one: an H100 is divided from R525 on, `4g` and `3g` stand together on an
    A100 from R510 on. An older one does not list the profile, and mig-parted fails on every node of the pool. A driver
    that does not know the board, such as R550 a B200, fails on every node too, and the node publishes no GPUs.

    ## Instead
    Raise the driver's version, of the cluster or of the pool, or use a layout without what the finding names.
    """
    for found in unmet_by_pools(plan, partial(stated_driver, plan)):
        yield Finding(
            found.at,
            f"driver {found.driver} is too old for {found.needing}",
            label=f"needs {found.least}",
            related=found.labels,
            help=f"write a driver version from {found.least} on",
        )


class Unmet(NamedTuple):
    """Something that the driver of a pool is too old for, with the oldest driver that is not."""

    at: Origin
    driver: str
    needing: str
    least: str
    labels: tuple[Label, ...]
    pool: Pool


def unmet_by_pools(plan: Plan, driver_of: Callable[[Pool], tuple[str | None, Origin]]) -> Iterator[Unmet]:
    """Yield what the drivers of pools are too old for, once for each place of a driver."""
    needed: dict[tuple[str, Origin], Unmet] = {}
    for use in layout_uses(plan):
        used = [frozenset(positive(entry)) for entry in use.layout.entries]
        for pool in use.pools:
            driver, at = driver_of(pool)
            for what, least in unmet_requirements(driver, use.layout.gpu, used) if driver else ():
                labels = use.use_labels or (Label(use.layout.at.key, f"{use.name} needs it"),)
                name = f"{use.layout.gpu.id} {what}"
                needed.setdefault((name, at), Unmet(at, driver or "", name, least, labels, pool))
    divided, of_host = {found.pool.name for found in needed.values()}, not plan.cluster.gpu_operator.spec.driver.enabled
    for pool in plan.pools:
        driver, at = driver_of(pool)
        if driver and pool.name not in divided and (least := missing_driver(driver, pool.gpu, of_host=of_host)):
            labels = (Label(pool.at / "gpu", f"boards of pool `{pool.name}`"),)
            needed.setdefault((pool.gpu.id, at), Unmet(at, driver, pool.gpu.id, least, labels, pool))
    yield from needed.values()


def missing_driver(driver: str, gpu: Gpu, *, of_host: bool = False) -> str:
    """Return the oldest driver that works with the board, in the operator's container or on hosts, if it is newer."""
    least = ("" if of_host else gpu.min_container_driver) or gpu.min_driver
    return least if least and _version(driver) < _version(least) else ""


def unmet_requirements(driver: str, gpu: Gpu, used: Iterable[frozenset[str]]) -> Iterator[tuple[str, str]]:
    """Yield what a driver is too old for, of profiles used together: the key of the catalog's table, and a version."""
    together = list(used)
    for what, least in gpu.min_drivers.items():
        is_used = what == "MIG" or any(one >= {*what.split(" + ")} for one in together)
        if is_used and _version(driver) < _version(least):
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
    reported: set[Origin] = set()
    for pool, mig in mig_pools(plan):
        driver, at = stated_driver(plan, pool)
        defects = [defect for defect in driver_defects() if defect.has(driver)] if driver else []
        for defect in defects if at not in reported else ():
            if fault := _fault(defect.effect, pool):
                reported.add(at)
                yield Finding(
                    at,
                    f"driver {driver} {fault}",
                    label="known not to work",
                    related=(Label(mig.layout_at, f"pool `{pool.name}` needs it"),),
                    notes=(defect.source,),
                    help="write a later version, such as `580.95.05`",
                )
                break


def defect_without_mig(driver: str) -> DriverDefect | None:
    """Return why a driver does not support MIG, or None."""
    no_mig = (defect for defect in driver_defects() if defect.effect is DriverEffect.NO_MIG)
    return next((defect for defect in no_mig if defect.has(driver)), None)


def _fault(effect: DriverEffect, pool: Pool) -> str:
    """Return what the driver does to the pool. Its modes (CDMM) are for another check (GPU614)."""
    if effect is DriverEffect.NO_MIG:
        return "does not support MIG"
    if effect is DriverEffect.NO_MIG_BESIDE_WHOLE_GPUS and pool.find_unit("gpu"):
        return "does not work with MIG beside whole GPUs"
    return ""


def _version(text: str) -> tuple[int, ...]:
    """Return a driver's version as numbers. The branch `R525` is its first release."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text))
