"""Resolve MIG layouts: what each GPU of a node becomes, and the name under which mig-manager finds it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.placing import place
from gpuplan.compiler.planning.plan import Layout, LayoutEntry
from gpuplan.compiler.policy.models import Devices


def make_layout(
    at: Origin,
    name: str,
    gpu: Gpu,
    instances: Mapping[str, int] | None,
    devices: Sequence[Devices] | None,
    *,
    config_name: str | None = None,
    is_inline: bool = False,
) -> Layout:
    """Return a layout from either spelling. ``at`` is the mapping that holds `instances` or `devices`.

    ``config_name`` is the name that its entry keeps.
    """
    if devices is None:
        entries: tuple[LayoutEntry, ...] = (_entry(at / "instances", gpu, None, instances or {}, is_enabled=True),)
    else:
        entries = tuple(
            _entry(
                at / "devices" / index,
                gpu,
                None if device.gpus == "all" else tuple(device.gpus),
                device.instances or {},
                is_enabled=device.enabled,
            )
            for index, device in enumerate(devices)
        )
    own = f"{name}-{content_hash(entries)}"
    return Layout(at, name, gpu, entries, config_name or own, is_inline, keeps_name=config_name is not None)


def is_divided_alike(layout: Layout, other: Layout) -> bool:
    """Whether two layouts make the same of GPUs, whatever their entries are called."""
    return content_hash(layout.entries) == content_hash(other.entries)


def entry_of(layout: Layout, index: int) -> LayoutEntry | None:
    """Return the entry for a GPU index: the last that names it, as in mig-parted."""
    return next((entry for entry in reversed(layout.entries) if entry.gpus is None or index in entry.gpus), None)


def content_hash(entries: Iterable[LayoutEntry]) -> str:
    """Return eight hex digits that change if and only if the division does, whatever the order of entries."""
    content = [
        [entry.gpus and sorted(entry.gpus), entry.mig_enabled, sorted(entry.instances.items())] for entry in entries
    ]
    content.sort(key=str)
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()[:8]


def _entry(
    at: Origin, gpu: Gpu, gpus: tuple[int, ...] | None, instances: Mapping[str, int], *, is_enabled: bool
) -> LayoutEntry:
    wanted: Counter[str] = Counter()
    for name, count in instances.items():
        wanted[gpu.current_name(name)] += max(count, 0)
    wanted = +wanted
    is_judged = is_enabled and gpu.supports_mig and gpu.is_complete and wanted
    return LayoutEntry(at, gpus, is_enabled, dict(instances), place(gpu, wanted) if is_judged else None)
