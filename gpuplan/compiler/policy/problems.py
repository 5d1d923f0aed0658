"""Tell what is wrong with a document, pydantic's errors one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from gpuplan.compiler.base.credentials import is_credential
from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Path
from gpuplan.compiler.base.wording import closest, help_on_variables, listing, misspelling
from gpuplan.compiler.policy import rules
from gpuplan.compiler.policy.data.elsewhere import CALLED
from gpuplan.compiler.policy.data.values import (
    BOUNDS,
    EXPECTED_TYPES,
    KINDS_OF_POLICIES,
    LIMITS,
    NO_NUMBER,
    NOT_SUPPORTED,
    TEXT_REMEDIES,
    TYPE_NAMES,
    UNLIMITED,
    WRONG_VALUES,
)
from gpuplan.compiler.policy.fields import command_for, nested_model
from gpuplan.compiler.policy.foreign import help_on_file
from gpuplan.compiler.policy.homes import (
    Home,
    as_written,
    find_home,
    goes_along,
    in_code,
    joined_homes,
    misplaced,
    named,
    near_here,
    said_otherwise,
    switched_off,
    unknown_field,
    with_colon,
)
from gpuplan.compiler.policy.models import API_VERSION, KINDS
from gpuplan.compiler.policy.parse import document_of
from gpuplan.compiler.policy.shapes import (
    Absent,
    accepts,
    as_line,
    as_meant,
    example_of,
    flaws,
    mapping,
    mend,
    path_of,
    value_at,
)
from gpuplan.compiler.policy.texts import NOT_A_QUANTITY, NOT_A_REFERENCE, form_of
from gpuplan.compiler.policy.turns import Turned, find_turned, lacks, turn, write_help

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from gpuplan.compiler.documents import Document


def problems_by_place(document: Document, error: ValidationError) -> dict[Path, ErrorDetails]:
    """The errors by the path in the document that they are about; a union reports once per member."""
    problems: dict[Path, list[ErrorDetails]] = {}
    for problem in error.errors(include_url=False, include_context=True):
        path = path_of(document.data, problem)
        problems.setdefault(path, []).append(problem)
    return {place: _join(found) for place, found in problems.items()}


def describe(
    document: Document, model: type[BaseModel], problems: Mapping[Path, ErrorDetails]
) -> tuple[tuple[Diagnostic, ...], frozenset[Path]]:
    """Return a finding for each mistake, in the order in which pydantic met them, and the fields that were meant.

    A field that was meant is no more known than one with a wrong value.
    """
    homes: dict[Path, Home] = {}
    missing = {place for place, problem in problems.items() if problem["type"] == "missing"}
    following = set(_misspelt(document, model, problems))  # which are no problems once all fields are where they belong
    turns: dict[Path, Turned] = {}
    unknown = [place for place, problem in problems.items() if problem["type"] == "extra_forbidden"]
    for place in unknown:
        if place in following:
            continue
        if (turned := find_turned(document, model, place, turns.values())) and write_help(turned):
            turns[place] = turned
            following |= {(*turned.around, name) for name in turned.names} - {place}
            following |= {turned.into, *((*turned.into, name) for name in turned.fields)}
        elif home := find_home(document, model, place):
            homes[place] = home
            following |= missing.intersection(home.path[: length + 1] for length in range(len(home.path)))
            into = home.path[:-1]
            if into in problems and (problems[into]["type"] == "exactly_one" or value_at(document.data, into) is None):
                following.add(into)
            if goes_along(document, place):
                following.add(place)
    for place, turned in joined_homes(document, model, homes):
        turns[place] = turned
        following |= {(*turned.around, name) for name in turned.names} - {place}
    around = {place[:length] for place in problems for length in range(len(place))}
    found: dict[Path, Diagnostic] = {}
    for place, problem in problems.items():
        # If a member of a union found a mistake inside of a value, the other members add nothing.
        is_of_member = problem["type"] == "literal_error" or problem["type"] in EXPECTED_TYPES
        if place in following or (is_of_member and place in around) or _is_template(document, place, problem):
            continue
        if place in turns:
            found[place] = rules.UNKNOWN_FIELD.report(said_otherwise(document, place, turns[place]))
        elif place in homes:
            found[place] = rules.UNKNOWN_FIELD.report(misplaced(document, place, homes[place]))
        else:
            found[place] = _report(document, model, place, problem)
    told = {place: found[place].finding.help for place in unknown if place in found}
    meant = {
        *(home.path for home in homes.values()),
        *((*turned.into, name) for turned in turns.values() for name in turned.fields),
        *(
            (*place[:-1], near[0])
            for place in {*told} - {*homes} - {*turns}
            if (near := near_here(document, model, place))
        ),
    }
    items = tuple(item for place, item in found.items() if place not in missing or not _is_told(document, place, told))
    return items, frozenset(place for place in meant if isinstance(place[-1], str))


def mended(
    model: type[BaseModel], data: Mapping[str, Any], problems: Mapping[Path, ErrorDetails]
) -> tuple[Any, set[Path]]:
    """Return a document with the mappings and lists that other values were meant as, and the places still wrong.

    What stands for one text or number is left wrong: its finding has the likeliest reading, which is not the only one.
    """
    rest = {*problems}
    for place, problem in problems.items():
        value = value_at(data, place) if problem["type"] in EXPECTED_TYPES else None
        inner = nested_model(model, place)
        lacks_colon = inner is not None and with_colon(str(value), named(inner)) is not None
        meant = None if value is None or lacks_colon else as_meant(model, place, value)
        if isinstance(meant, dict | list) and not lacks(meant):
            data = _put(data, place, meant)
            rest.discard(place)
    return data, rest


def _put(data: Any, place: Path, value: object) -> Any:  # noqa: ANN401 - plain YAML data
    if not place:
        return value
    put = _put(data[place[0]], place[1:], value)
    if isinstance(data, list):
        return [put if index == place[0] else item for index, item in enumerate(data)]
    return {**data, place[0]: put}


def _is_told(document: Document, place: Path, told: Mapping[Path, str]) -> bool:
    """Whether help on an unknown field beside a missing one names it, or all fields there are unknown."""
    beside = {other: help_ for other, help_ in told.items() if other[:-1] == place[:-1]}
    is_all = bool(place[1:]) and {str(other[-1]) for other in beside} == {*mapping(value_at(document.data, place[:-1]))}
    is_removal = any(other[-1] == "$patch" for other in beside)
    return is_removal or (is_all and bool(beside)) or any(f"`{place[-1]}:`" in help_ for help_ in beside.values())


def _is_template(document: Document, place: Path, problem: ErrorDetails) -> bool:
    """Whether `{{ name }}` stands there, which YAML takes for a key that is a mapping, and reports as that."""
    return isinstance(problem["input"], dict) and as_written(Origin(document, place)).startswith("{{")


def unknown_kind(document: Document) -> Diagnostic:
    at = document.origin / "kind"
    known = ", ".join(f"`{kind}`" for kind in KINDS)
    if not document.kind:
        finding = Finding(
            document.origin, "document has no `kind`", notes=(f"the kinds are {known}",), help=help_on_file(document)
        )
        return rules.UNKNOWN_KIND.report(finding)
    made_of = KINDS_OF_POLICIES.get(document.kind, "")
    is_ours = document.data.get("apiVersion") == API_VERSION and made_of.startswith("a ") and not made_of[2:].count(" ")
    close = made_of[2:] if is_ours else None if made_of else misspelling(document.kind, KINDS)
    return rules.UNKNOWN_KIND.report(
        Finding(
            at,
            f"unknown kind `{document.kind}`",
            label="no part of a platform" if command_for(document.kind) else "not a kind of gpuplan.dev/v1",
            notes=(f"the kinds are {known}",),
            help=f"write `kind: {close}`" if close else _way_of(document),
        )
    )


def _way_of(document: Document) -> str:
    """Where a document of another kind belongs: policies may be made of it."""
    by_hand = "overlays/<cluster>/kustomize/"
    if command := command_for(document.kind):
        run = f"run `gpuplan {command} {document.file.path}`"
        return f"move it out of the platform's folders, and {run} with where it is then"
    if made_of := KINDS_OF_POLICIES.get(document.kind):
        made = f"write {made_of.format(name=document.name)}, of which gpuplan makes one"
        return made if document.data.get("apiVersion") == API_VERSION else f"{made}; or {rules.PLAIN_OBJECTS} {by_hand}"
    if not _is_imported(document):
        return help_on_file(document) or f"{rules.PLAIN_OBJECTS} {by_hand}"
    path = f"../{document.file.path.rpartition('/')[2]}"
    run = f"`gpuplan import {path} -c <cluster> --merge`"
    return f"move it to {path}, and run {run} for policies that say it; or {rules.PLAIN_OBJECTS} {by_hand}"


def _is_imported(document: Document) -> bool:
    from gpuplan.compiler.manifests.kinds.imported import READ

    group, slash, _ = str(document.data.get("apiVersion")).partition("/")
    kind = group if slash else "", document.kind
    return kind in READ or kind == ("", "List")


def _misspelt(document: Document, model: type[BaseModel], problems: Mapping[Path, ErrorDetails]) -> Iterator[Path]:
    """Fields that are missing because they are miswritten, which is said of how they are written."""
    unknown: dict[Path, list[Path]] = {}
    for place, problem in problems.items():
        if problem["type"] == "extra_forbidden":
            unknown.setdefault(place[:-1], []).append(place)
    for place, problem in problems.items():
        if problem["type"] == "missing":
            written = unknown.get(place[:-1], ())[:_FEW]
            if any(place[-1] in near_here(document, model, field) for field in written):
                yield place


_FEW = 20

# --- Which errors count ------------------------------------------------------------------------------------------


def _join(errors: list[ErrorDetails]) -> ErrorDetails:
    """The error of the member that the value was most likely meant for, with what another one takes as `or`."""
    telling = [error for error in errors if error["type"] != "none_required"] or errors
    words = next((error for error in telling if error["type"] == "literal_error"), None)
    other = next((error for error in telling if error is not words), None)
    if words is None and other is not None:
        refused = next((error for error in telling if error["type"] not in EXPECTED_TYPES), None)
        first, *others = telling
        if refused or not others:
            return refused or first
        return {**first, "ctx": {**first.get("ctx", {}), "or": EXPECTED_TYPES[others[0]["type"]]}}
    if words is None or other is None:
        return telling[-1]
    if isinstance(words["input"], str) and not _is_number(words["input"]):
        by_form = other["type"] == "string_pattern_mismatch"
        taken = form_of(other["ctx"]["pattern"]).words if by_form else EXPECTED_TYPES.get(other["type"], "")
        return {**words, "ctx": {**words.get("ctx", {}), "or": taken}}
    return {**other, "ctx": {**other.get("ctx", {}), "or": in_code(_words(words.get("ctx", {})))}}


def _holds(data: object, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


# --- One function for each kind of error -------------------------------------------------------------------------


def _report(document: Document, model: type[BaseModel], place: Path, error: ErrorDetails) -> Diagnostic:
    at = Origin(document, place)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return rules.UNKNOWN_FIELD.report(unknown_field(document, model, place))
        case "missing":
            name, parent = str(at.path[-1]), Origin(at.source, at.path[:-1])
            where = f"`{parent}`" if parent.path else "the document"
            beside = mapping(value_at(document.data, place[:-1]))
            meant = (field for words in CALLED.values() for field in beside if name in words.get(field, "").split())
            other = next(meant, None)  # which the documents of another kind have for this one
            line = as_line({name: beside[other]})[1:-1] if other else ""
            add = f"write `{line}` in place of `{other}`" if line else f"add `{name}:`{example_of(model, place)}"
            if said := as_line(_in_base(document, place))[1:-1]:
                add = f"add `{said}`, as the base has it: the list of an overlay replaces that of the base"
            inner = nested_model(model, place)
            if inner and flaws(model, place, {}).get(()) == "exactly_one":
                add += f" with one of {in_code(named(inner))} below it"
            removing = document.find_layer(place)
            if removing and removing is not document.layers[0]:
                parent = Origin(type(document)(removing.data, (removing,)), place)
                add = f"leave `{name}: null` out, which removes what the base says; or {add}"
            return rules.MISSING_FIELD.report(
                Finding(parent.key, f"{where} has no `{name}`", label=f"`{name}` is missing", help=add)
            )
        case "exactly_one":
            return rules.NOT_EXACTLY_ONE.report(_not_exactly_one(document, model, place, context))
        case "literal_error" if place == ("apiVersion",):
            message = f"unknown apiVersion `{error['input']}`"
            is_other = _is_imported(document) and document.kind not in KINDS
            help_ = _way_of(document) if is_other else f"write `apiVersion: {API_VERSION}`"
            return rules.UNKNOWN_API_VERSION.report(Finding(at, message, help=help_))
        case kind if kind in EXPECTED_TYPES:
            return rules.WRONG_TYPE.report(_wrong_type(at, kind, error["input"], context.get("or", ""), model))
        case kind:
            return rules.VALUE_NOT_ALLOWED.report(_value_not_allowed(at, kind, error["input"], context, model))


def _in_base(document: Document, place: Path) -> dict[str, object]:
    """Return the field that an item of an overlay's list lacks, as the base says it in the item of the same names."""
    name, item = str(place[-1]), mapping(value_at(document.data, place[:-1]))
    said = value_at(document.layers[0].data, place[:-2]) if document.layers[1:] and place[2:] else None
    for other in said if isinstance(said, list) else ():
        both = [key for key in item if key in mapping(other) and isinstance(item[key], str)]
        if name in mapping(other) and both and all(item[key] == other[key] for key in both):
            return {name: other[name]}
    return {}


