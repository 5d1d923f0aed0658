"""Resolve the platform's own GPU models: what a `Gpu` document says becomes a model as the catalog has them."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.catalog import Engines, Gpu, PciDevice, Product, Source
from gpuplan.compiler.catalog.architectures import architecture_of
from gpuplan.compiler.catalog.invariants import contradictions
from gpuplan.compiler.catalog.listings import SOURCE, Listing, read_listing
from gpuplan.compiler.planning.plan import OwnGpu
from gpuplan.compiler.policy import models


def resolve_gpu(at: Origin, policy: models.Gpu) -> OwnGpu:
    """The model. One whose MIG profiles cannot be so has none, and says why: what partitions it is refused."""
    name, spec = policy.metadata.name, policy.spec
    listed = Listing(()) if spec.mig is None else read_listing(spec.mig.lgip, spec.mig.lgipp)
    gpu = _model(at, name, spec, listed)
    faults = (*listed.faults, *contradictions(gpu))
    if faults:
        gpu = _model(at, name, spec, Listing((), faults))
    return OwnGpu(at, name, spec, gpu, faults)


def _model(at: Origin, name: str, spec: models.GpuSpec, listed: Listing) -> Gpu:
    major, minor = map(int, spec.compute_capability.split("."))
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
        pci=tuple(_devices(name, spec)),
        sources=(Source(SOURCE, "the platform's own document"),),
        read_on="",
        written_at=at,
    )


def _devices(name: str, spec: models.GpuSpec) -> Iterator[PciDevice]:
    for written in spec.pci:
        device, _, subsystem = written.partition("/")
        yield PciDevice(f"0x{device.removeprefix('10de:').upper()}", name, subsystem.replace(":", "").upper())
