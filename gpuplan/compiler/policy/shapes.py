"""Values as a field takes them, made of what somebody wrote there in another shape."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import chain
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.documents.scalars import read_plain
from gpuplan.compiler.policy.data.elsewhere import CALLED
from gpuplan.compiler.policy.data.values import WORDS
from gpuplan.compiler.policy.fields import document, fields_along, nested_model
from gpuplan.compiler.policy.marks import AnyText, Keyed, Main, find_mark, marks_of, models_in
from gpuplan.compiler.policy.texts import form_of, is_quantity, quantity_meant

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LONGEST: Final = 120
"""The characters of a value that a line of help shows."""


class Absent:
    """A value that only the user knows, in a mapping that needs it."""


def as_meant(model: type[BaseModel], place: Path, value: object) -> object | None:
    """Return the value that was most likely meant by a wrong one at a place, or None if there is no such value.

    All that was written is in it. Where it needs a field that nobody wrote, it holds `Absent`.
    """
    if isinstance(value, str | dict | list) and len(value) > LONGEST:
        return None
    candidates = [*_candidates(model, place, value)]
    whole = (_completed(model, place, candidate, may_lack=False) for candidate in candidates)
    partial = (_completed(model, place, candidate, may_lack=True) for candidate in candidates)
    return next((found for found in chain(whole, partial) if found is not None), None)


def accepts(model: type[BaseModel], place: Path, value: object) -> bool:
    """Whether a field of a document takes a value, whatever else the document says."""
    return not flaws(model, place, value)


def taken(model: type[BaseModel], place: Path, value: object) -> object | None:
    """Return the value in the shape that a field takes, or None if there is none."""
    return value if accepts(model, place, value) else as_meant(model, place, value)


def example_of(model: type[BaseModel], place: Path) -> str:
    """Return `, such as` and a value that the documentation of a field has and the field takes; nothing without one."""
    parent, field = nested_model(model, place[:-1]), next(reversed([*fields_along(model, place)]), None)
    if parent is not None:
        document(parent)
    texts = _EXAMPLE.findall((field and field.description) or "")
    return next((f", such as `{text}`" for text in texts if accepts(model, place, _read(f"a: {text}", "a"))), "")


_EXAMPLE: Final = regex("such as `([^`]+)`")
_BEFORE_EXAMPLE: Final = len(", such as `")


def annotation_at(model: type[BaseModel], place: Path) -> object:
    """Return the type of what stands at a place of a document, or None if no field leads there."""
    here: object = model
    for part in place:
        here = next(_inside(here, part), None)
    return here


def mend(model: type[BaseModel], place: Path, text: str) -> str:
    """Return the words for the text that was most likely meant by a wrong one, or nothing.

    A bare number of time is in the unit of the field's default.
    """
    fields = [*fields_along(model, place)][-1:]
    usual = fields[0].get_default() if fields and not fields[0].is_required() else None
    if isinstance(usual, str) and text.isdecimal() and (unit := _UNIT.fullmatch(usual)) and text.strip("0"):
        return f"`{text}{unit[1]}`"
    marks = [mark for field in fields for mark in marks_of(field)]
    patterns = [pattern for mark in marks if (pattern := getattr(mark, "pattern", None))]
    return next((meant for pattern in patterns if (meant := form_of(str(pattern)).mend(text))), "")


_UNIT: Final = regex(r"[0-9]+([hms])")


def as_line(value: object) -> str:
    """Return a value as a policy says it on one line, or an empty text if it is too long for a line of help."""
    text = _in_flow(value)
    return text if len(text) <= LONGEST and "\n" not in text else ""


# --- Trials ----------------------------------------------------------------------------------------------------------


def _completed(model: type[BaseModel], place: Path, value: object, *, may_lack: bool) -> object | None:
    """Return a value with `Absent` for what it lacks, or None if anything else is wrong with it.

    A value that `may_lack` something needs one of several fields besides.
    """
    found = flaws(model, place, value).items()
    wrong = {path: problem for path, problem in found if not isinstance(value_at(value, path), Absent)}
    open_ = [path for path, problem in wrong.items() if problem == "exactly_one" and may_lack]
    if any(problem != "missing" or not path for path, problem in wrong.items() if path not in open_) or () in open_[1:]:
        return None
    for path in wrong:
        value = _with(value, (*path, Absent()) if path in open_ else path, Absent())
    return value if (isinstance(value, dict) and any(isinstance(key, str) for key in value)) or not open_ else None


def _with(value: Any, path: tuple[object, ...], part: object) -> object:  # noqa: ANN401 - plain YAML data
    if not path:
        return part
    if isinstance(value, list):
        return [_with(item, path[1:], part) if index == path[0] else item for index, item in enumerate(value)]
    return {**value, path[0]: _with(value.get(path[0], {}), path[1:], part)}


def flaws(model: type[BaseModel], place: Path, value: object) -> Mapping[Path, str]:
    """Return what is wrong with a value at a place, by the path in it, in a document that says nothing else."""
    data = value
    for part in reversed(place):
        data = [data] if isinstance(part, int) else {part: data}
    depth = len(place)
    try:
        model.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        found = {path_of(data, problem): problem["type"] for problem in errors}
        bare = tuple(0 if isinstance(part, int) else part for part in place)
        return {path[depth:]: problem for path, problem in found.items() if path[:depth] == bare}
    return {}


def path_of(data: Any, problem: ErrorDetails) -> Path:  # noqa: ANN401 - plain YAML data
    """Return the path of an error in a document, without members of unions and `[key]`, which are not in the file."""
    path: Path = ()
    for index, part in enumerate(problem["loc"], 1):
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and part in range(len(data))):
            path, data = (*path, part), value_at(data, (part,))
        elif problem["type"] == "missing" and index == len(problem["loc"]):
            path = (*path, part)
    return path


def value_at(data: Any, path: Path) -> object:  # noqa: ANN401 - plain YAML data
    """Return the value at a path, or None if there is none."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        else:
            data = data[part] if isinstance(data, list) and isinstance(part, int) and part < len(data) else None
    return data


