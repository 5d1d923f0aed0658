"""The field that was meant by an unknown one, here or elsewhere, and how to get what was written there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gpuplan.compiler.base.diagnostics import Finding, Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import closest, joined, misspelling
from gpuplan.compiler.policy.data.elsewhere import FIELDS, REMEDIES
from gpuplan.compiler.policy.elsewhere import Said
from gpuplan.compiler.policy.fields import nested_model
from gpuplan.compiler.policy.marks import models_in, types_in
from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.shapes import (
    Absent,
    accepts,
    as_line,
    as_meant,
    bare,
    flaws,
    is_list,
    mapping,
    taken,
    value_at,
)
from gpuplan.compiler.policy.turns import Turned, called, lacks, turn, write_help, written_beside

if TYPE_CHECKING:
    from gpuplan.compiler.documents import Document


class Home(NamedTuple):
    """A field by its path, and the value that it takes."""

    path: Path
    value: object


def find_said(kind: str, field: str) -> Said | None:
    """Return the way in which a document of a kind says a field of this name, or None if it is not known."""
    return next((said for said, names in FIELDS.get(kind, {}).items() if field in names.split()), None)


def find_home(document: Document, model: type[BaseModel], place: Path) -> Home | None:
    """Return the one field elsewhere in the document that an unknown field is, or None if it is none or several."""
    name, value = str(place[-1]), value_at(document.data, place)
    if remedy_for(place) or name != name.strip() or name in map(str, place[-2:-1]) or _same_here(model, place):
        return None
    if one_off := _one_level_off(document, model, place):
        better = taken(model, (*one_off, place[-1]), value)
        return Home((*one_off, place[-1]), value if better is None else better)
    if profiles := _profiles_of(document.data, place):
        homes = _places(document, model, place, _paths_by_name(model)["instances"], profiles)
    else:
        same = _same_elsewhere(document, model, place)
        exact = [home for home in same if home.path[-1] == name]
        homes = exact or ([] if _parts_here(document, model, place) else same)
        if find_said(document.kind, name) and bare(str(homes[0].path[-1]) if homes else name) == bare(name):
            return None
    return homes[0] if len(homes) == 1 else None


def remedy_for(place: Path) -> str:
    """Return advice on a field that is wrong for a reason where it stands, or nothing."""
    names = [str(part) for part in place if isinstance(part, str)]
    of_item = ("[]", *names[-1:]) if place[1:] and isinstance(place[-2], int) else ()
    return next((REMEDIES[end] for end in (of_item, (*names[-2:],), (*names[-1:],)) if end in REMEDIES), "")


def unknown_field(document: Document, model: type[BaseModel], place: Path) -> Finding:
    """Return a finding on a field that is none, and that has no home: the field that was meant, if there is one."""
    at, name, value = Origin(document, place), str(place[-1]), value_at(document.data, place)
    parent = nested_model(model, place[:-1])
    known = tuple(named(parent)) if parent else ()
    message, label, help_ = f"unknown field `{name}`", "not a field here", ""
    if meant := with_colon(name, known):
        rest = f": {value}" if isinstance(value, str | int | float) else ""
        label, help_ = "YAML wants a `:`, and a blank behind it", f"write `{meant}{rest}`"
    elif name != name.strip():
        label, help_ = "begins with a blank that is a letter to YAML", f"write plain blanks before `{name.strip()}`"
    elif name in map(str, place[-2:-1]):
        line = as_line(value)[1:-1] if isinstance(value, dict) else ""
        label = f"`{name}` stands in itself"
        help_ = f"write `{line}` in its place" if line else f"write what is below it in the place of this `{name}`"
    elif switch := _switch(document, model, place):
        label, help_ = "said in another way", switch
    elif near := near_here(document, model, place):
        label, help_ = f"did you mean `{near[0]}`", _renamed(document, model, place, near)
    elif item := _item_meant(document, model, place):
        label, help_ = "said in another way", f"write `{item}`"
    elif said := find_said(document.kind, name):
        label, help_ = "said in another way", f"say it {said.how}: {said.page}"
    elif elsewhere := _elsewhere(document, model, place):
        help_ = elsewhere
    else:
        leave = f"leave `{name}` out: gpuplan has no such field"
        help_ = f"write one of the fields here, or {leave}" if known else leave
    notes = (f"the fields here are {in_code(known)}",) if known else ()
    remedy = remedy_for(place).replace("name: ...", f"name: {document.name or '...'}")
    return Finding(at.key, message, label, notes=notes, help=remedy or help_)


def _renamed(document: Document, model: type[BaseModel], place: Path, near: Sequence[str]) -> str:
    """Return help that gives a field its name, with the value in the shape that the named field takes."""
    field, value, beside = near[0], value_at(document.data, place), written_beside(document, place, place[:-1])
    if near[1:]:
        return f"write {joined([f'`{field}:`' for field in near], 'or')}"
    if field in beside:
        there = beside[field]
        line = as_line([*there, *value]) if isinstance(there, list) and isinstance(value, list) else ""
        both = f"write `{field}: {line}` in place of both"
        return both if line else f"write `{field}`, which stands here too, once, with the value that is meant"
    if isinstance(value, list) and value[1:] and len(place) > 1 and isinstance(place[-2], int):
        rest = {name: part for name, part in beside.items() if name != place[-1]}
        lines = [as_line({field: item, **rest}) for item in value if accepts(model, (*place[:-1], field), item)]
        if len(lines) == len(value) and all(lines):
            return f"write {joined([f'`{line}`' for line in lines])}, each as an item of its own"
    better = taken(model, (*place[:-1], field), value)
    is_as_it_is = better is None or (better is value and _same_here(model, place))
    line = "" if is_as_it_is else as_line({field: better})[1:-1]
    return f"write `{line or f'{field}:'}`"


def _item_meant(document: Document, model: type[BaseModel], place: Path) -> str:
    """Return the item of a list that is meant by one entry, whose key is its name: `- a100: 4` for a quota."""
    item = value_at(document.data, place[:-1])
    if not (place[1:] and isinstance(place[-2], int) and isinstance(item, dict) and len(item) == 1):
        return ""
    meant = as_meant(model, place[:-2], item)
    return as_line(meant[0]) if isinstance(meant, list) and len(meant) == 1 and not lacks(meant[0]) else ""


def _switch(document: Document, model: type[BaseModel], place: Path) -> str:
    """Return help on a field that switches its mapping on or off."""
    name, value = str(place[-1]), value_at(document.data, place)
    written = mapping(value_at(document.data, place[:-1]))
    holder = next((str(part) for part in reversed(place[:-1]) if isinstance(part, str)), "")
    if _same_here(model, place):
        return ""
    if bare(name) in _SWITCHES and isinstance(value, bool) and len(place) > _OF_A_SPEC:
        if value is (bare(name) in _SWITCHES[:2]):
            return switched_off(document, model, place[:-1])
        return (
            f"leave `{name}` out: `{holder}` is on where it stands" if len(written) > 1 else f"write `{holder}: {{}}`"
        )
    return ""


def switched_off(document: Document, model: type[BaseModel], place: Path) -> str:
    """Return help that switches a mapping off: a field beside it may say so, and in an overlay a `null`."""
    name, parent = place[-1], nested_model(model, place[:-1])
    off = [alias for alias in named(parent) if "off" in called(parent, alias)] if parent else []
    if off:
        return f"to switch it off, write `{off[0]}: {{}}` in place of `{name}`"
    if document.layers[1:] and value_at(document.layers[0].data, place) not in (None, False):
        return f"write `{name}: null`, which removes what the base says"
    return f"leave the whole `{name}` out: what stands there is on"


_SWITCHES: Final = ("disabled", "disable", "enabled", "enable", "deploy", "create")


def with_colon(text: str, fields: Iterable[str]) -> str | None:
    """Return `name: a100` for `name a100` and `name:a100` if `name` is one of these fields, or None."""
    name, rest = [*re.split(r"[ :]\s*", text, maxsplit=1), ""][:2]
    return f"{name}: {rest.strip()}" if rest.strip() and name in fields else None


def in_code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# --- Fields of the same mapping --------------------------------------------------------------------------------------


def named(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a mapping by the names that they have in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _same_here(model: type[BaseModel], place: Path) -> list[str]:
    """Return the field of the same mapping that has the name in another spelling, number or language."""
    parent = nested_model(model, place[:-1])
    return [*_same_in(parent, str(place[-1]))] if parent else []


@lru_cache(maxsize=1024)
def _same_in(parent: type[BaseModel], name: str) -> tuple[str, ...]:
    fields = named(parent)
    same = [alias for alias in fields if bare(alias) == bare(name)]
    same = same or [alias for alias in fields if _stem(alias) == _stem(name)]
    same = same or [alias for alias in fields if name in called(parent, alias)]
    return tuple(same or filter(None, [misspelling(name, fields)]))


def near_here(document: Document, model: type[BaseModel], place: Path) -> list[str]:
    """Return the fields of the same mapping that an unknown one may be."""
    name, parent, value = str(place[-1]), nested_model(model, place[:-1]), value_at(document.data, place)
    if same := _same_here(model, place):
        return same
    if parent is None or find_said(document.kind, name):
        return []
    if meant := with_colon(name, named(parent)):
        return [meant.split(":")[0]]
    written = written_beside(document, place, place[:-1])
    parts = [alias for alias in _parts_here(document, model, place) if alias not in written]
    if parts or _same_elsewhere(document, model, place):
        return parts
    close = closest(name, [alias for alias in named(parent) if not _are_opposite(alias, name)])
    if close and close not in written and taken(model, (*place[:-1], close), value) is not None:
        return [close]
    return lacked(document, model, place)


def lacked(document: Document, model: type[BaseModel], place: Path) -> list[str]:
    """Return the one field that the mapping lacks, if the one unknown field there has a value of its kind."""
    value, written = value_at(document.data, place), mapping(value_at(document.data, place[:-1]))
    parent = nested_model(model, place[:-1])
    unknown = [name for name in written if parent and name not in named(parent)]
    needed = lacking(document, model, place[:-1])
    is_telling = isinstance(value, int | float | list | dict) and not isinstance(value, bool) and value not in ([], {})
    is_one = is_telling and len(needed) == 1 == len(unknown) and not _same_elsewhere(document, model, place)
    return [name for name in needed if is_one and accepts(model, (*place[:-1], name), value)]


def _parts_here(document: Document, model: type[BaseModel], place: Path) -> list[str]:
    """Return the fields of the same mapping that have the words of a name among theirs, and take the value."""
    parent, value = nested_model(model, place[:-1]), value_at(document.data, place)
    words = _words(str(place[-1]))
    fields = ((alias, _words(alias)) for alias in (named(parent) if parent else ()))
    parts = [alias for alias, others in fields if words and others and (words < others or others < words)]
    parts = [alias for alias in parts if not _are_opposite(alias, str(place[-1]))]
    shapes = {alias: taken(model, (*place[:-1], alias), value) for alias in parts}
    whole = [alias for alias, shape in shapes.items() if shape is not None and not lacks(shape)]
    is_elsewhere = not whole and _same_elsewhere(document, model, place)
    return whole or [alias for alias, shape in shapes.items() if shape is not None and not is_elsewhere]


def _are_opposite(name: str, other: str) -> bool:
    """Whether one name says the least or the beginning of something, and the other the most or its end."""
    ours, theirs = _words(name), _words(other)
    return any((a in ours and b in theirs) or (b in ours and a in theirs) for a, b in _OPPOSITES)


_OPPOSITES: Final = (("min", "max"), ("start", "end"), ("available", "unavailable"), ("request", "limit"))
_WORDS: Final = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def _words(name: str) -> set[str]:
    return {word.lower().removesuffix("s") for word in _WORDS.findall(name)}


@lru_cache(maxsize=4096)
def _stem(name: str) -> str:
    stem = bare(name)
    return f"{stem[:-3]}y" if stem.endswith("ies") else stem.removesuffix("s")


# --- Fields of other mappings ----------------------------------------------------------------------------------------


def _elsewhere(document: Document, model: type[BaseModel], place: Path) -> str:
    """Return help that names fields of other mappings, and of other kinds of documents, or nothing.

    Of another kind it has to be the only one, and of a name that is no everyday word.
    """
    name, value = str(place[-1]), value_at(document.data, place)
    if homes := _same_elsewhere(document, model, place) or _near_elsewhere(document, model, place):
        return moved(document, place, homes)
    if lacking(document, model, place[:-1]) or not (isinstance(value, list | dict) or len(_words(name)) > 1):
        return ""
    found = [
        (kind, path)
        for kind, other in KINDS.items()
        for path, _ in (fields_of(other) if other is not model else ())
        if len(path) <= _OF_A_SPEC and bare(str(path[-1])) == bare(name) and taken(other, path, value) is not None
    ]
    if len(found) != 1:
        return ""
    ((kind, path),) = found
    return f"move {_moving(name, value)} into `{shown(path[:-1])}` of a {kind}"


_OF_A_SPEC: Final = 2
"""The length of the path of a field that is right below `spec`."""


def _is_in_reach(document: Document, model: type[BaseModel], home: Path, place: Path) -> bool:
    """Whether a field may be meant by an unknown one: one of a mapping around it or right below, or of one written.

    An everyday word says too little for any other mapping.
    """
    around, into = place[:-1], home[:-1]
    common = next(
        (n for n, (a, b) in enumerate(zip(into, around, strict=False)) if a != b), min(len(into), len(around))
    )
    below = [part for part in into[common:] if isinstance(part, str)]
    if not below or into == ("spec",) or (common == len(around) and not below[1:]):
        return True
    beside = (*into[: common + 1],)
    if not isinstance(value_at(document.data, beside), dict) and into[common + 1 :]:  # `sharing: mig`, a word for it
        return value_at(_as_mapping(document, model, beside), into[common + 1 :]) is not None
    is_telling = len(_words(str(place[-1]))) > 1 or isinstance(value_at(document.data, place), list | dict)
    return is_telling and isinstance(value_at(document.data, into), dict)


def _as_mapping(document: Document, model: type[BaseModel], place: Path) -> Mapping[str, object]:
    """Return the mapping at a place, or the one that was meant by what stands there."""
    value = value_at(document.data, place)
    return mapping(value if value is None or isinstance(value, dict) else as_meant(model, place, value))


def lacking(document: Document, model: type[BaseModel], around: Path) -> list[str]:
    """Return the fields that a mapping needs and lacks."""
    parent, written = nested_model(model, around), mapping(value_at(document.data, around))
    fields = named(parent).items() if parent else ()
    return [name for name, field in fields if field.is_required() and name not in written]


def _same_elsewhere(document: Document, model: type[BaseModel], place: Path) -> list[Home]:
    """Return the fields of this kind of documents that have a name, or have it in other programs."""
    name, value, known = str(place[-1]), value_at(document.data, place), _paths_by_name(model)
    same = [path for alias, paths in known.items() if bare(alias) == bare(name) for path in paths]
    plural = [path for alias, paths in known.items() if _stem(alias) == _stem(name) for path in paths]
    found = _places(document, model, place, same, value)
    found = found or [
        home
        for home in _places(document, model, place, _synonyms(model).get(name, ()), value)
        if len(_words(name)) > 1 or isinstance(value_at(document.data, home.path[:-1]), dict)
    ]
    return found or [home for home in _places(document, model, place, plural, value) if len(home.path) > len(place)]


def _near_elsewhere(document: Document, model: type[BaseModel], place: Path) -> list[Home]:
    """Return the fields of this kind of documents whose names begin with a name, or are misspelt by it."""
    known, name = _paths_by_name(model), bare(str(place[-1]))
    near = [alias for alias in known if len(name) >= _SHORTEST and bare(alias).startswith(name)]
    typo = None if near else misspelling(str(place[-1]), known)
    paths = [path for alias in ([typo] if typo else near) for path in known[alias]]
    value = value_at(document.data, place)
    return [home for home in _places(document, model, place, paths, value) if home.value == value]


_SHORTEST: Final = 4
"""The letters of a name that is likely the beginning of another one."""


def _places(
    document: Document, model: type[BaseModel], place: Path, paths: Iterable[Path], value: object
) -> list[Home]:
    """Return the nearest fields of these that are free, in reach, and of a type that the value has or can have."""
    found: list[Home] = []
    for path in paths:
        better, name = taken(model, path, value), str(place[-1])
        if better is None and (parent := nested_model(model, path[:-1])):
            better = turn(parent, name, {name: value}).get(str(path[-1]))
        common = len(place) - _distance(path, place)[0]  # whose indexes are those of the place
        home = (*place[:common], *path[common:])
        is_free = str(home[-1]) not in written_beside(document, place, home[:-1]) and path != place[: len(path)]
        is_possible = better is not None and is_free and not _is_excluded(document, model, home, better)
        if is_possible and _is_in_reach(document, model, home, place):
            found.append(Home(home, better))
    nearest = min((_distance(home.path, place) for home in found), default=None)
    return [home for home in found if _distance(home.path, place) == nearest]


def _is_excluded(document: Document, model: type[BaseModel], home: Path, value: object) -> bool:
    """Whether a field cannot stand beside what the document says, as a workload is of one kind."""
    for depth, part in enumerate(home):
        beside = _as_mapping(document, model, home[:depth]) if depth else mapping(document.data)
        value_there: object = value
        for inner in reversed(home[depth + 1 :]):
            value_there = [value_there] if isinstance(inner, int) else {inner: value_there}
        if isinstance(part, str) and part not in beside and beside:
            known = {name: other for name, other in beside.items() if accepts(model, (*home[:depth], name), other)}
            first, both = ({**known, **added} for added in ({}, {part: value_there}))
            if flaws(model, home[:depth], both).get(()) == "exactly_one" != flaws(model, home[:depth], first).get(()):
                return True
    return False


def _distance(path: Path, place: Path) -> tuple[int, int]:
    common = 0
    for part, other in zip(path, place, strict=False):
        if part != other and not (isinstance(part, int) and isinstance(other, int)):
            break
        common += 1
    return len(place) - common, len(path)


@cache
def _paths_by_name(model: type[BaseModel]) -> dict[str, list[Path]]:
    """Return the places of the fields of each name."""
    paths: dict[str, list[Path]] = {}
    for path, _ in fields_of(model):
        paths.setdefault(str(path[-1]), []).append(path)
    return paths


@cache
def _synonyms(model: type[BaseModel]) -> Mapping[str, list[Path]]:
    """Return the fields by the names that other programs and people have for them."""
    synonyms: dict[str, list[Path]] = {}
    for path, _ in fields_of(model):
        parent = nested_model(model, path[:-1])
        for name in called(parent, str(path[-1])) if parent else ():
            synonyms.setdefault(name, []).append(path)
    return synonyms


@cache
def fields_of(model: type[BaseModel]) -> tuple[tuple[Path, FieldInfo], ...]:
    """Return every field of a document, by its path; 0 stands for any item of a list."""
    return tuple(_fields_below(model, ()))


def _fields_below(model: type[BaseModel], here: Path) -> Iterator[tuple[Path, FieldInfo]]:
    for alias, field in named(model).items():
        path = (*here, alias)
        yield path, field
        inner = next(models_in(field.annotation), None)
        if inner is not None and not any(str(part).startswith("dict[") for part in types_in(field.annotation)):
            yield from _fields_below(inner, (*path, 0) if is_list(field.annotation) else path)


def _one_level_off(document: Document, model: type[BaseModel], place: Path) -> Path | None:
    """Return the mapping one level off that knows the field and lacks it, or None if there is none, or several."""
    around, name = place[:-1], place[-1]
    written, parent = mapping(value_at(document.data, around)), nested_model(model, around)
    homes = [(*around, key) for key in (named(parent) if parent else ()) if key in written]
    homes = [home for home in homes if _has_room(document, model, place, home)]
    if not homes and around and _has_room(document, model, place, around[:-1]):
        return around[:-1]
    if len(homes) > 1:
        names = list(written)
        homes = [home for home in homes if names.index(str(home[-1])) + 1 == names.index(str(name))]
    return homes[0] if homes else None


def _has_room(document: Document, model: type[BaseModel], place: Path, home: Path) -> bool:
    name = place[-1]
    inner, value = nested_model(model, home), value_at(document.data, home)
    if inner is None or str(name) not in named(inner):
        return False
    if value is None or isinstance(value, dict):
        return name not in (written_beside(document, place, home) if value else ())
    meant = as_meant(model, home, value)  # such as `nodes: 4`, the number of them
    return isinstance(meant, dict) and lacks(meant.get(name, Absent()))


_PROFILE: Final = regex(r"[0-9]{1,2}g\.[0-9]{1,3}gb(\+\S*)?")


def _profiles_of(data: object, place: Path) -> Mapping[str, object]:
    """Return the MIG profiles that stand where a field does, if the field is named like one."""
    around = mapping(value_at(data, place[:-1]))
    is_profile = _PROFILE.fullmatch(str(place[-1])) is not None
    return {name: part for name, part in around.items() if is_profile and _PROFILE.fullmatch(name)}


def goes_along(document: Document, place: Path) -> bool:
    """Whether another field of the same mapping tells of this one, too."""
    return str(place[-1]) not in [*_profiles_of(document.data, place), str(place[-1])][:1]


# --- Words -----------------------------------------------------------------------------------------------------------


def misplaced(document: Document, place: Path, home: Home) -> Finding:
    """Return a finding on a field that has a home."""
    into = _mapping_of(place, home)
    levels = len(into) - len(place) + 1
    is_near = abs(levels) == 1 and into[: len(place) - 1] == place[: len(into)][: len(place) - 1]
    return Finding(
        Origin(document, place).key,
        f"field `{place[-1]}` belongs into {_shown(into)}",
        label=f"one level too far {'right' if levels < 0 else 'left'}" if is_near else "not a field here",
        help=_indented(document, place, home) or moved(document, place, [home]),
    )


def said_otherwise(document: Document, place: Path, turned: Turned) -> Finding:
    """Return a finding on a field that other fields say."""
    message, label = f"unknown field `{place[-1]}`", "said in another way"
    return Finding(Origin(document, place).key, message, label, help=write_help(turned) or _in_block(turned))


def _in_block(turned: Turned) -> str:
    """Return help that gives a mapping too long for one line, of which most fields stand there by their names."""
    head, inner = next((name, mapping(part)) for name, part in turned.fields.items())
    moved = [name for name in turned.names if name in inner]
    others = [name for name in turned.names if name not in inner and name != head]
    lines = [f"`{as_line({name: part})[1:-1] or f'{name}:'}`" for name, part in inner.items() if name not in moved]
    where = (
        f"write `{head}:` alone on its line" if head in turned.names else f"write `{head}:` above `{turned.names[0]}`"
    )
    names = joined(in_code(moved).split(", "))
    parts = [where, *([f"indent {names} by 2 below it"] if moved else [])]
    if lines:
        parts.append(
            f"write {joined(lines)} there" + (f" in place of {joined(in_code(others).split(', '))}" if others else "")
        )
    return f"{', '.join(parts[:-1])}, and {parts[-1]}" if parts[1:] else parts[0]


def as_written(at: Origin) -> str:
    """Return the text of a value in its file, as far as it is on one line."""
    location = at.locate()
    (line, start), (last, end) = location.span
    return location.file.lines[line - 1][start - 1 : end - 1 if last == line else None]


def joined_homes(
    document: Document, model: type[BaseModel], homes: Mapping[Path, Home]
) -> Iterator[tuple[Path, Turned]]:
    """Yield the fields that belong into one mapping that does not exist yet, all as one, with the first of them."""
    groups: dict[Path, list[Path]] = {}
    for place, home in homes.items():
        around = place[:-1]
        below = home.path[len(around) :]
        is_below = (
            home.path[: len(around)] == around and len(below) > 1 and all(isinstance(part, str) for part in below)
        )
        if is_below and not _PROFILE.fullmatch(str(place[-1])):
            groups.setdefault((*around, below[0]), []).append(place)
    for head, places in groups.items():
        around, written = head[:-1], mapping(value_at(document.data, head[:-1]))
        there = written_beside(document, places[0], around)
        layer = document.find_layer(places[0])
        at = Origin(type(document)(layer.data, (layer,)) if layer else document, head)
        inner = _begun(at, model, there.get(str(head[-1])))
        if inner is None or (not places[1:] and str(head[-1]) not in there):
            continue
        for place in places:
            *parents, name = homes[place].path[len(head) :]
            holder = inner
            for part in parents:
                holder = holder.setdefault(str(part), {})
            parent = nested_model(model, homes[place].path[:-1])
            turns = turn(parent, str(place[-1]), written) if parent else {}
            holder.update(turns or {str(name): homes[place].value})
        names = (*([str(head[-1])] if str(head[-1]) in there else []), *(str(place[-1]) for place in places))
        turned = Turned(around, names, around, {str(head[-1]): inner})
        yield places[0], turned


def _begun(at: Origin, model: type[BaseModel], value: object) -> dict[str, Any] | None:
    """Return the fields of a mapping to which others are added, or None if they can be added on lines of their own.

    They cannot to a mapping in braces, nor to a value that means one field of it.
    """
    if value is None or value == {}:
        return {}
    meant = value if isinstance(value, dict) else as_meant(model, at.path, value)
    if not isinstance(meant, dict) or (meant is value and not as_written(at).startswith("{")):
        return None
    return {name: part for name, part in meant.items() if not lacks(part)}


def moved(document: Document, place: Path, homes: Sequence[Home]) -> str:
    """Return how to get an unknown field into one of its homes: as text in its place, if that is possible and short."""
    name, around, home = str(place[-1]), place[:-1], homes[0]
    below = home.path[len(around) :]
    is_below = home.path[: len(around)] == around
    into = _mapping_of(place, home)
    if len(homes) == 1 and is_below and below[0] not in written_beside(document, place, around):
        value = home.value
        for part in reversed(below[1:]):
            value = [value] if isinstance(part, int) else {part: value}
        if line := as_line(value):
            profiles = [*_profiles_of(document.data, place)]
            replaced = f" in place of {joined(in_code(profiles).split(', '))}" if profiles[1:] else ""
            return f"write `{below[0]}: {line}`{replaced}"
    line = as_line({str(home.path[-1]): home.value})[1:-1]
    if len(homes) == 1 and line and home.value != value_at(document.data, place) and into != home.path:
        return f"write `{line}` below {_shown(into)}, in place of `{name}`"
    where = joined(list(dict.fromkeys(_shown(_mapping_of(place, home)) for home in homes[:_MOST])), "or")
    aliases = list(dict.fromkeys(str(home.path[-1]) for home in homes if _mapping_of(place, home) != home.path))
    renamed = f" as {joined(in_code(aliases).split(', '), 'or')}" if aliases not in ([], [name]) else ""
    return f"move {_moving(name, home.value)} into {where}{renamed}"


def _moving(name: str, value: object) -> str:
    return f"`{name}`, with what is below it," if isinstance(value, dict | list) else f"`{name}`"


def _mapping_of(place: Path, home: Home) -> Path:
    """Return the mapping in which an entry of a home stands: the home itself for a MIG profile."""
    return home.path if _PROFILE.fullmatch(str(place[-1])) else home.path[:-1]


_MOST: Final = 3


def _shown(path: Path) -> str:
    return f"`{shown(path)}`" if path else "the document itself"


def shown(path: Path) -> str:
    """Return a path as findings show it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _indented(document: Document, place: Path, meant: Home) -> str:
    """Return the spaces by which to indent a field that stands right below the mapping that it belongs into."""
    home = _mapping_of(place, meant)
    if home != meant.path and meant.path[-1] != place[-1]:
        return ""
    if meant.value != value_at(document.data, place) or value_at(document.data, home) == {}:
        return ""
    is_right = home == place[:-2]
    if not is_right and home[:-1] != place[:-1]:
        return ""
    written = written_beside(document, place, place[:-1])
    if not is_right and home[-1] not in written:
        return ""
    location = Origin(document, place).key.locate()
    line, column = location.span.start
    siblings: list[str | int] = [*written]
    value = mapping(value_at(document.data, home))
    if is_right:  # and the last of its mapping
        is_next = siblings[-1] == place[-1]
        wanted = Origin(document, place[:-1]).key.locate().span.start.column
    else:
        is_next = siblings.index(place[-1]) == siblings.index(home[-1]) + 1
        first = next(iter(value), None)
        home_column = Origin(document, home).key.locate().span.start.column
        wanted = home_column + 2 if first is None else Origin(document, (*home, first)).key.locate().span.start.column
    change = wanted - column
    is_first_in_line = not location.file.lines[line - 1][: column - 1].strip()
    in_block = is_first_in_line and (not value or is_right or change > 0)
    if not is_next or not in_block or not change:
        return ""
    return f"indent `{place[-1]}`, and what is below it, by {abs(change)} {'more' if change > 0 else 'fewer'}"
