"""The patch that makes a template of pods another one, as `podPatch` has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.merging.strategic import DIRECTIVE
from gpuplan.features.live.work.likeness import difference, is_added


def patch_between(have: object, want: object, shape: Shape, route: Path = ()) -> dict[str, Any]:
    """What to lay over the one mapping to have the other. Whether that does it, only laying it over tells."""
    there, wanted = mapping(have), mapping(want)
    patch: dict[str, Any] = {}
    for key, value in wanted.items():
        place = (*route, key)
        if key not in there:
            if not is_added(value, shape.field(key), place):
                patch[key] = value
        elif difference(there[key], value, shape.field(key), place) is not None:
            patch[key] = _change(there[key], value, shape.field(key), place)
    gone = (key for key, value in there.items() if key not in wanted and value not in ("", [], {}, None))
    patch |= dict.fromkeys(gone)
    return patch


def _change(have: object, want: object, shape: Shape, route: Path) -> object:
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        return patch_between(have, want, shape, route)
    if isinstance(have, list) and isinstance(want, list) and (key := shape.merge_key):
        return [*_items(have, want, key, shape.items, route)]
    return want


def _items(have: list[object], want: list[object], key: str, shape: Shape, route: Path) -> list[object]:
    """The items that are other ones, or new; and those that go."""
    by_key = {_named(item, key): item for item in have}
    found: list[object] = []
    for index, item in enumerate(want):
        name = _named(item, key)
        if name not in by_key:
            found.append(item)
        elif change := patch_between(by_key[name], item, shape, (*route, index)):
            found.append({key: mapping(item).get(key), **change})
    names = [_named(item, key) for item in want]
    gone = (item for name, item in by_key.items() if name not in names)
    return [*found, *({DIRECTIVE: "delete", key: mapping(item).get(key)} for item in gone)]


def _named(item: object, key: str) -> str:
    """By what an item is told from others, whatever that may be."""
    return str(mapping(item).get(key))
