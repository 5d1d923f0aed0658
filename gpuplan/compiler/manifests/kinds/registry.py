"""Look kinds up: those that gpuplan knows, and what it takes for granted of any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from gpuplan.compiler.manifests.crds import fixed_fields
from gpuplan.compiler.manifests.kinds.model import Immutable, Judgement, Kind


def find_kind(group: str, kind: str) -> Kind | None:
    """The kind, if it is known; the core group is empty."""
    return known_kinds().get((group, kind))


def get_kind(group: str, kind: str) -> Kind:
    """The kind; a ``ValueError`` where it is not known, since whoever writes an object must say what its kind is."""
    found = find_kind(group, kind)
    if found is None:
        name = f"{kind}.{group}" if group else kind
        raise ValueError(
            f"no kind {name} in gpuplan/compiler/manifests/kinds/data/: add it there before you write such objects"
        )
    return found


def assume_kind(group: str, kind: str) -> Kind:
    """The kind as it is known, or as it is taken to be: people may write and retain objects of any kind.

    Nothing keeps an unknown one from being removed, its folder alone tells how far a change disturbs, and it is the
    cluster's where it names no namespace. What its definition lets nobody change is taken from there, if that comes
    with gpuplan.
    """
    return find_kind(group, kind) or Kind(
        group=group,
        kind=kind,
        source="",
        is_namespaced=False,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=tuple(Immutable(field, may_go=True) for field in fixed_fields(group, kind)),
        outlives_policy=False,
    )


@cache
def known_kinds() -> Mapping[tuple[str, str], Kind]:
    """All kinds, by group and kind. They are loaded when the first is asked for: many commands ask for none."""
    from gpuplan.compiler.manifests.kinds.data import (
        frameworks,
        gitops,
        gpu_operator,
        kai,
        kubernetes,
        kueue,
        monitoring,
        scaling,
    )

    modules = kubernetes, kueue, kai, frameworks, gpu_operator, monitoring, gitops, scaling
    return by_name(kind for module in modules for kind in module.KINDS)


def by_name(kinds: Iterable[Kind]) -> Mapping[tuple[str, str], Kind]:
    """Kinds by group and kind; a ``ValueError`` where two are one."""
    found: dict[tuple[str, str], Kind] = {}
    for kind in kinds:
        key = kind.group, kind.kind
        if key in found:
            raise ValueError(f"two kinds {key} in gpuplan/compiler/manifests/kinds/data/")
        found[key] = kind
    return found
