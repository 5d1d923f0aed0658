"""No text makes reading crash, hang or fill the memory."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given, strategies as st

from gpuplan.compiler.base.depth import MAX_ALIASED_VALUES
from gpuplan.compiler.base.diagnostics import SourceFile
from gpuplan.compiler.documents import find_ignores, merge, read_text, tree
from gpuplan.compiler.documents.parse import MAX_DEPTH, MAX_DOCUMENTS, parse
from tests.compiler.documents.reading import codes, describe, read

pytestmark = pytest.mark.no_cover

DEPTH = 100_000
DEEP = {
    "brackets": "[" * DEPTH,
    "closed-brackets": "[" * DEPTH + "]" * DEPTH,
    "braces": "{a: " * DEPTH,
    "mixed": "[{a: " * DEPTH,
    "dashes": "- " * DEPTH,
    "questions": "? " * DEPTH,
    "keys": "\n".join(" " * level + "a:" for level in range(1000)),
    "brackets-with-a-comment": "# gpuplan: ignore[GPU001] deep\n" + "[" * DEPTH,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_deep_nesting_is_a_finding(text: str, loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_Loader", getattr(yaml, loader))
    start = time.process_time()
    _, findings = read(text)
    assert time.process_time() - start < (4 if sys.gettrace() is None else 12)  # measuring coverage slows each line
    assert [finding.split(" ", 1)[1] for finding in findings] == ["GPU003 values are nested more than 64 levels deep"]


def test_the_interpreter_survives_what_overflows_the_stack_of_pyyaml() -> None:
    program = (
        f"from gpuplan.compiler.documents import read_text; print(read_text('x', '['*{DEPTH} + ']'*{DEPTH})[1][0].code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "GPU003\n"


def test_the_greatest_depth_is_read() -> None:
    data, findings = read("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    assert (len(data), findings) == (1, [])
    assert codes("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH) == ["GPU003"]


def test_documents_before_the_limit_are_read() -> None:
    data, findings = read("a: 1\n---\n" + "[" * DEPTH)
    assert data == [{"a": 1}]
    assert findings == ["3:65 GPU003 values are nested more than 64 levels deep"]


BOMB = "a: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 50))
CHAIN = "a: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 80))
MERGE_BOMB = "a0: &a0 {k0: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 50)
)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("text", [BOMB, MERGE_BOMB], ids=["sequences", "merge-keys"])
def test_aliases_of_aliases_cost_nothing(text: str, strict: bool) -> None:
    documents, diagnostics = parse(SourceFile("policy.yaml", text), strict=strict)
    assert documents == ()
    messages = [diagnostic.finding.message for diagnostic in diagnostics if diagnostic.code == "GPU003"]
    assert messages == [f"aliases stand for more than {MAX_ALIASED_VALUES:,} values"]


def test_aliases_cannot_nest_deeper_than_text() -> None:
    assert "values are nested more than 64 levels deep" in read(CHAIN)[1][-1]


def test_an_anchor_inside_of_another_does_not_hide_how_deep_that_one_is() -> None:
    anchored = f"a: &a [{'[' * 60 + ']' * 60}, &b 1]\n"
    assert "GPU003" not in codes(f"{anchored}b: [*a]\n")
    assert "GPU003" in codes(f"{anchored}b: [[[*a]]]\n")


def test_aliases_within_the_bound_are_read() -> None:
    documents, diagnostics = parse(SourceFile("patch.yaml", "a: &a [x]\nb: [" + "*a, " * 1000 + "]\n"), strict=False)
    assert len(documents[0].data["b"]) == 1000
    assert diagnostics == ()


MIB = 2**20
LARGE = {
    "text": "a: " + "x" * MIB,
    "lines": "a: x\n" + "  y\n" * (MIB // 4),
    "blank-lines": "a: |\n" + "\n" * MIB,
    "quotes": 'a: "' + "\n" * MIB + '"',
    "comment": "#" + "x" * MIB,
    "comments": "#\n" * (MIB // 2),
    "spaces": " " * MIB + "a: 1",
    "long-key": "x" * MIB + ": 1",
    "anchor": "a: &" + "x" * MIB + " b",
    "tag": "a: !" + "x" * MIB + " b",
    "escaped-tag": "a: !<" + "%41" * (MIB // 3) + "> b",
    "tag-directives": "".join(f"%TAG !e{n}! t:{n}\n" for n in range(MIB // 16)) + "---\na: 1\n",
    "tag-directives-cr": "".join(f"%TAG !e{n}! t:{n}\r" for n in range(MIB // 16)) + "---\ra: 1\r",
    "anchors": "".join(f"- &a{n} x\n" for n in range(MIB // 12)),
    "repeated-keys": "{" + "a: 1, " * (MIB // 6) + "}",
    "keys": "".join(f"k{n}: 1\n" for n in range(MIB // 16)) + "".join(f"k{n}: 1\n" for n in range(5000)),
    "empty-documents": "---\n" * (MIB // 4),
    "documents": "a: 1\n---\n" * (MIB // 9),
    "empty-lists": "a: [" + "[]," * (MIB // 3) + "]",
    "doubts": "a: [" + "012," * (MIB // 4) + "]",
    "decimal": "a: " + "9" * MIB,
    "zeros": "a: " + "0" * MIB,
    "octal": "a: 0" + "7" * MIB,
    "hexadecimal": "a: 0x" + "f" * MIB,
    "fraction": "a: 1." + "1" * MIB,
    "exponent": "a: 1e" + "9" * MIB,
    "base-60": "a: 1" + ":30" * (MIB // 3),
    "underscores": "a: 1" + "_" * MIB,
    "ignores": "# gpuplan: ignore[GPU001] x\n" * (MIB // 28),
    "malformed-ignores": "# gpuplan: ignore\n" * (MIB // 18),
    "aliases": "*a : 1\n" * (MIB // 7),
    "colons": ":" * MIB,
}


@pytest.fixture
def nothing_else() -> Iterator[None]:
    """Keep what other tests have left in this process out of each look for garbage, which the command never does."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_else")
