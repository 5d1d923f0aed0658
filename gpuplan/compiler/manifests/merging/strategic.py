"""Lay a strategic merge patch over a part of an object, as `kubectl patch` and the API server do.

How a list is merged stands in Kubernetes' schemas, in `x-kubernetes-patch-merge-key`: a list without one is replaced.
What is there keeps its place, and what is new comes after it in the order of the patch; kubectl puts items that the
patch has before one that is there in front of that (`mergeSortedSlice` in `pkg/util/strategicpatch/patch.go` of
kubernetes/apimachinery), which says nothing and would move a pod's main container.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.trees import leaves
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.merging.shape import Shape

DIRECTIVE: Final = "$patch"

Decided = tuple[Path, Path]
"""A route in what was patched, and the one in the patch that decides what is there."""


class Fault(NamedTuple):
    """A part of a patch that cannot be applied, by its route there. One that ``is_idle`` changes nothing."""

    route: Path
    message: str
    help: str
    is_idle: bool = False


class Patched(NamedTuple):
    """The result of a patch. Its faulty parts were left out.

    ``decided`` are the leaves that it sets, ``removed`` the parts that it takes away; ``replaced`` are the routes of
    what it sets whole, such as a list that is not merged. ``chosen`` are the places in the patch that say which item of
    a list is meant that is there already.
    """

    body: dict[str, Any]
    decided: tuple[Decided, ...] = ()
    removed: tuple[Decided, ...] = ()
    replaced: tuple[Path, ...] = ()
    chosen: tuple[Path, ...] = ()
    faults: tuple[Fault, ...] = ()


def patched(body: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> Patched:
    """The body with the patch laid over it."""
    run = _Run()
    merged = run.mapping(_Here(body, shape, (), ()), patch)
    found = tuple(run.decided), tuple(run.removed), tuple(run.replaced), tuple(run.chosen), tuple(run.faults)
    return Patched(merged or {}, *found)


class _Here(NamedTuple):
    """The part that a patch is laid over, with its route and that of the patch."""

    under: Any
    shape: Shape
    at: Path
    patch_at: Path

    def field(self, name: str) -> _Here:
        under = self.under.get(name) if isinstance(self.under, Mapping) else None
        return _Here(under, self.shape.field(name), (*self.at, name), (*self.patch_at, name))


class _Run:
    """One patch on its way."""

    def __init__(self) -> None:
        self.decided: list[Decided] = []
        self.removed: list[Decided] = []
        self.replaced: list[Path] = []
        self.chosen: list[Path] = []
        self.faults: list[Fault] = []

    def mapping(self, here: _Here, patch: Mapping[str, Any]) -> dict[str, Any] | None:
        """The mapping; None where the patch takes it away."""
        directive = patch.get(DIRECTIVE, "merge")
        under = dict(here.under) if isinstance(here.under, Mapping) else {}
        if directive == "delete":
            self._remove(here, is_there=here.under is not None, place=(*here.patch_at, DIRECTIVE))
            return None
        if directive == "replace":
            self.removed += [((*here.at, key), here.patch_at) for key in under if key not in patch]
            here, under = here._replace(under={}), {}
        elif directive != "merge":
            message = f"`{DIRECTIVE}: {directive}` is none of `delete`, `replace` and `merge`"
            self._fault((*here.patch_at, DIRECTIVE), message, f"write `{DIRECTIVE}: delete`, or leave it out")
        for key, value in patch.items():
            if key.startswith("$"):
                if key != DIRECTIVE:
                    message = f"`{key}` is for programs that compare objects"
                    self._fault((*here.patch_at, key), message, f"leave it out; `{DIRECTIVE}: delete` removes")
                continue
            found = self._value(here.field(key), value)
            if found is None:
                under.pop(key, None)
            else:
                under[key] = found
        if not under and here.under is None:
            self.decided.append((here.at, here.patch_at))
        return under

    def _value(self, here: _Here, value: object) -> object:
        """Return the value of a field after the patch, or None if the patch removes the field."""
        if value is None:
            self._remove(here, is_there=here.under is not None, place=here.patch_at)
            return None
        if isinstance(value, Mapping):
            return self.mapping(here, value)
        if isinstance(value, list | tuple):
            return self._merged(here, value) if here.shape.merge_key else self._taken(here, list(value))
        return self._taken(here, value)

    def _taken(self, here: _Here, value: object) -> object:
        """A value as it stands, with each of its leaves."""
        self.replaced.append(here.at)
        self.decided += [((*here.at, *route), (*here.patch_at, *route)) for route, _ in leaves(value)]
        return value

    def _merged(self, here: _Here, items: Sequence[object]) -> list[object]:
        key = here.shape.merge_key
        under: list[object] = list(here.under) if isinstance(here.under, list) else []
        if any(isinstance(item, Mapping) and item.get(DIRECTIVE) == "replace" for item in items):
            self.removed += [((*here.at, index), here.patch_at) for index in range(len(under))]
            under = []
        gone: set[int] = set()
        said: set[str] = set()
        for index, item in enumerate(items):
            place = (*here.patch_at, index)
            if not isinstance(item, Mapping):
                self._fault(place, f"the items of `{here.at[-1]}` are mappings", f"write `- {key}: ...`")
            elif item.get(DIRECTIVE) == "replace":
                if len(item) > 1:
                    message = "an item that says `$patch: replace` is about the whole list, and says nothing else"
                    self._fault(place, message, "write the directive as an item of its own, or leave it out")
            elif item.get(key) is None:
                message = f"an item of `{here.at[-1]}` has no `{key}`, by which it is told from others"
                self._fault(place, message, f"add `{key}:`")
            elif str(item[key]) in said and DIRECTIVE not in item:
                message = f"another item of `{here.at[-1]}` has the `{key}` `{item[key]}`, and both would become one"
                self._fault(place, message, "write one item")
            else:
                said |= set() if DIRECTIVE in item else {str(item[key])}
                self._merge_into(here, under, gone, index, item)
        return [item for index, item in enumerate(under) if index not in gone]

    def _merge_into(
        self, here: _Here, under: list[object], gone: set[int], index: int, entry: Mapping[str, Any]
    ) -> None:
        key, place = here.shape.merge_key, (*here.patch_at, index)
        same = (at for at, found in enumerate(under) if isinstance(found, Mapping) and found.get(key) == entry[key])
        at = next((found for found in same if found not in gone), None)
        route = (*here.at, len(under) if at is None else at)
        inner = _Here(None if at is None else under[at], here.shape.items, route, place)
        match entry.get(DIRECTIVE):
            case None:
                rest = entry if at is None else {name: value for name, value in entry.items() if name != key}
                found = self.mapping(inner, rest)
                if at is None:
                    under.append(found)
                else:
                    self.chosen.append((*place, key))
                    under[at] = found
            case "delete":
                self._remove(inner, is_there=at is not None, place=place)
                gone |= set() if at is None else {at}
            case other:
                message = f"`{DIRECTIVE}: {other}` in a list is neither `delete` nor `replace`"
                self._fault((*place, DIRECTIVE), message, "leave it out: items merge by themselves")

    def _remove(self, here: _Here, *, is_there: bool, place: Path) -> None:
        if is_there:
            self.removed.append((here.at, place))
        else:
            what = f"`{here.at[-1]}`" if isinstance(here.at[-1], str) else f"such item of `{here.at[-2]}`"
            self.faults.append(Fault(place, f"there is no {what} to remove", "leave it out", is_idle=True))

    def _fault(self, route: Path, message: str, instead: str) -> None:
        self.faults.append(Fault(route, message, instead))