def mapping(value: object) -> Mapping[str, object]:
    """Return a value if it is a mapping, and an empty one in place of any other value."""
    return value if isinstance(value, dict) else {}


# --- Types -----------------------------------------------------------------------------------------------------------


def _members(annotation: object) -> Iterator[Any]:
    """Yield the types of which a value may have any."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _members(arguments[0])
    elif origin in (Union, UnionType):
        for member in arguments:
            yield from _members(member)
    elif annotation is not NoneType:
        yield annotation


def _inside(annotation: object, part: str | int) -> Iterator[Any]:
    for member in _members(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            yield from (field.rebuild_annotation() for field in member.model_fields.values() if field.alias == part)
        elif get_origin(member) is (list if isinstance(part, int) else dict):
            yield get_args(member)[-1]


def is_list(annotation: object) -> bool:
    """Whether a field holds a list."""
    return any(get_origin(member) is list for member in _members(annotation))


# --- What may have been meant ----------------------------------------------------------------------------------------


def _candidates(model: type[BaseModel], place: Path, value: object) -> Iterator[object]:
    if (inner := _inner(place, value)) != value:
        value = inner
        yield value
    for member in _members(annotation_at(model, place)):
        if isinstance(member, type) and issubclass(member, BaseModel):
            yield from _as_fields(model, member, place, value)
        elif get_origin(member) is list:
            yield from _as_list(model, place, value)
        elif get_origin(member) is dict:
            for entries in _as_entries(value, get_args(member)[-1]):
                yield entries
                meant = {name: as_meant(model, (*place, name), part) for name, part in entries.items()}
                yield {name: part if meant[name] is None else meant[name] for name, part in entries.items()}
        elif member is bool:
            yield from (is_so for is_so, words in _TRUTHS if str(value).lower() in words)
        elif member in (int, float):
            is_part = member is float and not accepts(model, place, 1.5)
            yield from _as_number(str(place[-1]), value, is_whole=member is int, is_part=is_part)
        elif member is str:
            yield from _as_text(model, place, value)
        elif get_origin(member) is Literal or (isinstance(member, type) and issubclass(member, Enum)):
            words = [str(word) for word in get_args(member) or [word.value for word in member]]
            if found := _word(str(place[-1]), str(value), words):
                yield found
    yield from _unwrapped(model, place, value)


def _inner(place: Path, value: object) -> object:
    """Return the lines behind a `|` that made a text of them, and what stands in a field that stands in itself."""
    if isinstance(value, str) and "\n" in value:
        return _read(value)
    return value[str(place[-1])] if isinstance(value, dict) and [*value] == [place[-1]] else value


def _unwrapped(model: type[BaseModel], place: Path, value: object) -> Iterator[object]:
    """Yield the value that stands alone in a list, or in a mapping under a word for it: `{count: 2}`, `{name: a}`."""
    name, parent = str(place[-1]), nested_model(model, place[:-1])
    inner: object = value
    if isinstance(value, list) and len(value) == 1:
        inner = value[0]
    elif isinstance(value, str):
        inner = value.strip()
    elif isinstance(value, dict) and len(value) == 1:
        ((word, part),) = value.items()
        words = {name, *_OF_A_VALUE, *(CALLED.get(parent.__name__, {}).get(name, "").split() if parent else ())}
        is_word = word in words or bare(word) == bare(name) or word.startswith("nvidia.com/")
        inner = part if is_word else value
    if inner != value:
        yield inner
        yield from filter(lambda better: better is not None, [as_meant(model, place, inner)])


def _read(text: str, name: str = "") -> object:
    """Return what a text says as YAML, or a field of it; the text if it says no mapping and no list."""
    from gpuplan.compiler.documents import read_text

    documents, found = read_text("text.yaml", text)
    said = dict(documents[0].data) if len(documents) == 1 and not found else text
    return said[name] if name and isinstance(said, dict) else said


def _word(field: str, text: str, words: list[str]) -> str | None:
    """Return the word of a field that another spelling, a longer name or another program's word means."""
    same = [word for word in words if bare(word) == bare(text)]
    theirs = [word for word in words if bare(text) in WORDS.get((field, word), "").split()]
    parts = [part.lower() for part in re.split(r"[\s_-]+", text)]
    short = [word for word in words if parts[1:] and word == "".join(part[:1] for part in parts)]
    named = [word for word in words if word.lower() in parts]
    return next((found[0] for found in (same, theirs, short, named) if len(found) == 1), None)


