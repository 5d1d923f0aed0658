"""Random plain data, and YAML text for it in PyYAML's many styles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.documents.scalars import read_plain

PRINTABLE = st.characters(exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\u2028\u2029\ufeff")
TEXTS = st.text(st.sampled_from("abc xyz:#-,'\"{}[]&*!|>%@`?=<0123456789._~") | PRINTABLE, max_size=24)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, width=32) | TEXTS
FINITE = SCALARS.filter(lambda value: not isinstance(value, float) or abs(value) < 1e300)
DATA = st.recursive(
    FINITE, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=16
)
MAPPINGS = st.dictionaries(TEXTS, DATA, min_size=1, max_size=4)
STYLES = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([True, False, None]),
        "indent": st.sampled_from([2, 4]),
        "width": st.sampled_from([30, 80, 2**31]),
        "line_break": st.sampled_from(["\n", "\r\n"]),
    }
)


class Dumper(yaml.SafeDumper):
    """PyYAML's dumper, but for text that it would leave plain although YAML 1.2 reads something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        reading = read_plain(text)
        is_plain = reading.value == text and reading.doubt is None
        style = None if is_plain and text != "<<" else "'"  # in double quotes PyYAML misplaces some line breaks
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, Dumper.represent_text)


def write(data: Any, **style: Any) -> str:
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, **style))


def walk(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value below the root, with its path."""
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for part, value in children:
        yield (*path, part), value
        yield from walk(value, (*path, part))
