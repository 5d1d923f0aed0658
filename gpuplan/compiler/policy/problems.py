"""Tell what is wrong with a document, pydantic's errors one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Path
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.compiler.policy import rules
from gpuplan.compiler.policy.elsewhere import find_said
from gpuplan.compiler.policy.fields import command_for, nested_model
from gpuplan.compiler.policy.marks import AlsoCalled, find_mark
from gpuplan.compiler.policy.models import API_VERSION, KINDS
from gpuplan.compiler.policy.texts import NOT_A_QUANTITY, NOT_A_REFERENCE, form_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from gpuplan.compiler.documents import Document


def problems_by_place(document: Document, error: ValidationError) -> dict[Path, ErrorDetails]:
    """The errors by the path in the document that they are about; a union reports once per member."""
    problems: dict[Path, list[ErrorDetails]] = {}
    for problem in error.errors(include_url=False, include_context=True):
        data = document.data
        path: Path = ()
        loc = problem["loc"]  # which also holds union members and `[key]`, which are not in the file
        for index, part in enumerate(loc):
            if _holds(data, part):
                path, data = (*path, part), data[part]
            elif problem["type"] == "missing" and index == len(loc) - 1:
                path = (*path, part)
        problems.setdefault(path, []).append(problem)
    return {place: _join(found) for place, found in problems.items()}


def describe(
    document: Document, model: type[BaseModel], problems: Mapping[Path, ErrorDetails]
) -> tuple[Diagnostic, ...]:
    """Return a finding for each mistake, in the order in which pydantic met them."""
    homes: dict[Path, Path] = {}
    following = set(_misspelt(problems))  # which are no problems once all fields are where they belong
    for place, problem in problems.items():
        if problem["type"] == "extra_forbidden" and place[-2:] not in _REMEDIES:
            home = _home(document, model, place)
            if home is not None:
                homes[place] = home
                following.add((*home, place[-1]))
                if home in problems and (_get(document.data, home) is None or problems[home]["type"] == "exactly_one"):
                    following.add(home)
    around = {place[:length] for place in problems for length in range(len(place))}
    found: list[Diagnostic] = []
    for place, problem in problems.items():
        # If a member of a union found a mistake inside of a value, the other members add nothing.
        is_of_member = problem["type"] == "literal_error" or problem["type"] in _EXPECTED_TYPES
        if place in following or (is_of_member and place in around):
            continue
        if place in homes:
            found.append(rules.UNKNOWN_FIELD.report(_misplaced(document, place, homes[place])))
        else:
            found.append(_report(document, model, place, problem))
    return tuple(found)


def unknown_kind(document: Document) -> Diagnostic:
    at = document.origin / "kind"
    known = ", ".join(f"`{kind}`" for kind in KINDS)
    if not document.kind:
        is_nvidias = any(name in document.data for name in _FILES_OF_NVIDIA)
        help_ = f"run `gpuplan import {document.file.path}` for policies that say it" if is_nvidias else ""
        finding = Finding(document.origin, "document has no `kind`", notes=(f"the kinds are {known}",), help=help_)
        return rules.UNKNOWN_KIND.report(finding)
    close = closest(document.kind, KINDS)
    return rules.UNKNOWN_KIND.report(
        Finding(
            at,
            f"unknown kind `{document.kind}`",
            label="no part of a platform" if command_for(document.kind) else "not a kind of gpuplan.dev/v1",
            notes=(f"the kinds are {known}",),
            help=f"write `kind: {close}`" if close else _way_of(document),
        )
    )


_FILES_OF_NVIDIA: Final = ("mig-configs", "sharing")
"""The fields at the top of files of the MIG manager and of the device plugin, which have no kind."""


def _way_of(document: Document) -> str:
    """Where a document of another kind belongs: policies may be made of it."""
    by_hand = "overlays/<cluster>/kustomize/"
    if command := command_for(document.kind):
        run = f"run `gpuplan {command} {document.file.path}`"
        return f"move it out of the platform's folders, and {run} with where it is then"
    if not _is_imported(document):
        return f"plain Kubernetes objects go to {by_hand}"
    return f"run `gpuplan import {document.file.path}` for policies that say it, or move it to {by_hand}"


def _is_imported(document: Document) -> bool:
    from gpuplan.compiler.manifests.kinds.imported import READ

    group, slash, _ = str(document.data.get("apiVersion")).partition("/")
    kind = group if slash else "", document.kind
    return kind in READ or kind == ("", "List")


# --- Fields that stand in the wrong place ---------------------------------------------------------------------------


def _home(document: Document, model: type[BaseModel], place: Path) -> Path | None:
    """The mapping one level off that knows the field and does not have it; None where there is none, or several."""
    around, name = place[:-1], place[-1]
    written, parent = _mapping(_get(document.data, around)), nested_model(model, around)
    known = [field.alias for field in parent.model_fields.values() if field.alias in written] if parent else []
    homes = [(*around, key) for key in known if key and _has_room(document, model, (*around, key), name)]
    if not homes and around and _has_room(document, model, around[:-1], name):
        return around[:-1]
    if len(homes) > 1:
        names = list(written)
        homes = [home for home in homes if names.index(str(home[-1])) + 1 == names.index(str(name))]
    return homes[0] if homes else None


def _has_room(document: Document, model: type[BaseModel], home: Path, name: str | int) -> bool:
    inner, value = nested_model(model, home), _get(document.data, home)
    is_free = value is None or (isinstance(value, dict) and name not in value)
    return is_free and inner is not None and any(field.alias == name for field in inner.model_fields.values())


def _misplaced(document: Document, place: Path, home: Path) -> Finding:
    at, name = Origin(document, place), place[-1]
    into = f"`{Origin(document, home)}`" if home else "the document itself"
    indented = _indented(document, place, home)
    return Finding(
        at.key,
        f"field `{name}` belongs into {into}",
        label=f"one level too far {'right' if len(home) < len(place) - 1 else 'left'}",
        help=indented or f"move `{name}`, with what is below it, into {into}",
    )


def _indented(document: Document, place: Path, home: Path) -> str:
    """Return the spaces by which to indent a field that stands right below the mapping that it belongs into."""
    location = Origin(document, place).key.locate()
    line, column = location.span.start
    siblings: list[str | int] = [*_mapping(_get(document.data, place[:-1]))]
    value = _mapping(_get(document.data, home))
    if len(home) < len(place) - 1:  # too far right, and the last of its mapping
        is_next = siblings[-1] == place[-1]
        wanted = Origin(document, place[:-1]).key.locate().span.start.column
    else:
        is_next = siblings.index(place[-1]) == siblings.index(home[-1]) + 1
        first = next(iter(value), None)
        home_column = Origin(document, home).key.locate().span.start.column
        wanted = home_column + 2 if first is None else Origin(document, (*home, first)).key.locate().span.start.column
    change = wanted - column
    is_first_in_line = not location.file.lines[line - 1][: column - 1].strip()
    in_block = is_first_in_line and (not value or len(home) < len(place) - 1 or change > 0)
    if not is_next or not in_block or not change:
        return ""
    return f"indent `{place[-1]}`, and what is below it, by {abs(change)} {'more' if change > 0 else 'fewer'}"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _misspelt(problems: Mapping[Path, ErrorDetails]) -> Iterator[Path]:
    """Fields that are missing because they are miswritten, which is said of how they are written."""
    unknown: dict[Path, list[str]] = {}
    for place, problem in problems.items():
        if problem["type"] == "extra_forbidden":
            unknown.setdefault(place[:-1], []).append(str(place[-1]))
    for place, problem in problems.items():
        if problem["type"] == "missing":
            name = str(place[-1])
            written = unknown.get(place[:-1], ())[:_FEW]
            if any(closest(field, [name]) or _with_colon(field, [name]) for field in written):
                yield place


_FEW = 20

# --- Which errors count ------------------------------------------------------------------------------------------


def _join(errors: list[ErrorDetails]) -> ErrorDetails:
    """The error of the member that the value was most likely meant for, with what another one takes as `or`."""
    telling = [error for error in errors if error["type"] != "none_required"] or errors
    words = next((error for error in telling if error["type"] == "literal_error"), None)
    other = next((error for error in telling if error is not words), None)
    if words is None and other is not None:
        refused = next((error for error in telling if error["type"] not in _EXPECTED_TYPES), None)
        first, *others = telling
        if refused or not others:
            return refused or first
        return {**first, "ctx": {**first.get("ctx", {}), "or": _EXPECTED_TYPES[others[0]["type"]]}}
    if words is None or other is None:
        return telling[-1]
    if isinstance(words["input"], str) and not _is_number(words["input"]):
        by_form = other["type"] == "string_pattern_mismatch"
        taken = form_of(other["ctx"]["pattern"]).words if by_form else _EXPECTED_TYPES.get(other["type"], "")
        return {**words, "ctx": {**words.get("ctx", {}), "or": taken}}
    return {**other, "ctx": {**other.get("ctx", {}), "or": _listed(_words(words.get("ctx", {})))}}


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _get(data: Any, path: Path) -> object:  # noqa: ANN401 - plain YAML data
    for part in path:
        data = data[part]
    return data


# --- One function for each kind of error -------------------------------------------------------------------------


def _report(document: Document, model: type[BaseModel], place: Path, error: ErrorDetails) -> Diagnostic:
    at = Origin(document, place)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return rules.UNKNOWN_FIELD.report(_unknown_field(at, document.kind, model, error["input"]))
        case "missing":
            name, parent = at.path[-1], Origin(at.source, at.path[:-1])
            where = f"`{parent}`" if parent.path else "the document"
            return rules.MISSING_FIELD.report(
                Finding(parent.key, f"{where} has no `{name}`", label=f"`{name}` is missing", help=f"add `{name}:`")
            )
        case "exactly_one":
            return rules.NOT_EXACTLY_ONE.report(_not_exactly_one(document, model, place, context))
        case "literal_error" if place == ("apiVersion",):
            message = f"unknown apiVersion `{error['input']}`"
            help_ = _way_of(document) if _is_imported(document) else f"write `apiVersion: {API_VERSION}`"
            return rules.UNKNOWN_API_VERSION.report(Finding(at, message, help=help_))
        case kind if kind in _EXPECTED_TYPES:
            return rules.WRONG_TYPE.report(_wrong_type(at, kind, error["input"], context.get("or", ""), model))
        case kind:
            return rules.VALUE_NOT_ALLOWED.report(_value_not_allowed(at, kind, error["input"], context))


def _unknown_field(at: Origin, kind: str, model: type[BaseModel], value: object) -> Finding:
    name = str(at.path[-1])
    parent = nested_model(model, at.path[:-1])
    known = tuple(field.alias or key for key, field in parent.model_fields.items()) if parent else ()
    meant = _with_colon(name, known)
    if meant is not None:
        rest = f": {value}" if isinstance(value, str | int | float) else ""
        label = f"`{name.split(maxsplit=1)[0]}` has no `:` behind it"
        return Finding(at.key, f"unknown field `{name}`", label=label, help=f"write `{meant}{rest}`")
    marked = [(field.alias, find_mark(field, AlsoCalled)) for field in parent.model_fields.values()] if parent else []
    called = next((alias for alias, mark in marked if mark and name in mark.names), None)
    said = None if called else find_said(kind, name)
    close = called if called or said else closest(name, known)
    usual = f"write `{close}:`" if close else f"say it {said.how}: {said.page}" if said else f"remove `{name}`"
    return Finding(
        at.key,
        f"unknown field `{name}`",
        label=f"did you mean `{close}`" if close else "said in another way" if said else "not a field here",
        notes=(f"the fields here are {_listed(known)}",) if known else (),
        help=_REMEDIES.get(at.path[-2:], usual),
    )


def _with_colon(text: str, fields: Iterable[str]) -> str | None:
    """``name: a100`` for ``name a100``, where that is a field and what it holds; otherwise None."""
    name, _, rest = text.partition(" ")
    return f"{name}: {rest.lstrip()}" if rest.strip() and name in fields else None


_ALL_ALIKE = (
    "remove `devices`: the device plugin ignores it, and shares all GPUs of a node alike; "
    "GPUs in partitions may differ, by `mig.devices`"
)
"""(`disableResoureRenaming` in `api/config/v1/replicas.go` of NVIDIA/k8s-device-plugin, up to v0.20.0.)"""

_EQUAL_PARTS = (
    "remove it: the device plugin gives each share an equal part of memory and threads; a workload may take less, by "
    "`env: {CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: ..., CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: ...}`"
)
"""(`perDevicePinnedDeviceMemoryLimits` and `activeThreadPercentage` in `cmd/mps-control-daemon/mps` there.)"""

_LIMITS_OF_MPS = (
    "memory",
    "memoryLimit",
    "pinnedDeviceMemoryLimit",
    "defaultPinnedDeviceMemoryLimit",
    "threads",
    "activeThreadPercentage",
    "defaultActiveThreadPercentage",
)
"""Names that people give them, and the reason why NVIDIA's driver for DRA, whose MPS is alpha, does not help."""

