"""Checks on which GPUs of a node a MIG layout is for (GPU213-218)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.checks.layouts import LayoutUse, layout_uses
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Origin, Severity
from gpuplan.planning.plan import Layout, LayoutEntry, Plan, Pool

_MOST_GPUS = 32
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
                f"{use.name} does not say what {_gpus(missing)} {'become' if missing[1:] else 'becomes'}",
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
    """The GPUs that no entry names; none where one is for all, or for none yet, which is reported for itself."""
    if not all(entry.gpus for entry in layout.entries):
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
        for entry in use.layout.entries:
            yield from _beyond(use, entry)


def _beyond(use: LayoutUse, entry: LayoutEntry) -> Iterator[Finding]:
    """One finding for all indexes of an entry that the same pools lack: the more pools, the larger the index."""
    lacking: dict[int, list[int]] = {}
    for index in sorted(set(entry.gpus or ())):
        lacking.setdefault(len(_short(use, index)), []).append(index)
    for how_many, indexes in lacking.items():
        if how_many:
            short = _short(use, indexes[0])
            yield Finding(
                entry.at / "gpus" / (entry.gpus or ()).index(indexes[0]),
                f"pool `{short[0].name}` has no {_gpus(indexes)}",
                label=f"its nodes have {short[0].nodes.gpus_per_node}, counted from 0",
                related=tuple(Label(pool.nodes.at / "gpusPerNode", f"pool `{pool.name}`") for pool in short),
                help=f"remove {_gpus(indexes)}, or correct `gpusPerNode`",
                severity=None if how_many == len(use.pools) else Severity.WARNING,
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
        if everything and entry is not everything and entry.gpus != ():
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
        # Instances where MIG is off, and no entry at all on a node that has GPUs, are reported for themselves.
        is_meant = not any(entry.instances for entry in use.layout.entries) and (use.layout.entries or not use.pools)
        if is_meant and not any(entry.mig_enabled for entry in use.layout.entries):
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
