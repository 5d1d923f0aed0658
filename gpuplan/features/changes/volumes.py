"""The fate of the volumes of workloads that change."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests.quantities import parse_quantity
from gpuplan.compiler.planning.plan import Workload
from gpuplan.compiler.planning.volumes import Volume, volumes_of
from gpuplan.features.changes.wording import names


def fates(old: Workload, new: Workload) -> list[str]:
    """Return the effects on volumes in words: refused changes, growth and removal."""
    refused, grown = [], []
    for one, other in _kept(old, new):
        claim = f"`{other.claim(new)}`"
        if found := joined([*_locked(one, other)], "or"):
            refused.append(
                f"the API server refuses {found} of volume {claim}, and its folder is not synced: it takes its claim "
                "to be deleted first, and all that is in it goes"
            )
        elif _size(one) != _size(other):
            grown.append(f"volume {claim} grows where its StorageClass has {_EXPANSION}, or its folder is not synced")
    return [*refused, *grown, *_removed(old, new)]


_EXPANSION: Final = "`allowVolumeExpansion: true`"
"""`allowResize` in `plugin/pkg/admission/storage/persistentvolume/resize/admission.go` of kubernetes/kubernetes."""


def is_refused(old: Workload, new: Workload) -> bool:
    """Whether the API server refuses what becomes of a volume, so that nothing of the work's folder is applied."""
    return any(any(_locked(one, other)) for one, other in _kept(old, new))


def _kept(old: Workload, new: Workload) -> Iterator[tuple[Volume, Volume]]:
    before = {volume.claim(old): volume for volume in volumes_of(old)}
    return ((before[name], volume) for volume in volumes_of(new) if (name := volume.claim(new)) in before)


def _locked(one: Volume, other: Volume) -> Iterator[str]:
    """Yield the changes that no claim allows (`ValidatePersistentVolumeClaimUpdate` in `pkg/apis/core/validation`)."""
    old, new = _size(one), _size(other)
    if old is not None and new is not None and new < old:
        yield "a smaller size"
    if one.spec.storage_class != other.spec.storage_class:
        yield "another StorageClass"
    if one.spec.access_mode != other.spec.access_mode:
        yield "another access mode"


def _size(volume: Volume) -> Decimal | None:
    return parse_quantity(volume.spec.size)


def _removed(old: Workload, new: Workload) -> Iterator[str]:
    kept = {volume.claim(new) for volume in volumes_of(new)}
    if gone := [name for volume in volumes_of(old) if (name := volume.claim(old)) not in kept]:
        volumes, go, them = ("volume", "goes", "it") if len(gone) == 1 else ("volumes", "go", "them")
        yield f"its {volumes} {names(gone)} {go} when a person confirms it, with all that is in {them}"