_REMEDIES: Mapping[Path, str] = {
    ("$patch",): "write it beside the name: `metadata: {name: ..., $patch: delete}`",
    ("mig", "mps"): "remove `mps`, which does not work on MIG devices; `timeSlicing` does",
    ("timeSlicing", "devices"): _ALL_ALIKE,
    ("mps", "devices"): _ALL_ALIKE,
    **{("mps", name): _EQUAL_PARTS for name in _LIMITS_OF_MPS},
}
"""Advice on fields that are wrong for a reason, by the end of their path."""


def _not_exactly_one(document: Document, model: type[BaseModel], place: Path, context: Mapping[str, Any]) -> Finding:
    at, given = Origin(document, place), context["given"]
    if not given:
        data = _get(document.data, place)
        what, fields = context["what"], context["fields"]
        empty = next((name for name in fields if _holds(data, name)), None)
        if empty is None:
            return Finding(at.key, f"{what} is missing", help=f"give one of {_listed(fields)}")
        inner = nested_model(model, (*at.path, empty))
        return Finding(
            (at / empty).key,
            f"{what} is missing: `{empty}` has no value",
            label="empty",
            help=f"write `{empty}: {{}}`"
            if inner is not None and not inner.model_fields
            else f"write below `{empty}` what it is, or remove it",
        )
    both = " and ".join(f"`{name}`" for name in given)
    message = f"{context['what']} is given {len(given)} times: {both}"
    mps = ["MPS does not work on MIG devices; `timeSlicing` inside of `mig` does"] if {"mps", "mig"} <= {*given} else []
    notes = (f"exactly one of {_listed(context['fields'])} may stand here", *mps)
    kept = [name for name in given if (at / name).key.locate().file is document.file]
    added = [name for name in given if name not in kept]
    if not kept or not added:
        first, second, *_ = given
        return Finding((at / second).key, message, f"beside `{first}`", notes=notes, help=f"keep one of {both}")
    return Finding(
        (at / added[0]).key,
        message,
        label=f"`{kept[0]}` stays beside it",
        related=(Label((at / kept[0]).key, "what the base says"),),
        notes=notes,
        help=f"add `{kept[0]}: null` here to remove what the base says",
    )


