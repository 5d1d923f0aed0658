"""The catalog: all GPU models, and one model's profiles and layouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.compiler.planning.placement.placing import Instance, Placed, place
from gpuplan.terminal.fitting import Table, folded
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.text import Style, Theme, section

UNKNOWN = "?"


def gpu_table(gpus: Sequence[Gpu], theme: Theme) -> str:
    """One line for each model."""
    headings = ("GPU", "ARCHITECTURE", "MEMORY", "MIG", "NAME")
    return Table(headings, [gpu_row(gpu) for gpu in gpus], right=(2,)).shown(theme)


def gpu_row(gpu: Gpu) -> tuple[str, str, str, str, str]:
    return gpu.id, gpu.architecture, f"{gpu.memory_gib} GiB", mig_summary(gpu), gpu.name


def mig_summary(gpu: Gpu) -> str:
    """Return what MIG offers on a model, in a few words."""
    if not gpu.supports_mig:
        return "no"
    if not gpu.is_complete:
        return "profiles not known"
    return " ".join(profile.name for profile in gpu.base_profiles)


def gpu_page(gpu: Gpu, theme: Theme) -> str:
    """Everything about one model that a policy may depend on."""
    major, minor = gpu.compute_capability
    facts = [f"{gpu.architecture}, {gpu.memory_gib} GiB, compute capability {major}.{minor}"]
    facts += [f"node label {label}" for label in product_labels(gpu)]
    parts = [f"{theme.paint(gpu.id, Style.STRONG)}  {gpu.name}\n" + "".join(f"  {fact}\n" for fact in facts)]
    if not gpu.supports_mig:
        parts.append("MIG: not on this model. It can be used whole, time-sliced, or shared through MPS.\n")
    elif not gpu.is_complete:
        parts.append(f"MIG: its layouts cannot be judged: {gpu.incomplete_reason}\n")
    else:
        heading = f"MIG: {count(gpu.compute_slices, 'compute slice')}, {count(gpu.memory_slices, 'memory slice')}"
        found = Table([word.upper() for word in PROFILE_HEADINGS], profile_rows(gpu), right=range(1, 7))
        rows = layout_rows(gpu)
        title = f"{count(len(rows), 'layout')} to which nothing can be added (profiles without + attributes)"
        legend = "each character is a memory slice: the compute slices of the instance there, or . where none can be\n"
        table = Table(("SLICES", "INSTANCES"), rows).shown(theme.indented())
        parts += [
            section(heading, found.shown(theme.indented()), theme),
            section(title, legend + _painted(table, theme), theme),
        ]
    remarks = {"Notes": gpu.notes, "Inferred, not read": derived_facts(gpu), "Not certain": gpu.uncertain}
    parts += [section(head, "".join(f"- {text}\n" for text in found), theme) for head, found in remarks.items()]
    return folded("\n".join(part for part in parts if part), theme)


def product_labels(gpu: Gpu, quote: str = "") -> list[str]:
    """The labels that nodes with the model carry, and what is not as certain of one as of the others."""
    return [
        f"{quote}nvidia.com/gpu.product={product.label}{quote}{f' ({remark})' if remark else ''}"
        for product in gpu.products
        for remark in [f"derived from {product.derived}" if product.derived else product.note]
    ]


PROFILE_HEADINGS = ("Profile", "Compute", "Memory slices", "Usable", "SM", "CE", "At most", "Starts at")


def profile_rows(gpu: Gpu) -> list[tuple[str, ...]]:
    """Name, slices, usable memory, multiprocessors, copy engines, maximum and starts of every profile."""
    return [
        (
            profile.name,
            str(profile.compute_slices),
            str(profile.memory_slices),
            _known(profile.memory_gib, " GiB"),
            _known(profile.sm),
            _known(profile.ce),
            str(profile.max_instances),
            " ".join(map(str, profile.starts)),
        )
        for profile in gpu.profiles
    ]


def _known(number: float | None, unit: str = "") -> str:
    return UNKNOWN if number is None else f"{number:g}{unit}"


def derived_facts(gpu: Gpu) -> list[str]:
    """Return the facts about profiles that were inferred rather than read: a field, and the profiles."""
    fields = dict.fromkeys(field for profile in gpu.profiles for field in profile.derived)
    found = {field: [profile.name for profile in gpu.profiles if field in profile.derived] for field in fields}
    return [
        f"{field.replace('_', ' ')} of {listing(names, None) if len(names) < len(gpu.profiles) else 'every profile'}"
        for field, names in found.items()
    ]


def layout_rows(gpu: Gpu) -> list[tuple[str, str]]:
    """Every maximal layout, drawn on the axis of memory slices, with what it is made of."""
    return [(_drawing(gpu, layout), spell(layout)) for layout in maximal_layouts(gpu)]


def spell(layout: Mapping[str, int]) -> str:
    """A layout as policies write it: ``{3g.40gb: 1, 2g.20gb: 2}``."""
    return f"{{{', '.join(f'{name}: {number}' for name, number in layout.items())}}}"


_PIECE: Final = regex(r"(?<=\|)(\d)\1*(?=\|)")
SIZE_STYLES: Final[Mapping[str, Style]] = {
    "1": Style.ONE_SLICE,
    "2": Style.TWO_SLICES,
    "3": Style.THREE_SLICES,
    "4": Style.FOUR_SLICES,
    "7": Style.SEVEN_SLICES,
}


def _painted(table: str, theme: Theme) -> str:
    """Drawings of layouts in which each instance has the colour of its compute slices."""
    return _PIECE.sub(lambda match: theme.paint(match[0], SIZE_STYLES.get(match[1], Style.STRONG)), table)


def _drawing(gpu: Gpu, layout: Mapping[str, int]) -> str:
    placed = place(gpu, layout)
    return strip(gpu, placed.instances) if isinstance(placed, Placed) else ""


# --- JSON --------------------------------------------------------------------------------------------------------


def gpus_json(gpus: Sequence[Gpu]) -> str:
    return json_text({"format_version": "1.0", "gpus": [_gpu(gpu) for gpu in gpus]})


def _gpu(gpu: Gpu) -> dict[str, Any]:
    major, minor = gpu.compute_capability
    return {
        "id": gpu.id,
        "name": gpu.name,
        "architecture": gpu.architecture,
        "compute_capability": f"{major}.{minor}",
        "memory_gib": gpu.memory_gib,
        "products": [product.label for product in gpu.products],
        "mig": {
            "complete": gpu.is_complete,
            "compute_slices": gpu.compute_slices,
            "memory_slices": gpu.memory_slices,
            "profiles": [{name: getattr(profile, name) for name in _OF_PROFILES} for profile in gpu.profiles],
        }
        if gpu.supports_mig
        else None,
    }


_OF_PROFILES: Final = ("name", "compute_slices", "memory_slices", "memory_gib", "max_instances", "starts")


# --- Slices ------------------------------------------------------------------------------------------------------

_NARROWEST = 3


def boxes(gpu: Gpu, instances: Iterable[Instance]) -> str:
    """One box for each instance, as wide as the slices it takes: ``|3g.40gb        |2g.20gb|2g.20gb|``.

    A slice that nothing takes is a box with a dot in it.
    """
    placed = tuple(instances)
    width = max((ceil((len(item.profile.name) + 1) / item.placement.size) for item in placed), default=0)
    width = max(width, _NARROWEST)
    drawn = (f"|{name:<{size * width - 1}}" for name, size in _segments(gpu, placed, free="."))
    return f"{''.join(drawn)}|"


def strip(gpu: Gpu, instances: Iterable[Instance]) -> str:
    """One character for each slice: the compute slices of the instance that takes it, as in ``|3333|22|22|``."""
    placed = tuple(instances)
    drawn = (f"|{name.partition('g')[0][-1] * size}" for name, size in _segments(gpu, placed, free="."))
    return f"{''.join(drawn)}|"


def _segments(gpu: Gpu, instances: tuple[Instance, ...], free: str) -> Iterator[tuple[str, int]]:
    """Yield the pieces of the axis, from slice 0 on: names with their sizes, and free slices one by one."""
    position = 0
    for instance in sorted(instances, key=lambda instance: instance.placement.start):
        yield from ((free, 1) for _ in range(position, instance.placement.start))
        yield instance.profile.name, instance.placement.size
        position = instance.placement.end
    yield from ((free, 1) for _ in range(position, gpu.memory_slices))