def _not_exactly_one(document: Document, model: type[BaseModel], place: Path, context: Mapping[str, Any]) -> Finding:
    at, given = Origin(document, place), context["given"]
    if not given:
        data = value_at(document.data, place)
        what, fields = context["what"], context["fields"]
        empty = next((name for name in fields if _holds(data, name)), None)
        if empty is None:
            return Finding(at.key, f"{what} is missing", help=f"give one of {in_code(fields)}")
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
    notes = (f"exactly one of {in_code(context['fields'])} may stand here", *mps)
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


def _wrong_type(at: Origin, kind: str, value: object, alternative: str, model: type[BaseModel]) -> Finding:
    document, expected = document_of(at), EXPECTED_TYPES[kind] + (f" or {alternative}" if alternative else "")
    return Finding(
        at,
        f"`{at}` should be {expected}, not {_type_name(value)}",
        label=f"this is {_type_name(value)}",
        help=_said_for_no_bound(at, value)
        or help_on_variables(as_written(at))
        or _slip_of_yaml(at, kind, value, model)
        or _part_of_nodes(at, value)
        or _reshaped(at, value, model)
        or (switched_off(document, model, at.path) if document and value is False and kind in _MAPPINGS else "")
        or WRONG_VALUES.get((str(at.path[-1]), type(value)), "")
        or TEXT_REMEDIES.get(at.path[-2:] if isinstance(value, str) else ())
        or (
            _mapping_help(at, value, model)
            if kind in _MAPPINGS
            else _type_help(kind, value) + example_of(model, at.path)
        ),
    )