_TRUTHS: Final = (
    (True, ("true", "yes", "on", "y", "1", "enabled", "enable", "always")),
    (False, ("false", "no", "off", "n", "0", "disabled", "disable", "never", "none")),
)
_NUMBERS: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_NUMBER: Final = regex(r"\s*(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(%|[A-Za-z]*)\s*")
_THOUSANDS: Final = regex(r"-?[0-9]{1,3}\.[0-9]{3}")  # or thousandths: nobody knows
_MIB: Final = {"mi": 1, "mib": 1, "mb": 1, "gi": 1024, "gib": 1024, "gb": 1024}


def _as_number(name: str, value: object, *, is_whole: bool, is_part: bool) -> Iterator[float]:
    text = str(value).lower()
    if text in _NUMBERS:
        yield _NUMBERS.index(text)
    found = _NUMBER.fullmatch(text)
    if found is None or isinstance(value, bool) or _THOUSANDS.fullmatch(found[1]):
        return
    number, unit = float(found[1]), found[2]
    if unit == "%" and is_part:
        number /= 100
    elif unit == "%" and not (is_whole and "weight" in name.lower()):
        return  # nobody knows how many that is
    elif name.endswith("MiB") and unit:
        number *= _MIB.get(unit, 0)
    elif unit not in ("", "%", "x") and (len(unit) < _SHORTEST_NOUN or unit in ("percent", "pct")):
        return
    if is_whole and not number.is_integer():
        return
    yield int(number) if number.is_integer() else number


