"""Read files of CustomResourceDefinitions, of which anybody may have written anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from gpuplan.patterns import regex

MAX_BYTES: Final = 32 * 2**20
"""The largest file of definitions that a chart brings has about 5 MiB."""
MAX_DEPTH: Final = 200
"""How deep values may be nested in a file; libyaml's composer overflows the stack at some ten thousand levels."""

_SUSPICIOUS_PREFIX: Final = regex(rf"^[ ?\-\t]{{{MAX_DEPTH},}}", re.MULTILINE)
_BRACKET: Final = regex(r"[\[{}\]]")


class UnreadableCrdError(Exception):
    """What is wrong with a file as a whole, in words that go on from ``file cannot be used:``."""


def read(file: Path) -> str:
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise UnreadableCrdError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UnreadableCrdError("it is not UTF-8") from error


def parse(text: str) -> list[object]:
    """The documents of a file, as plain data; aliases stay what they are, so that one value may be in many places."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if _may_be_deep(text) and _depth(text, loader) > MAX_DEPTH:
            raise UnreadableCrdError(f"values are nested more than {MAX_DEPTH} levels deep")
        return list(yaml.load_all(text, Loader=loader))
    # Beside its own errors PyYAML lets through what the constructors of numbers, dates and mappings raise.
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError) as error:
        raise UnreadableCrdError(f"it is not YAML: {' '.join(str(error).split())}") from error


def _may_be_deep(text: str) -> bool:
    """Whether the depth is worth an exact look, which takes as long as half of the reading."""
    if _SUSPICIOUS_PREFIX.search(text):
        return True
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
        depth = max(depth, 0)
    return deepest > MAX_DEPTH


def _depth(text: str, loader: type) -> int:
    """How deep values are nested, from the parser's events, which come without recursion."""
    import yaml

    depth = deepest = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            break
    return deepest