def _part_of_nodes(at: Origin, value: object) -> str:
    """Return the number of nodes that a percentage of them is, if the document has their number."""
    document, percent = document_of(at), re.fullmatch("([1-9][0-9]?|100)%", str(value))
    nodes = value_at(document.data, ("spec", "nodes", "count")) if document and "disruption" in at.path else None
    if percent is None or not isinstance(nodes, int):
        return ""
    return f"write `{max(1, nodes * int(percent[1]) // 100)}`, {value} of the {nodes} nodes"


_MAPPINGS = ("model_type", "model_attributes_type", "dict_type")


def _slip_of_yaml(at: Origin, kind: str, value: object, model: type[BaseModel]) -> str:
    """Return help for what YAML takes for something else than was meant, or nothing."""
    if kind == "string_type" and at.path[-1] in ("memory", "size") and type(value) is int and value in _GIBIBYTES:
        return f"write `{value}Gi`"
    if kind == "string_type" and at.path[-1] == "kubernetes" and re.fullmatch(r"1\.[1-9]", as_written(at)):
        return f'write `"{as_written(at)}0"`: without quotes YAML drops the zero'
    if kind == "string_type" and isinstance(value, bool | int | float) and accepts(model, at.path, as_written(at)):
        return f'put it in quotes: "{as_written(at)}"'
    inner = nested_model(model, at.path) if kind in _MAPPINGS and isinstance(value, str) else None
    if inner is not None and (meant := with_colon(str(value), named(inner))):
        return f"write `{meant}`"
    if kind == "string_type" and isinstance(value, dict) and "." in str(at.path[-1]):
        return f"write `{at.path[-1]}: |`, and leave the lines below it: with `|` they are the text of the file"
    if kind == "string_type" and isinstance(value, dict) and len(value) == 1:
        ((name, part),) = value.items()
        if name.startswith("-") and isinstance(part, str | int | float):
            return f'write two items, `{name}` and `{as_line(str(part))}`; or one text, `"{name}: {part}"`'
    return ""


