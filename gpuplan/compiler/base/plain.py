"""Plain objects of any shape: what JSON or YAML gave, of which nothing is known until it is looked at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from gpuplan.compiler.base.depth import MAX_TEXT_DEPTH, has_few_aliases, is_deep
from gpuplan.compiler.base.diagnostics import Path

_Key = TypeVar("_Key", bound=Hashable)
_Part = TypeVar("_Part")


def grouped(pairs: Iterable[tuple[_Key, _Part]]) -> dict[_Key, tuple[_Part, ...]]:
    """Return the second parts of pairs by the first ones, both in their order."""
    found: dict[_Key, list[_Part]] = {}
    for key, part in pairs:
        found.setdefault(key, []).append(part)
    return {key: tuple(parts) for key, parts in found.items()}


def mapping(value: object) -> Mapping[str, object]:
    """Return a mapping without keys that are no text, or an empty one for any other value."""
    return {key: item for key, item in value.items() if isinstance(key, str)} if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def value_at(body: object, route: Iterable[str | int]) -> object:
    for part in route:
        body = next(iter(sequence(body)[part : part + 1]), None) if isinstance(part, int) else mapping(body).get(part)
    return body


def inside(body: Mapping[str, object], *route: str) -> Mapping[str, object]:
    return mapping(value_at(body, route))


def parts(body: object) -> Iterator[tuple[Path, object]]:
    """Yield a body and all that is in it, with their routes.

    An alias may have a part stand in many places, in itself as well: each is found once.
    """
    seen: set[int] = set()
    left: list[tuple[Path, object]] = [((), body)]
    while left:
        route, part = left.pop()
        if isinstance(part, list | Mapping):
            if id(part) in seen:
                continue
            seen.add(id(part))
            items = enumerate(part) if isinstance(part, list) else mapping(part).items()
            left += reversed([((*route, key), value) for key, value in items])
        yield route, part


def parts_with(body: object, *keys: str) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Yield the parts of a body that have one of some keys, such as pods' specs, with their routes."""
    for route, part in parts(body):
        if isinstance(part, Mapping) and not part.keys().isdisjoint(keys):
            yield route, mapping(part)


MAX_TEXT: Final = 3 * 2**19
"""The characters of a text in a value that is read: etcd takes no object of more than 1.5 MiB."""


def read_text(value: object) -> list[object]:
    """Return the documents of a YAML text inside a value, or none if it is no text or unreadable."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return []
    import yaml

    try:
        return load_documents(value) if has_few_aliases(value) else []
    except (UnreadableTextError, yaml.YAMLError):
        return []


MAX_PARTS: Final = 400_000
"""The schemas and values in one definition, aliases followed. The largest that is known has some ten thousand."""


class UnreadableTextError(Exception):
    """What is wrong with a file as a whole, in words that go on from ``file cannot be used:``."""


def load_documents(text: str) -> list[object]:
    """Return the documents of a text that anybody may have written.

    Raise `UnreadableTextError` if they cannot be gone through.
    """
    import yaml

    try:
        if is_deep(text):
            raise UnreadableTextError(f"values are nested more than {MAX_TEXT_DEPTH} levels deep")
        if "<<" in text and not has_few_aliases(text, MAX_PARTS):
            raise UnreadableTextError(f"aliases stand for more than {MAX_PARTS:,} values, and are merged")
        return list(yaml.load_all(text, Loader=_loader()))
    # Beside its own errors PyYAML lets through what the constructors of numbers, dates and mappings raise.
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError) as error:
        raise UnreadableTextError(f"it is not YAML: {' '.join(str(error).split())}") from error


@cache
def _loader() -> type:
    """Return PyYAML's loader, for which `=` is a text like any other: Alertmanager matches by this operator."""
    import yaml

    loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.add_constructor("tag:yaml.org,2002:value", yaml.SafeLoader.construct_yaml_str)
    made: type = loader
    return made


def is_yaml(value: str) -> bool:
    """Whether the first document of a text can be parsed, whatever is in it; what is too long is not judged."""
    if len(value) > MAX_TEXT:
        return True
    import yaml

    try:
        if is_deep(value) or not has_few_aliases(value):
            return False
        loader = yaml.CSafeLoader(value)
        _ = loader.check_node() and loader.get_node()
    except yaml.YAMLError:
        return False
    return True


Body = Mapping[str, Any]


def value_of(body: object, route: Iterable[str], default: object = None) -> object:
    """Return the value at the end of a route, or the default."""
    for key in route:
        body = body.get(key) if isinstance(body, Mapping) else None
    return default if body is None else body


def section(body: object, *route: str) -> Body:
    """Return the mapping at the end of a route, or an empty one."""
    found = value_of(body, route)
    return found if isinstance(found, Mapping) else {}


def without(body: Body, *keys: str) -> Body:
    return {key: value for key, value in body.items() if key not in keys}


def items(value: object) -> list[Any]:
    """Return the items of a list, or none of any other value."""
    return list(value) if isinstance(value, list | tuple) else []


def mappings(value: object) -> list[Body]:
    """Return the items of a list that are mappings."""
    return [item for item in items(value) if isinstance(item, Mapping)]
