"""GPU models beside those of the catalog: the platform's own `Gpu` documents, and names that nothing describes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Engines, Gpu, PciDevice, Product, Source
from gpuplan.compiler.catalog.architectures import architecture_of
from gpuplan.compiler.catalog.invariants import contradictions
from gpuplan.compiler.catalog.listings import SOURCE, Listing, read_listing
from gpuplan.compiler.planning.plan import OwnGpu
from gpuplan.compiler.policy import models


def resolve_gpu(at: Origin, policy: models.Gpu) -> OwnGpu:
    """Return the model. If its MIG profiles contradict themselves it has none, with the reasons as faults."""
    name, spec = policy.metadata.name, policy.spec
    listed = Listing(()) if spec.mig is None else read_listing(spec.mig.lgip, spec.mig.lgipp)
    gpu = _model(at, name, spec, listed)
    faults = (*listed.faults, *contradictions(gpu))
    if faults:
        gpu = _model(at, name, spec, Listing((), faults))
    return OwnGpu(at, name, spec, gpu, faults)


def _model(at: Origin, name: str, spec: models.GpuSpec, listed: Listing) -> Gpu:
    major, minor = map(int, spec.compute_capability.split("."))
    boards = [board.partition("/") for board in spec.pci]
    whole = max(listed.profiles, key=lambda profile: (profile.is_plain, profile.memory_slices), default=None)
    return Gpu(
        id=name,
        name=spec.products[0].replace("-", " "),
        architecture=architecture_of((major, minor)),
        compute_capability=(major, minor),
        memory_gib=ceil(spec.memory_mib / 1024),
        memory_mib=spec.memory_mib,
        supports_mig=spec.mig is not None,
        incomplete_reason=f"in its document {listed.faults[0]}" if listed.faults else "",
        engines=whole.engines if whole is not None else Engines(),
        profiles=listed.profiles,
        compute_slices=max((profile.compute_slices for profile in listed.profiles), default=0),
        memory_slices=max((profile.memory_slices for profile in listed.profiles), default=0),
        legacy_names={},
        products=tuple(map(Product, spec.products)),
        pci=tuple(
            PciDevice(f"0x{device.removeprefix('10de:').upper()}", name, subsystem.replace(":", "").upper())
            for device, _, subsystem in boards
        ),
        sources=(Source(SOURCE, "the platform's own document"),),
        read_on="",
        written_at=at,
    )


_JETSON: Final = regex(r"\b(jetson|orin|xavier|tegra|nano|tx[12]|agx)\b")
"""Words in names of modules with a GPU on the chip, on which the GPU Operator does not run."""


def unknown_gpu(name: str, at: Origin, near: Sequence[str]) -> Finding:
    """Return the finding of an unknown model. ``near`` are names of the same board in another spelling."""
    message = f"unknown GPU model `{name}`"
    if near:
        meant = listing(near, None, "or")
        return Finding(at, message, label=f"did you mean {meant}", help=f"write {meant}")
    if _JETSON.search(name.lower().replace("-", " ").replace("_", " ")):
        return Finding(
            at,
            message,
            label="the GPU Operator does not run on Jetson",
            notes=("the GPU Operator runs on nodes with boards, and not where the GPU is on the chip",),
            help="remove it: these nodes are not the GPU Operator's",
        )
    own = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "my-gpu"
    facts = 'memoryMiB: ..., computeCapability: "...", products: [...], pci: ["10de:..."]'
    document = f"{{apiVersion: gpuplan.dev/v1, kind: Gpu, metadata: {{name: {own}}}, spec: {{{facts}}}}}"
    called = "" if own == name else f", and say `gpu: {own}` here"
    return Finding(
        at,
        message,
        label="not in the catalog",
        notes=(
            "`gpuplan catalog` lists the models; a `Gpu` document describes another one",
            "a node that has it says `nvidia.com/gpu.memory`, `.compute.major`, `.compute.minor`, `.product` by labels",
            "`lspci -nn -d 10de:` prints its PCI id there",
        ),
        help=f"add `{document}` with its facts{called}",
    )