_GIBIBYTES: Final = range(1, 10_000)
"""The numbers that are GiB where a text should be an amount of memory; larger ones may be MiB or bytes."""


def _reshaped(at: Origin, value: object, model: type[BaseModel]) -> str:
    """Return what to write in place of a value of another shape that says the same, or nothing."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = as_written(at) if as_written(at) not in (str(value), repr(value)) else value  # `0x268410DE`, `26.10`
    if at.path[-1:] == at.path[-2:-1] and isinstance(value, dict) and accepts(model, at.path[:-1], value):
        return f"write `{as_line(value)[1:-1]}` in its place"
    parent = nested_model(model, at.path[:-1])
    if (
        parent
        and isinstance(value, dict)
        and len(value) == 1
        and set(turned := turn(parent, next(iter(value)), value)) == {at.path[-1]}
    ):
        return f"write `{as_line(turned)[1:-1]}`"
    meant = as_meant(model, at.path, value)
    variables = mapping(meant) if at.path[-1] == "env" else {}
    if secret := {name: _OF_SECRET for name, part in variables.items() if is_credential(name, str(part))}:
        line = as_line({**variables, **secret})
        return f"write `env: {line}` with the Secret that has the value, which is not shown here"
    line = (
        "" if meant is None else as_line({**meant, **_removed(at, meant, model)} if isinstance(meant, dict) else meant)
    )
    if not line:
        return ""
    if isinstance(value, str | int | float) and isinstance(meant, str) and (mended := mend(model, at.path, str(value))):
        return f"write {mended}"
    if not isinstance(meant, dict | list) and not isinstance(value, dict | list):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return f"write {line} without quotes" if value == line else f"write {line}" if is_number else f"write `{line}`"
    return f"write `{at.path[-1]}: {line}`" if isinstance(at.path[-1], str) else f"write `{line}`"


def _removed(at: Origin, meant: Mapping[str, object], model: type[BaseModel]) -> dict[str, None]:
    """Return what an overlay has to remove of the base's mapping, of which one field alone may stand."""
    document = document_of(at)
    said = mapping(value_at(document.layers[0].data, at.path)) if document and document.layers[1:] else {}
    others = {name: part for name, part in said.items() if name not in meant}
    return {
        name: None for name in others if flaws(model, at.path, {name: others[name], **meant}).get(()) == "exactly_one"
    }


