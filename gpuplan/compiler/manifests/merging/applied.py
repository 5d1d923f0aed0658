"""Compare what is written of an object with what a cluster has, as server-side apply would.

What is written is compared, and nothing else: others may own further fields, and the API server fills in defaults.
Lists are paired as they are applied: by their keys, as sets, or as a whole. What is applied as a whole may hold nothing
else either, but for defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import zip_longest
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import read_text
from gpuplan.compiler.base.trees import ABSENT, unlike
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.quantities import parse_quantity


class Difference(NamedTuple):
    """A value that a cluster has otherwise than it is written; `ABSENT` where one side has none.

    ``route`` is that in what is written, and ``live_route`` that in the live object: their lists may differ. Both lead
    on into a text that is YAML itself. ``line`` is the first that differs in a text of several lines, else 0.
    """

    route: Path
    live_route: Path
    written: object
    live: object
    line: int = 0


def differences(written: Mapping[str, Any], live: Mapping[str, Any], shape: Shape) -> Iterator[Difference]:
    """Yield the values that a live object has otherwise than they are written."""
    for key, value in written.items():
        if key not in _IDENTITY:
            yield from _compare(value, live.get(key, ABSENT), shape.field(key), _At((key,), (key,)))


_IDENTITY: Final = ("apiVersion", "kind", "status")


class _At(NamedTuple):
    """Where a value is on both sides; ``is_whole`` where what it is in is applied as a whole."""

    route: Path
    live_route: Path
    is_whole: bool = False

    def part(self, key: str | int, live_key: str | int | None = None) -> _At:
        return self._replace(
            route=(*self.route, key), live_route=(*self.live_route, key if live_key is None else live_key)
        )

    def differ(self, written: object, live: object, line: int = 0) -> Difference:
        return Difference(self.route, self.live_route, written, live, line)


def _compare(written: object, live: object, shape: Shape, at: _At) -> Iterator[Difference]:
    match written, live:
        case Mapping(), Mapping():
            yield from _mappings(written, live, shape, at._replace(is_whole=at.is_whole or shape.is_atomic_map))
        case list() | tuple(), list():
            yield from _lists(written, live, shape, at)
        case str(), str() if "\n" in written or "\n" in live:
            yield from _texts(written, live, at)
        case _:
            yield from [] if is_same(written, live, shape) else [at.differ(written, live)]


def _mappings(written: Mapping[str, Any], live: Mapping[str, Any], shape: Shape, at: _At) -> Iterator[Difference]:
    for key, value in written.items():
        yield from _compare(value, live.get(key, ABSENT), shape.field(key), at.part(key))
    for key in live.keys() - written.keys() if at.is_whole else ():
        if not _is_default(live[key], shape.field(key)):
            yield at.part(key).differ(ABSENT, live[key])


def _lists(written: Sequence[Any], live: list[Any], shape: Shape, at: _At) -> Iterator[Difference]:
    if shape.list_keys:
        yield from _by_key(written, live, shape, at)
    elif shape.is_set:
        for index, item in enumerate(written):
            if not any(is_same(item, other, shape.items) for other in live):
                yield at.part(index).differ(item, ABSENT)
        yield from _others(live, [item for item in live if item in written], at)
    elif len(written) != len(live):
        yield at.differ(list(written), live)
    else:
        for index, (item, other) in enumerate(zip(written, live, strict=True)):
            yield from _compare(item, other, shape.items, at._replace(is_whole=True).part(index))


def _by_key(written: Sequence[Any], live: list[Any], shape: Shape, at: _At) -> Iterator[Difference]:
    paired: list[Any] = []
    for index, item in enumerate(written):
        found = find_item(item, live, shape)
        if found is None:
            yield at.part(index).differ(item, ABSENT)
        else:
            paired.append(live[found])
            yield from _compare(item, live[found], shape.items, at.part(index, found))
    yield from _others(live, paired, at)


def _others(live: list[Any], paired: Sequence[Any], at: _At) -> Iterator[Difference]:
    """Items that are not written, in what is applied as a whole."""
    for index, item in enumerate(live if at.is_whole else ()):
        if not any(item is other or item == other for other in paired):
            yield at.part(index).differ(ABSENT, item)


def find_item(written: object, live: Sequence[Any], shape: Shape) -> int | None:
    """The number of the live item that is the one that is written, by the keys of their list."""
    wanted = _key(written, shape)
    return next((index for index, other in enumerate(live) if _key(other, shape) == wanted), None)


def _key(entry: object, shape: Shape) -> object:
    """Return the values that tell an item from others. An absent key has its default."""
    if not isinstance(entry, Mapping):
        return entry
    values = (entry.get(key, shape.items.field(key).default) for key in shape.list_keys)
    return tuple("" if value in (None, ABSENT) else value for value in values)


class Found(NamedTuple):
    """Where a written value is in a live object, what is there, or `ABSENT`, and what its schema says of it."""

    route: Path
    live: object
    shape: Shape


def find_live(written: Mapping[str, Any], live: Mapping[str, Any], shape: Shape, route: Path) -> Found:
    """Find the live value in the place of a written one. A route may lead on into a text."""
    ours: object = written
    here: object = live
    way: Path = ()
    for part in route:
        if isinstance(here, str) and isinstance(ours, str):
            ours, here, shape = parsed(ours), parsed(here), _UNKNOWN
        step: str | int = part
        if isinstance(part, int) and shape.list_keys and isinstance(here, list):
            found = find_item(_part(ours, part), here, shape)
            step = len(here) if found is None else found
        ours, here, way = _part(ours, part), _part(here, step), (*way, step)
        shape = shape.field(part) if isinstance(part, str) else shape.items
    return Found(way, here, shape)


_UNKNOWN: Final = Shape({}, {})


def _part(data: object, part: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(part, ABSENT)
    if isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
        return data[part]
    return ABSENT


# --- Values ------------------------------------------------------------------------------------------------------


def is_same(written: object, live: object, shape: Shape) -> bool:
    """Whether the API server would have made the one of the other."""
    if written == live and isinstance(written, bool) == isinstance(live, bool):
        return True
    if _is_empty(written) and _is_empty(live):
        return True
    if isinstance(written, bool) or isinstance(live, bool) or ABSENT in (written, live):
        return False
    if shape.is_amount:
        one, other = parse_quantity(str(written)), parse_quantity(str(live))
        return one is not None and one == other
    if shape.is_text and isinstance(written, str) and isinstance(live, str):
        one, other = (_seconds(value) for value in (written, live))
        return one is not None and one == other
    return False


def _is_empty(value: object) -> bool:
    return value is ABSENT or value in (None, "", [], {})


_DURATION: Final = regex(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|ns))+")
_PART: Final = regex(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)")
_UNITS: Final = {"h": "3600", "m": "60", "s": "1", "ms": "1e-3", "us": "1e-6", "µs": "1e-6", "ns": "1e-9"}


def _seconds(text: str) -> Decimal | None:
    """Return the seconds of a duration as Go writes it, or None. ``10m`` and ``10m0s`` are the same."""
    if not _DURATION.fullmatch(text):
        return None
    return sum((Decimal(number) * Decimal(_UNITS[unit]) for number, unit in _PART.findall(text)), Decimal(0))


def _is_default(live: object, shape: Shape) -> bool:
    """Whether a value that is not written is one that the API server fills in."""
    default = shape.default
    if isinstance(live, Mapping) and default is not ABSENT:
        return all(_is_default(value, shape.field(name)) for name, value in live.items())
    return _is_empty(live) or (default is not ABSENT and is_same(default, live, shape))


# --- Texts -------------------------------------------------------------------------------------------------------


def _texts(written: str, live: str, at: _At) -> Iterator[Difference]:
    """Texts of several lines are compared byte by byte; where both are YAML, by the values in them that differ."""
    if written == live:
        return
    pairs = zip_longest(written.splitlines(), live.splitlines())
    line = next((number for number, (one, other) in enumerate(pairs, start=1) if one != other), 0)
    one, other = parsed(written), parsed(live)
    if one != other and isinstance(one, Mapping) and isinstance(other, Mapping):
        for route, value, found in unlike(one, other, by_item=False):
            yield Difference((*at.route, *route), (*at.live_route, *route), value, found, line)
        return
    yield at.differ(_line(written, line), _line(live, line), line)


def _line(text: str, number: int) -> object:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else text if not number else ABSENT


def parsed(text: str) -> object:
    """The data of a text that is a document, and that can be gone through; or else its lines."""
    found = read_text(text)
    is_document = len(found) == 1 and isinstance(found[0], dict | list)
    return found[0] if is_document else text.splitlines()


# --- What a sync would change ------------------------------------------------------------------------------------


def as_found(written: Any, live: Any, shape: Shape, *, is_whole: bool = False) -> Any:  # noqa: ANN401 - any JSON
    """Return what is written as the live object has it, without what the live object lacks.

    A change from this to what is written is what a sync does to the live object.
    """
    at = _At((), (), is_whole)
    if not any(_compare(written, live, shape, at)):
        return written
    if isinstance(written, Mapping) and isinstance(live, Mapping):
        whole = is_whole or shape.is_atomic_map
        known = {
            key: as_found(value, live.get(key, ABSENT), shape.field(key), is_whole=whole)
            for key, value in written.items()
            if key in live or is_same(value, ABSENT, shape.field(key))
        }
        others = live.keys() - written.keys() if whole else ()
        return known | {key: live[key] for key in others if not _is_default(live[key], shape.field(key))}
    if isinstance(written, list | tuple) and isinstance(live, list):
        if shape.list_keys:
            pairs = ((item, find_item(item, live, shape)) for item in written)
            return [as_found(item, live[index], shape.items) for item, index in pairs if index is not None]
        if shape.is_set:
            return [item for item in written if any(is_same(item, other, shape.items) for other in live)]
        if len(written) != len(live):
            return live
        return [as_found(item, other, shape.items, is_whole=True) for item, other in zip(written, live, strict=True)]
    return live


def with_left(base: Any, differences: Iterable[Difference]) -> Any:  # noqa: ANN401 - any JSON
    """Return the same with the values of a live object that are no longer written."""
    for difference in differences:
        if difference.written is ABSENT:
            base = _put(base, difference.route, difference.live)
    return base


def _put(into: Any, route: Path, value: object) -> Any:  # noqa: ANN401 - any JSON
    if not route:
        return value
    part, *rest = route
    if isinstance(part, int):
        items = list(into) if isinstance(into, list | tuple) else []
        if part < len(items) and rest:
            items[part] = _put(items[part], tuple(rest), value)
        elif value not in items:
            items.append(_put({}, tuple(rest), value))
        return items
    fields = dict(into) if isinstance(into, Mapping) else {}
    return {**fields, part: _put(fields.get(part, {}), tuple(rest), value)}
