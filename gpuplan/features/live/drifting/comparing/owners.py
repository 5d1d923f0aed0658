"""Who wrote a field of a live object, by ``metadata.managedFields``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.merging.applied import Difference, find_item, is_same
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.planning.sync_names import REVISION

APPLY: Final = "Apply"


class Owner(NamedTuple):
    """A program or person that wrote an object: ``manager`` is what it calls itself, as in ``kubectl-edit``.

    Where it does not own the field itself, it ``is_last``: it wrote to the object last, but for what applies it.
    """

    manager: str
    operation: str
    time: str
    subresource: str = ""
    is_last: bool = False


def owners(body: Mapping[str, Any], route: Path) -> tuple[Owner, ...]:
    """Those that own what is at a route, or a part of it, newest first; none where nothing says so."""
    live: object = body
    steps: list[object] = []
    for part in route:
        steps.append(live)
        live = _item(live, part)
    found = [owner for owner, fields in _entries(body) if _owns(fields, route, steps)]
    return tuple(sorted(found, key=lambda owner: owner.time, reverse=True))


APPLIERS: Final = ("argocd-controller", "kustomize-controller")
"""What Argo CD and Flux call themselves (`ArgoCDSSAManager` in `common/common.go` of argo-cd, `controllerName` in
`main.go` of kustomize-controller): what they have applied and what is written no more, they take away.
"""
_NOTES: Final = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "app.kubernetes.io/instance", REVISION)
"""Beginnings of the labels and annotations that they add themselves."""


def left_fields(written: Mapping[str, Any], live: Mapping[str, Any], shape: Shape) -> Iterator[Difference]:
    """The fields of a live object that whoever syncs it has applied, and that are written no more."""
    for owner, fields in _entries(live):
        if owner.operation == APPLY and owner.manager in APPLIERS and not owner.subresource:
            yield from _left(fields, written, live, shape, ((), ()))


def _left(
    fields: Mapping[str, Any], written: object, live: object, shape: Shape, at: tuple[Path, Path]
) -> Iterator[Difference]:
    for key, inner in fields.items():
        kind, _, value = key.partition(":")
        if kind == "f" and isinstance(live, Mapping) and value in live and not value.startswith(_NOTES):
            step = (*at[0], value), (*at[1], value)
            known = written.get(value, ABSENT) if isinstance(written, Mapping) else ABSENT
            if inner:
                yield from _left(mapping(inner), known, live[value], shape.field(value), step)
            elif known is ABSENT and not _is_filled_in(live[value], shape.field(value)):
                yield Difference(*step, ABSENT, live[value])
        elif kind in ("k", "v") and isinstance(live, list):
            index = next((n for n, item in enumerate(live) if _names(value, item, is_keys=kind == "k")), None)
            if index is None:
                continue
            items = written if isinstance(written, list | tuple) else ()
            ours = next((n for n, item in enumerate(items) if _is_item(item, live[index], shape)), None)
            step = (*at[0], index if ours is None else ours), (*at[1], index)
            if ours is None:
                yield Difference(*step, ABSENT, live[index])
            elif inner:
                yield from _left(mapping(inner), items[ours], live[index], shape.items, step)


def _is_filled_in(live: object, shape: Shape) -> bool:
    """Whether a value may be there without anybody: a default, or what others have put into an empty mapping.

    Flux applies all fields that a type of Kubernetes has, such as the protocol of a port and `spec: {}` of a Namespace
    (`UnstructuredWithScheme` in `ssa/normalize/normalize.go` of fluxcd/pkg).
    """
    return is_same(shape.default, live, shape) or (isinstance(live, Mapping) and not shape.is_atomic_map)


def _is_item(written: object, live: object, shape: Shape) -> bool:
    return find_item(written, [live], shape) == 0


def find_owner(body: Mapping[str, Any], route: Path) -> Owner | None:
    """Who gave a field its value; where nobody owns it any more, who wrote to the object last.

    What applies objects owns most of what is written: somebody else is meant, if there is anybody.
    """
    found = owners(body, route)
    if found:
        return next((owner for owner in found if owner.operation != APPLY), found[0])
    rest = sorted((owner for owner, _ in _entries(body) if not owner.subresource), key=lambda owner: owner.time)
    others = [owner for owner in rest if owner.operation != APPLY]
    return others[-1]._replace(is_last=True) if others else None


def _entries(body: Mapping[str, Any]) -> Iterator[tuple[Owner, Mapping[str, Any]]]:
    for entry in map(mapping, sequence(mapping(body.get("metadata")).get("managedFields"))):
        manager, operation, time, subresource = (
            text(entry.get(key)) for key in ("manager", "operation", "time", "subresource")
        )
        yield Owner(manager, operation, time, subresource), mapping(entry.get("fieldsV1"))


def _owns(fields: Mapping[str, Any], route: Path, steps: Sequence[object]) -> bool:
    """Whether a set of fields holds a route, or a part of what is there; one that ends before it holds all of it."""
    for part, container in zip(route, steps, strict=True):
        found = _inside(fields, part, container)
        if found is None:
            return False
        fields = found
        if not fields:
            return True
    return True


def _inside(fields: Mapping[str, Any], part: str | int, container: object) -> Mapping[str, Any] | None:
    """What a set holds of a step: a field, an item of a list by its keys or its value; None where it holds none.

    (`fieldpath.PathElement` in `fieldpath/element.go` of kubernetes-sigs/structured-merge-diff.)
    """
    if isinstance(part, str):
        return mapping(fields[f"f:{part}"]) if f"f:{part}" in fields else None
    item = _item(container, part)
    for key, inner in fields.items():
        kind, _, value = key.partition(":")
        if kind in ("k", "v") and _names(value, item, is_keys=kind == "k"):
            return mapping(inner)
    return None


def _names(value: str, item: object, *, is_keys: bool) -> bool:
    try:
        wanted = json.loads(value)
    except (ValueError, RecursionError):
        return False
    if not is_keys:
        return bool(wanted == item)
    return isinstance(item, Mapping) and all(item.get(key) == found for key, found in mapping(wanted).items())


def _item(data: object, part: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(part)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return data[part]
    return None
