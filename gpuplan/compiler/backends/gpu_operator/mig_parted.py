"""The mig-parted file: every MIG layout of the cluster, those that are retained included, for mig-manager.

mig-manager reads the file as a whole (`api/spec/v1/spec.go` of NVIDIA/mig-parted): one entry that it cannot parse fails
every node of the cluster. And a configuration counts as applied only when every GPU of the node matches an entry
(`pkg/mig/config`), so a GPU that a layout forgets would have it applied again and again. Layouts of several models may
keep one name: each has its own part of the entry, by a `device-filter` of PCI ids (`api/spec/v1/spec.go`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.catalog import Gpu, parse_profile
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.manifests.provenance import Routes, below, choosing, chosen, copied, summed
from gpuplan.compiler.planning.plan import Layout, LayoutEntry, Mig, Plan, RetainedLayout
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.planning.sources import config_name, gpus_of, ids_of, instances_of, profile_of

FILE_NAME = "config.yaml"
"""The key of the ConfigMap: the operator sets `CONFIG_FILE=/mig-parted-config/config.yaml` and nothing else."""

_DISABLED = {"devices": "all", "mig-enabled": False}


def data(plan: Plan) -> dict[str, str]:
    return {FILE_NAME: to_yaml(configuration(plan))}


def configuration(plan: Plan) -> dict[str, Any]:
    """Return the file. The operator labels nodes without a label `all-disabled`, so that entry is always there."""
    # The GPUs of the largest node that a layout is for, or was for when it was retained.
    kept = (retained.what.spec for retained in plan.retained if isinstance(retained.what, RetainedLayout))
    counts = {(spec.config_name, spec.gpu): spec.gpus_per_node or 0 for spec in kept}
    for pool in plan.parts:
        if isinstance(pool.sharing, Mig):
            key = pool.sharing.layout.config_name, pool.gpu.id
            counts[key] = max(counts.get(key, 0), pool.nodes.gpus_per_node)
    layouts: dict[str, list[dict[str, Any]]] = {}
    for name, several in _by_name(plan).items():
        made = [_entries(layout, counts.get((name, layout.gpu.id), 0)) for layout in several]
        if all(items == made[0] for items in made):
            layouts[name] = made[0]
        else:
            parts = zip(several, made, strict=True)
            layouts[name] = [{"device-filter": _filters(of.gpu), **item} for of, items in parts for item in items]
    for retained in plan.retained_layouts:
        layouts[retained.spec.config_name] = _entries(retained.layout, retained.spec.gpus_per_node or 0)
    configs = {ALL_DISABLED: [_DISABLED]} | {name: layouts[name] for name in sorted(layouts)}
    return {"version": "v1", "mig-configs": configs}


def _by_name(plan: Plan) -> Mapping[str, Sequence[Layout]]:
    return grouped((layout.config_name, layout) for layout in plan.mig_layouts)


def _filters(gpu: Gpu) -> list[str]:
    return sorted({device.filter for device in gpu.pci})


def _entries(layout: Layout, gpu_count: int) -> list[dict[str, Any]]:
    """Return the layout's entries, and one that leaves the rest of the node's GPUs whole."""
    entries: list[dict[str, Any]] = []
    for entry in layout.entries:
        devices = {"mig-devices": _mig_devices(layout.gpu, entry.instances)} if entry.mig_enabled else {}
        gpus = "all" if entry.gpus is None else list(entry.gpus)
        entries.append({"devices": gpus, "mig-enabled": entry.mig_enabled, **devices})
    covered = {index for entry in layout.entries for index in (range(gpu_count) if entry.gpus is None else entry.gpus)}
    if rest := [index for index in range(gpu_count) if index not in covered]:
        entries.append({"devices": rest, "mig-enabled": False})
    return entries or [_DISABLED]


def _mig_devices(gpu: Gpu, instances: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by profile, in the catalog's order.

    Zero counts and spellings such as `7c.7g.80gb` never compare equal to what the GPU reports.
    """
    order = {profile.name: index for index, profile in enumerate(gpu.profiles)}
    counts: dict[str, int] = {}
    for name, count in instances.items():
        if count > 0:
            short = _short_spelling(name)
            counts[short] = counts.get(short, 0) + count
    return {name: counts[name] for name in sorted(counts, key=lambda name: (order.get(name, len(order)), name))}


def _short_spelling(name: str) -> str:
    parsed = parse_profile(name)
    return parsed.gpu_instance if parsed is not None and parsed.is_long_spelling else name


# --- Where it comes from -----------------------------------------------------------------------------------------


def trace(plan: Plan) -> Routes:
    """Yield the places of what the file says, by routes in the ConfigMap."""
    configs = ("data", FILE_NAME, "mig-configs")
    yield ("data", FILE_NAME, "version"), ()
    written = configuration(plan)["mig-configs"]
    for name, layouts in _by_name(plan).items():
        route, has_filters = (*configs, name), any("device-filter" in item for item in written[name])
        for layout in layouts:
            items = [
                index
                for index, item in enumerate(written[name])
                if item.get("device-filter", _filters(layout.gpu)) == _filters(layout.gpu)
            ]
            kept = (item.what.at for item in plan.retained if _retains(item.what, layout))
            yield route, (*choosing(config_name(layout)), *chosen(*(at / "configName" for at in kept)))
            yield from below(route, _trace(layout, tuple(_sizes(plan, layout)), items[0] if items else 0))
            for index in items if has_filters else ():
                yield (*route, index, "device-filter"), ids_of(layout.gpu)
    for retained in plan.retained_layouts:
        route = (*configs, retained.spec.config_name)
        yield route, chosen(retained.at / "configName")
        yield from below(route, _trace(retained.layout, (retained.at / "gpusPerNode",)))


def _sizes(plan: Plan, layout: Layout) -> Iterator[Origin]:
    """Yield where the policy says how many GPUs the nodes of a layout have, and that it is for these."""
    for pool in plan.parts:
        if not isinstance(pool.sharing, Mig) or pool.gpu is not layout.gpu:
            continue
        if pool.sharing.layout.config_name == layout.config_name:
            yield pool.nodes.at / "gpusPerNode"
            if not layout.is_inline:
                yield pool.sharing.layout_at
    yield from (item.what.at / "gpusPerNode" for item in plan.retained if _retains(item.what, layout))


def _retains(entry: object, layout: Layout) -> bool:
    return isinstance(entry, RetainedLayout) and entry.spec.config_name == layout.config_name


def _trace(layout: Layout, sizes: tuple[Origin, ...], first: int = 0) -> Routes:
    for index, entry in enumerate(layout.entries, first):
        yield from below((index,), _trace_entry(layout.gpu, entry))
    if all(entry.gpus is not None for entry in layout.entries):
        yield (), chosen(*sizes)  # GPUs that no entry names are in one of their own, if there are any


def _trace_entry(gpu: Gpu, entry: LayoutEntry) -> Routes:
    if entry.at.path[-1] != "instances":
        yield ("mig-enabled",), copied(entry.at / "enabled")
        route = ("devices",)
        for index, at in enumerate(gpus_of(entry)):
            yield (route if entry.gpus is None else (*route, index)), copied(at)
    names = [name for name, count in entry.instances.items() if count > 0]
    for short in _mig_devices(gpu, entry.instances):
        places = [at for name in names if _short_spelling(name) == short for at in instances_of(entry, name)]
        yield ("mig-devices", short), copied(*places) if len(places) == 1 else summed(*places)
        if len(names) > 1:
            yield ("mig-devices", short), profile_of(gpu, short)