_OF_SECRET: Final = {"secretKeyRef": {"name": Absent(), "key": Absent()}}


def _mapping_help(at: Origin, value: object, model: type[BaseModel]) -> str:
    """Return how to write a mapping in place of a value, which may be the name of a field."""
    inner = nested_model(model, at.path)
    fields = named(inner) if inner else {}
    if isinstance(value, str) and value in fields:
        return f"write `{value}:` on a line below it, and what it is"
    if isinstance(value, str) and not fields and (meant := with_colon(value, value.split()[:1])):
        return f"write `{meant}`"
    if not fields:
        return f"write `key: value` lines below it{example_of(model, at.path)}, or `{{}}`"
    lines = f"write {in_code(fields)} below it" if len(fields) == 1 else f"write fields below it: {in_code(fields)}"
    return f"{lines}; or `{{}}`" if accepts(model, at.path, {}) else f"{lines}{example_of(model, at.path)}"


def _type_help(kind: str, value: object) -> str:
    if kind == "int_type" and str(value).endswith("%"):
        return "write a whole number in place of the percentage"
    if kind == "float_type" and str(value).endswith("%"):
        return "write a number in place of the percentage"
    if kind == "list_type":
        return "write a list: one `- ` item per line" if value else "write a list: one `- ` item per line, or `[]`"
    return f"write {EXPECTED_TYPES[kind]}"


def _type_name(value: object) -> str:
    return TYPE_NAMES.get(type(value), "a mapping")