_EXPECTED_TYPES = {
    "bool_type": "`true` or `false`",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
}


_TEXT_REMEDIES: Mapping[Path, str] = {
    ("spec", "fraction"): "write a number below 1 without quotes, or GPU memory as `{memory: 10Gi}`"
}
"""Advice on texts that are most likely meant as something else, by the end of the path."""


def _wrong_type(at: Origin, kind: str, value: object, alternative: str, model: type[BaseModel]) -> Finding:
    expected = f"{_EXPECTED_TYPES[kind]} or {alternative}" if alternative else _EXPECTED_TYPES[kind]
    return Finding(
        at,
        f"`{at}` should be {expected}, not {_type_name(value)}",
        label=f"this is {_type_name(value)}",
        help=_said_for_no_bound(at, value)
        or _TEXT_REMEDIES.get(at.path[-2:] if isinstance(value, str) else ())
        or (_mapping_help(at, value, nested_model(model, at.path)) if kind in _MAPPINGS else _type_help(kind, value)),
    )


_MAPPINGS = ("model_type", "model_attributes_type", "dict_type")


def _mapping_help(at: Origin, value: object, model: type[BaseModel] | None) -> str:
    """Return how to write a mapping in place of a value, which may be the name of a field."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()} if model else {}
    if isinstance(value, str) and value in fields and model is not None:
        inner = nested_model(model, (value,))
        if inner is not None and _is_valid(inner, {}):
            return f"write `{at.path[-1]}: {{{value}: {{}}}}`"
        return f"write `{value}:` on a line below it, and what it is"
    if isinstance(value, str) and (meant := _with_colon(value, fields or value.split()[:1])):
        return f"write `{meant}`"
    if not fields:
        return "write `key: value` lines below it, or `{}`"
    lines = f"write {_listed(fields)} below it" if len(fields) == 1 else f"write fields below it: {_listed(fields)}"
    return f"{lines}; or `{{}}`" if model is not None and _is_valid(model, {}) else lines


def _is_valid(model: type[BaseModel], data: Mapping[str, object]) -> bool:
    try:
        model.model_validate(data)
    except ValidationError:
        return False
    return True


def _type_help(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, bool | int):
        return f'put it in quotes: "{str(value).lower()}"'
    if kind == "string_type" and isinstance(value, float):
        return 'put the value in quotes, as it was written, such as "1.30"'
    if kind in ("int_type", "float_type") and isinstance(value, str) and _is_number(value):
        return f"write {value} without quotes"
    if kind in ("int_type", "int_from_float") and isinstance(value, float) and value.is_integer():
        return f"write {value:.0f}"
    if kind == "list_type":
        return "write a list: one `- ` item per line, or `[]`"
    return f"write {_EXPECTED_TYPES[kind]}"


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "a mapping")


_TYPE_NAMES = {
    NoneType: "nothing",
    bool: "`true` or `false`",
    int: "a number",
    float: "a number with a decimal point",
    str: "text",
    list: "a list",
}


def _value_not_allowed(at: Origin, kind: str, value: object, context: Mapping[str, Any]) -> Finding:
    shown = f"`{_CREDENTIALS.sub('//***@', str(value))}`" if isinstance(value, str | int | float) else "this value"
    alternative = f", or {context['or']}" if context.get("or") else ""
    if remedy := _said_for_no_bound(at, value):
        return Finding(at, f"`{at}` cannot be {shown}", label="not an amount", help=remedy)
    if kind in ("enum", "literal_error"):
        allowed = _words(context)
        close = closest(str(value), allowed)
        return Finding(
            at,
            f"`{at}` cannot be {shown}",
            label=f"did you mean `{close}`" if close else "not one of its values",
            notes=(f"its values are {_listed(allowed)}{alternative}",),
            help=f"write `{close}`"
            if close
            else f"write {'one of ' if allowed[1:] else ''}{_listed(allowed)}{alternative}",
        )
    limit = _limit(kind, context) + alternative
    meant = form_of(context["pattern"]).mend(str(value)) if kind == "string_pattern_mismatch" else context.get("meant")
    return Finding(at, f"`{at}` cannot be {shown}", label=limit, help=f"write {meant or limit}")


_CREDENTIALS: Final = re.compile(r"//\S*@")
"""A likely password in an address; logs show findings to more people than read the policy."""

_UNLIMITED: Final = (-1, "-1", "unlimited", "infinite")
"""Words of KAI-Scheduler, Run:ai and people for "no bound"."""

_NO_NUMBER: Final[Mapping[str | int, str]] = {
    "limit": "write `none`, for no bound",
    "classLimits": "leave the class out: it may then use all",
    "lendable": "leave it out: others may then use all that is idle",
    "guaranteed": "write how much is the tenant's own, `0` if nothing is, and `limit: none` for no bound on its use",
}
"""Advice for each field: there is no guarantee without a bound, for a pool has so many units and no more."""


def _said_for_no_bound(at: Origin, value: object) -> str:
    """Return what to write in a quota in place of a word for "no bound", or nothing if the text is no such word."""
    if value not in _UNLIMITED or "quotas" not in at.path:
        return ""
    return _NO_NUMBER.get(at.path[-2] if "classLimits" in at.path[-2:-1] else at.path[-1], "")


def _words(context: Mapping[str, Any]) -> list[str]:
    """The words that a field may hold; pydantic gives them as one text."""
    return re.findall(r"'([^']*)'", str(context.get("expected", "")))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9]+", text))


_BOUNDS = {
    "greater_than_equal": ("of at least", "ge"),
    "less_than_equal": ("of at most", "le"),
    "greater_than": ("above", "gt"),
    "less_than": ("below", "lt"),
}
_LIMITS = {
    "string_too_short": "some text",
    "too_short": "a list with something in it",
    "finite_number": "a finite number",
    "int_parsing_size": "a smaller number",
}


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"a number {words} {_plain(context[bound])}"
    if kind == "string_pattern_mismatch":
        return form_of(context["pattern"]).words
    if kind == "too_short" and context.get("field_type") == "Dictionary":
        return "a mapping with something in it"
    return str(context["words"]) if kind in (NOT_A_REFERENCE, NOT_A_QUANTITY) else _LIMITS.get(kind, "another value")


def _plain(number: float) -> str:
    return f"{number:.0f}" if float(number).is_integer() else f"{number:g}"


# --- Unknown fields by the thousand, which are one mistake and not as many ----------------------------------------

_MOST_UNKNOWN: Final = 200
"""Unknown fields of one mapping that are findings of their own."""


def crowds(model: type[BaseModel], data: Mapping[str, Any]) -> dict[Path, list[str]]:
    """The unknown fields of each mapping that has too many of them, by its place."""
    found: dict[Path, list[str]] = {}
    for place, fields in _large_mappings(data, ()):
        inner = nested_model(model, place)
        known = {field.alias or name for name, field in inner.model_fields.items()} if inner else None
        unknown = [name for name in fields if name not in known] if known is not None else []
        if len(unknown) > _MOST_UNKNOWN:
            found[place] = unknown
    return found


def describe_crowd(at: Origin, unknown: list[str]) -> Diagnostic:
    """One finding for all of them, at the first."""
    where = f"`{at}`" if at.path else "the document"
    return rules.UNKNOWN_FIELD.report(
        Finding(
            (at / unknown[0]).key,
            f"{where} has {len(unknown):,} unknown fields: {listing(unknown)}",
            label="the first of them",
            help="remove them",
        )
    )


def _large_mappings(data: object, here: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(data, dict):
        if len(data) > _MOST_UNKNOWN:
            yield here, data
        for key, part in data.items():
            if isinstance(part, dict | list):
                yield from _large_mappings(part, (*here, key))
    elif isinstance(data, list):
        for index, part in enumerate(data):
            if isinstance(part, dict | list):
                yield from _large_mappings(part, (*here, index))