_SHORTEST_NOUN: Final = 3
"""The letters of a word behind a number that is a noun, such as `gpu` in `8 GPUs`, and no unit of measurement."""


def _as_text(model: type[BaseModel], place: Path, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _as_one_text(value)
    if value is None:
        yield ""
    if isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, int | float | str):
        yield from (str(value), str(value).lower())
        meant = mend(model, place, str(value))
        yield from _IN_CODE.findall(meant)[:1] or ([meant.strip('"')] if meant else [])


_IN_CODE: Final = regex("`([^`]*)`")


def _as_one_text(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield the image that a mapping of its parts means."""
    parts = {name: str(fields[name]) for name in ("registry", "repository", "tag", "digest") if name in fields}
    if "repository" in parts:
        tag = f"@{parts['digest']}" if "digest" in parts else f":{parts['tag']}" if "tag" in parts else ""
        yield "/".join(parts[name].strip("/") for name in ("registry", "repository") if name in parts) + tag


def _as_list(model: type[BaseModel], place: Path, value: object) -> Iterator[list[object]]:
    field = next(reversed([*fields_along(model, place)]), None)
    inner = nested_model(model, (*place, 0))
    needed = [known.alias or name for name, known in inner.model_fields.items() if known.is_required()] if inner else []
    keyed = find_mark(field, Keyed) if field else None
    keys = keyed.fields if keyed else (*needed[:1],)
    is_program = field is not None and find_mark(field, AnyText) is not None
    items: Sequence[object] = [] if value is None else [value]
    if isinstance(value, str):
        items = _words(value) if is_program else [part for part in _SEPARATOR.split(value) if part]
        if not is_program and value.startswith("-"):
            items = [str(item).removeprefix("-") for item in items if item != "-"]
        pairs = dict(pair for item in items for pair in _pairs(item)) if keys else {}
        if pairs and len(pairs) == len(items):
            yield [_keyed(model, place, keys[0], name, part) for name, part in pairs.items()]
        if (span := _SPAN.fullmatch(value)) and int(span[1]) < int(span[2]):
            yield [*range(int(span[1]), int(span[2]) + 1)]
    elif isinstance(value, dict):
        yield [{str(name).removeprefix("-"): part for name, part in value.items()}]
        if is_program:
            options = [(f"--{name}" if len(name) > 1 else f"-{name}") if name[:1] != "-" else name for name in value]
            pairs_of = zip(options, value.values(), strict=True)
            yield [text for name, part in pairs_of for text in (name, *(() if part in (None, True) else (str(part),)))]
        fields = {name: [key for key in keys if name in (key, f"{key}s")] for name in value}
        if all(fields.values()) and all(isinstance(part, list) for part in value.values()):
            yield [{fields[name][0]: item} for name, part in value.items() for item in part]
        yield from ([_keyed(model, place, key, name, part) for name, part in value.items()] for key in keys[:1])
        items = [*value] if all(part in (None, True) or part == {} for part in value.values()) else []
    elif isinstance(value, list):
        items = value
    if items:
        yield [item if (better := as_meant(model, (*place, 0), item)) is None else better for item in items]


_SPAN: Final = regex(r"\s*([0-9]{1,2})\s*(?:-|\.\.)\s*([0-9]{1,2})\s*")
_SEPARATOR: Final = regex(r"[,;\s]+")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _keyed(model: type[BaseModel], place: Path, key: str, name: str, part: object) -> object:
    """Return an item that names itself, of an entry whose key was the name."""
    inner = part if isinstance(part, dict) else as_meant(model, (*place, 0), part)
    if isinstance(inner, dict):
        return {key: name, **{field: rest for field, rest in inner.items() if field != key or rest == name}}
    return {key: name, "": part}


def _as_entries(value: object, inner: object) -> Iterator[dict[str, object]]:
    """Yield the mapping that a list of entries means, or a text such as `a=b,c=d`; with names alone, their numbers."""
    items = _SEPARATOR.split(value) if isinstance(value, str) else value if isinstance(value, list) else []
    is_of_models = any(isinstance(member, type) and issubclass(member, BaseModel) for member in _members(inner))
    pairs = [pair for item in items for pair in _pairs(item, is_of_models=is_of_models)]
    if pairs and len(dict(pairs)) == len(pairs) >= len(items):
        yield dict(pairs)
    if int in _members(inner):
        times = [found for item in items if isinstance(item, str) and (found := _TIMES.fullmatch(item))]
        counts: Counter[str] = Counter()
        for found in times:
            counts[found[2]] += int(found[1] or 1)
        if times and len(times) == len(items):
            yield dict(counts)


_TIMES: Final = regex(r"(?:([0-9]{1,3})\s*[x*]\s*)?([0-9]*[A-Za-z][^=:\s]*)")
"""A name, and the number of them before it: `7x1g.10gb`."""


def _pairs(entry: object, *, is_of_models: bool = False) -> Iterator[tuple[str, object]]:
    """Yield the entries that an item of a list means: `a=b`, `a: b`, or a name and what has it."""
    if isinstance(entry, str) and (found := _ASSIGNMENT.fullmatch(entry)):
        number = _NUMBER.fullmatch(found[2])
        yield found[1], int(found[2]) if number and found[2].isdecimal() else found[2]
    elif isinstance(entry, dict) and len(entry) > 1 and isinstance(name := next(iter(entry.values())), str):
        rest = {key: part for key, part in [*entry.items()][1:] if (key, part) != ("protocol", "TCP")}
        yield (
            name,
            next(iter(rest.values())) if len(rest) == 1 and (not is_of_models or {*rest} & _OF_A_VALUE) else rest,
        )
    elif isinstance(entry, dict) and len(entry) == 1:
        yield from entry.items()


_OF_A_VALUE: Final = {
    *("value", "count", "valueFrom", "number", "quantity", "amount"),
    *("name", "key", "id", "enabled", "version", "size", "type", "kind", "matchLabels"),
}
_ASSIGNMENT: Final = regex(r"([^=:\s]+)\s*[=:]\s*(.+)")


_TAINT: Final = regex(r"(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?:(?P<effect>[A-Z][A-Za-z]+)")
"""A taint as `kubectl taint` takes it."""


def _as_fields(
    model: type[BaseModel], member: type[BaseModel], place: Path, value: object
) -> Iterator[dict[str, object]]:
    """Yield the mapping that a bare value means, by the field that such a value is for."""
    fields = [(field.alias or name, field) for name, field in member.model_fields.items()]
    if isinstance(value, list) and value and all(isinstance(item, dict) and len(item) == 1 for item in value):
        entries: list[dict[str, object]] = value
        yield {name: part for entry in entries for name, part in entry.items()}
    if value is True:
        yield {}
    if (
        isinstance(value, str)
        and (parts := value.split("/"))[1:] == parts[-1:]
        and {"namespace", "name"} <= {*names_in(member)}
    ):
        yield {"name": parts[1], "namespace": parts[0]}
    if isinstance(value, str) and (taint := _TAINT.fullmatch(value)):
        yield {name: part for name, part in taint.groupdict().items() if part}
    main = {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, Main)}
    words = [name for name, field in fields if _is_of_words(name, field.annotation, value)]
    read = next((mark.read for mark in main.values() if mark.read and not words), None)
    usual = [name for name, field in fields if name in words and value == field.get_default()]
    if any(flaws(model, place, {name: value}) for name in usual):
        return  # which holds without a word, and leaves open what there is
    if read and isinstance(value, str):
        yield from filter(None, [{**read(value)}])
    if (read and isinstance(value, str)) or isinstance(value, dict) or value is None or value == "":
        return
    required = [name for name, field in fields if field.is_required()]
    taken = required if len(required) == 1 else [name for name in required if accepts(model, (*place, name), value)]
    named = [*main] or (taken if len(taken) == 1 else [])
    forms = [form for form, _ in _TELLING if isinstance(value, str) and form.match(value)]
    telling = [name for name, _ in fields if any(name in names.split() for form, names in _TELLING if form in forms)]
    names = dict.fromkeys(telling or (() if value is False or (forms and not main) else words or named))
    if isinstance(value, str) and not is_quantity(value):
        amounts = [name for name in names if is_quantity(example_of(model, (*place, name))[_BEFORE_EXAMPLE:-1])]
        amounts = [name for name in amounts if accepts(model, (*place, name), value)]  # whatever its type takes
        yield from ({name: text} for name in amounts for text in _IN_CODE.findall(quantity_meant(value))[:1])
        names = {name: None for name in names if name not in amounts}
    yield from ({name: value} for name in names if accepts(model, (*place, name), value))
    meant = ((name, as_meant(model, (*place, name), value)) for name in names)
    yield from ({name: better} for name, better in meant if better is not None)
    is_many = isinstance(value, list)
    lists = [name for name, _ in fields if is_many and name not in named and accepts(model, (*place, name), value)]
    yield from ({name: value} for name in lists if len(lists) == 1)
    word, _, number = str(value).partition("=")  # `mps=2`, as `gpuplan init --pool` has it
    others = CALLED.get(member.__name__, {})
    called = [name for name, _ in fields if bare(word) in (bare(name), *others.get(name, "").split())]
    alike = [name for name, field in fields if name in called and [*models_in(field.annotation)]]
    if number.isdecimal():
        meant = ((name, as_meant(model, (*place, name), int(number))) for name in alike)
        yield from ({name: better} for name, better in meant if better is not None)
    nothing: dict[str, object] = {}
    yield from (dict[str, object]({name: nothing}) for name in alike if not number)


_TELLING: Final = (
    (regex(r"(https?|oci|ssh)://"), "server repoURL url hosts"),
    (regex(r"/"), "mountPath path http command"),
    (regex(r"(s3|gs|hf|pvc)://"), ""),
)
"""Forms of texts that tell for which fields they are."""


def names_in(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _is_of_words(name: str, annotation: object, value: object) -> bool:
    """Whether a field holds one of a few words, and this is one of them, in any spelling."""
    kinds = [*_members(annotation)]
    words = [word.value for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for word in kind]
    words += [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    is_one = isinstance(value, str) and _word(name, value, [str(word) for word in words]) is not None
    return is_one or (isinstance(value, bool) and kinds == [bool])


@lru_cache(maxsize=4096)
def bare(text: str) -> str:
    """Return a name without what sets its words apart."""
    return re.sub(r"[\W_]+", "", text).lower()


# --- As a policy says it ---------------------------------------------------------------------------------------------


def _in_flow(value: object) -> str:
    match value:
        case Absent():
            return "..."
        case dict():
            names = ("" if isinstance(key, Absent) else f"{_in_flow(key)}: " for key in value)
            entries = (f"{name}{_in_flow(part)}" for name, part in zip(names, value.values(), strict=True))
            return f"{{{', '.join(entries)}}}"
        case list():
            return f"[{', '.join(map(_in_flow, value))}]"
        case str():
            is_plain = _PLAIN.fullmatch(value) is not None and read_plain(value) == (value, None)
            return value if is_plain else json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(value, default=str)


_PLAIN: Final = regex(
    r"(?![-?:]\s|[-?:]$)[^\s\[\]{},#&*!|>'\"%@`\\](?:[^\[\]{},\\\s:#]|:(?=\S)|(?<=\S)#|[ ](?=[^#\s]))*"
)