def _value_not_allowed(
    at: Origin, kind: str, value: object, context: Mapping[str, Any], model: type[BaseModel]
) -> Finding:
    shown = f"`{_CREDENTIALS.sub('//***@', str(value))}`" if isinstance(value, str | int | float) else "this value"
    alternative = f", or {context['or']}" if context.get("or") else ""
    if remedy := _said_for_no_bound(at, value):
        return Finding(at, f"`{at}` cannot be {shown}", label="not an amount", help=remedy)
    if isinstance(value, str) and (advice := help_on_variables(value)):
        return Finding(at, f"`{at}` cannot be {shown}", label="no value yet", help=advice)
    if typed := WRONG_VALUES.get((str(at.path[-1]), type(value))):
        return Finding(
            at, f"`{at}` cannot be {shown}", label="not one of its values", help=_reshaped(at, value, model) or typed
        )
    if kind in ("enum", "literal_error"):
        allowed = _words(context)
        if other := NOT_SUPPORTED.get((str(*at.path[-2:-1]), str(value).lower())):
            return Finding(at, f"`{at}` cannot be {shown}", label="not supported", help=other)
        begun = [word for word in allowed if len(str(value)) >= _SHORTEST and word.startswith(str(value))]
        close = begun[0] if len(begun) == 1 else closest(str(value), allowed)
        return Finding(
            at,
            f"`{at}` cannot be {shown}",
            label=f"did you mean `{close}`" if close else "not one of its values",
            notes=(f"its values are {in_code(allowed)}{alternative}",),
            help=_reshaped(at, value, model)
            or (f"write `{close}`" if close else "")
            or f"write {'one of ' if allowed[1:] else ''}{in_code(allowed)}{alternative}"
            + _by_other_field(at, value, model),
        )
    limit = _limit(kind, context) + alternative
    if value == 0 and at.path[0] == "spec" and at.path[-1] in ("replicas", "pods") and "sharing" not in at.path:
        document = document_of(at)
        name = document.name if document else ""
        off = f"delete the document, or in an overlay write `metadata: {{name: {name}, $patch: delete}}`"
        return Finding(at, f"`{at}` cannot be {shown}", label=limit, help=f"write {limit}; to switch it off, {off}")
    is_form = kind == "string_pattern_mismatch"
    meant = form_of(context["pattern"]).mend(str(value)) if is_form else context.get("meant")
    if (kind in BOUNDS or (is_form and not meant)) and (other := _reshaped(at, value, model)):
        return Finding(at, f"`{at}` cannot be {shown}", label=limit, help=other)
    return Finding(at, f"`{at}` cannot be {shown}", label=limit, help=f"write {meant or limit}")


def _by_other_field(at: Origin, value: object, model: type[BaseModel]) -> str:
    """Return the field beside one for a few words that takes any other: `clusterRole` beside `role`."""
    parent, field = nested_model(model, at.path[:-1]), str(at.path[-1]).capitalize()
    others = [name for name in (named(parent) if parent else ()) if name.endswith(field)]
    fitting = [name for name in others if accepts(model, (*at.path[:-1], name), value)]
    return f"; or `{fitting[0]}: {value}` in place of `{at.path[-1]}`" if len(fitting) == 1 else ""


_SHORTEST: Final = 3
"""The letters of a text that is likely the beginning of a word."""
_CREDENTIALS: Final = re.compile(r"//\S*@")
"""A likely password in an address; logs show findings to more people than read the policy."""


def _said_for_no_bound(at: Origin, value: object) -> str:
    """Return what to write in a quota in place of a word for "no bound", or nothing if the text is no such word."""
    if "quotas" in at.path and isinstance(value, str) and value.endswith("%"):
        return f"write units in place of `{value}`: `gpuplan show` says how many the pool has"
    if value not in UNLIMITED or "quotas" not in at.path:
        return ""
    return NO_NUMBER.get(str(at.path[-2] if "classLimits" in at.path[-2:-1] else at.path[-1]), "")


def _words(context: Mapping[str, Any]) -> list[str]:
    """The words that a field may hold; pydantic gives them as one text."""
    return re.findall(r"'([^']*)'", str(context.get("expected", "")))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9]+", text))


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    if kind in BOUNDS:
        words, bound = BOUNDS[kind]
        return f"a number {words} {_plain(context[bound])}"
    if kind == "string_pattern_mismatch":
        return form_of(context["pattern"]).words
    if kind == "too_short" and context.get("field_type") == "Dictionary":
        return "a mapping with something in it"
    return str(context["words"]) if kind in (NOT_A_REFERENCE, NOT_A_QUANTITY) else LIMITS.get(kind, "another value")


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