@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_a_mebibyte_of_anything_is_read_in_seconds(text: str) -> None:
    start = time.process_time()
    documents, diagnostics = read_text("policy.yaml", text)
    find_ignores(SourceFile("policy.yaml", text))
    for diagnostic in diagnostics:
        diagnostic.finding.at.locate()
    assert time.process_time() - start < (4 if sys.gettrace() is None else 12)  # measuring coverage slows each line
    assert len(diagnostics) <= 1001
    assert len(documents) <= 100_000


def test_a_flood_of_findings_ends_with_a_word() -> None:
    assert describe(read_text("policy.yaml", LARGE["doubts"])[1])[0] == (
        "1:1 GPU003 file has 1,000 findings; the rest is not read"
    )


def test_too_many_documents_are_found() -> None:
    documents, diagnostics = read_text("policy.yaml", LARGE["documents"])
    assert (documents, describe(diagnostics)) == ((), ["200000:1 GPU003 file holds more than 100,000 documents"])


def test_as_many_documents_as_a_file_may_hold_are_read() -> None:
    documents, diagnostics = read_text("policy.yaml", "a: 1\n---\n" * (MAX_DOCUMENTS - 1) + "a: 1\n")
    assert (len(documents), diagnostics) == (MAX_DOCUMENTS, ())


def test_a_text_that_is_too_large_is_found() -> None:
    assert read("a" * (8 * MIB + 1)) == ([], ["1:1 GPU003 file is larger than 8 MiB"])


SAMPLE = """\
# yaml-language-server: $schema=../schema.json
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}   # gpuplan: ignore[GPU203] known
spec:
  namespaces: [research-dev, "research-prod"]
  description: |
    Two lines: 012
    of text.
  quotas:
  - pool: training
    guaranteed: 4
    limit: none
  - {pool: 'inference', unit: 3g.40gb, guaranteed: 1.5}
---
kind: Pool
metadata:
  name: training
spec: &spec {gpu: A100-80GB, nodes: {count: 0x10, names: null}, fallback: ~}
<<: *spec
"""
TELLING = "\x00\t\n\r \"#&'*,-.:<>?@[]`{|}!%~0\x7f\x85\u2028\ufeffé🐙\ud800"


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_no_changed_character_makes_reading_fail(loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_Loader", getattr(yaml, loader))
    chance = random.Random(loader)
    for place in range(0, len(SAMPLE), 1 if loader == "CSafeLoader" else 5):
        character = chance.choice(TELLING)
        check_survives(SAMPLE[:place] + character + SAMPLE[place + 1 :])
        check_survives(SAMPLE[:place] + character + SAMPLE[place:])
        check_survives(SAMPLE[:place])


@given(st.lists(st.tuples(st.integers(0, len(SAMPLE)), st.integers(0, 12), st.text(max_size=6)), max_size=6))
def test_no_edits_make_reading_fail(edits: list[tuple[int, int, str]]) -> None:
    text = SAMPLE
    for start, length, replacement in edits:
        text = text[:start] + replacement + text[start + length :]
    check_survives(text)


@given(st.text(st.sampled_from("ab01 :-?#\n\t'\"[]{}&*!|>%@,.~<y"), max_size=60))
def test_no_text_of_yaml_signs_makes_reading_fail(text: str) -> None:
    check_survives(text)


def test_without_libyaml_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(SAMPLE)
    monkeypatch.setattr(tree, "_Loader", yaml.SafeLoader)
    assert read(SAMPLE) == expected


def check_survives(text: str) -> None:
    """Read, look for comments, lay over itself, and locate all that is said about it."""
    documents, diagnostics = read_text("policy.yaml", text)
    merged, more = merge(documents, documents)
    find_ignores(SourceFile("policy.yaml", text))
    for diagnostic in (*diagnostics, *more):
        locations = [diagnostic.finding.at.locate(), *(label.at.locate() for label in diagnostic.finding.related)]
        for location in locations:
            start = location.span.start
            assert 1 <= start.line <= len(location.file.lines), text
            assert 1 <= start.column <= len(location.file.lines[start.line - 1]) + 1, text
            assert location.span.start <= location.span.end, text
    for document in merged:
        document.locate(("spec", "quotas", 1, "pool"))
