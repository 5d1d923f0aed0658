"""The catalog: all GPU models, and one model's profiles and layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.catalog import Gpu, Profile
from gpuplan.planning.placement import Placed, maximal_layouts, place
from gpuplan.views.json_findings import json_text
from gpuplan.views.slices import strip
from gpuplan.views.text import count, indent, table
from gpuplan.views.theme import Style, Theme

UNKNOWN = "?"


def gpu_table(gpus: Sequence[Gpu]) -> str:
    """One line for each model."""
    return table(("GPU", "ARCHITECTURE", "MEMORY", "MIG", "NAME"), [gpu_row(gpu) for gpu in gpus], right=(2,))


def gpu_row(gpu: Gpu) -> tuple[str, str, str, str, str]:
    return gpu.id, gpu.architecture, f"{gpu.memory_gib} GiB", mig_summary(gpu), gpu.name


def mig_summary(gpu: Gpu) -> str:
    """What MIG offers on a model, in a few words."""
    if not gpu.supports_mig:
        return "no"
    if not gpu.is_complete:
        return "profiles not known"
    return " ".join(profile.name for profile in gpu.base_profiles)


def gpu_page(gpu: Gpu, theme: Theme) -> str:
    """Everything about one model that a policy may depend on."""
    major, minor = gpu.compute_capability
    facts = [f"{gpu.architecture}, {gpu.memory_gib} GiB, compute capability {major}.{minor}"]
    facts += [f"node label nvidia.com/gpu.product={product.label}" for product in gpu.products]
    parts = [f"{theme.paint(gpu.id, Style.STRONG)}  {gpu.name}\n" + "".join(f"  {fact}\n" for fact in facts)]
    if not gpu.supports_mig:
        parts.append("MIG: not on this model. It can be used whole, time-sliced, or shared through MPS.\n")
    elif not gpu.is_complete:
        parts.append(f"MIG: its layouts cannot be judged: {gpu.incomplete_reason}\n")
    else:
        parts += [_profiles_part(gpu, theme), _layouts_part(gpu, theme)]
    parts += [_remarks_part("Notes", gpu.notes, theme), _remarks_part("Not certain", gpu.uncertain, theme)]
    return "\n".join(part for part in parts if part)


def profile_rows(gpu: Gpu) -> list[tuple[str, ...]]:
    """Name, slices, memory, maximum and starts of every profile."""
    return [
        (
            profile.name,
            str(profile.compute_slices),
            str(profile.memory_slices),
            UNKNOWN if profile.memory_gib is None else f"{profile.memory_gib:g} GiB",
            str(profile.max_instances),
            " ".join(map(str, profile.starts)),
        )
        for profile in gpu.profiles
    ]


PROFILE_HEADINGS = ("PROFILE", "COMPUTE", "MEMORY SLICES", "USABLE", "AT MOST", "STARTS AT MEMORY SLICE")


def layout_rows(gpu: Gpu) -> list[tuple[str, str]]:
    """Every maximal layout, drawn on the axis of memory slices, with what it is made of."""
    return [(_drawing(gpu, layout), spell(layout)) for layout in maximal_layouts(gpu)]


def spell(layout: Mapping[str, int]) -> str:
    """A layout as policies write it: ``{3g.40gb: 1, 2g.20gb: 2}``."""
    return f"{{{', '.join(f'{name}: {number}' for name, number in layout.items())}}}"


def _profiles_part(gpu: Gpu, theme: Theme) -> str:
    heading = f"MIG: {count(gpu.compute_slices, 'compute slice')}, {count(gpu.memory_slices, 'memory slice')}"
    rows = table(PROFILE_HEADINGS, profile_rows(gpu), right=(1, 2, 3, 4))
    return f"{theme.paint(heading, Style.STRONG)}\n{indent(rows)}"


def _layouts_part(gpu: Gpu, theme: Theme) -> str:
    rows = layout_rows(gpu)
    heading = f"{count(len(rows), 'layout')} to which nothing can be added (profiles without + attributes)"
    legend = "each character is a memory slice: the compute slices of the instance there, or . where none can be\n"
    drawn = table(("SLICES", "INSTANCES"), rows)
    return f"{theme.paint(heading, Style.STRONG)}\n{indent(legend + drawn)}"


def _remarks_part(heading: str, remarks: Sequence[str], theme: Theme) -> str:
    lines = "".join(f"  - {remark}\n" for remark in remarks)
    return f"{theme.paint(heading, Style.STRONG)}\n{lines}" if lines else ""


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
        "mig": _mig(gpu) if gpu.supports_mig else None,
    }


def _mig(gpu: Gpu) -> dict[str, Any]:
    return {
        "complete": gpu.is_complete,
        "compute_slices": gpu.compute_slices,
        "memory_slices": gpu.memory_slices,
        "profiles": [_profile(profile) for profile in gpu.profiles],
    }


def _profile(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "compute_slices": profile.compute_slices,
        "memory_slices": profile.memory_slices,
        "memory_gib": profile.memory_gib,
        "max_instances": profile.max_instances,
        "starts": list(profile.starts),
    }
