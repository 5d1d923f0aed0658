"""A bound is found before the work that it bounds: no document is made, no value is read and no folder is walked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from gpuplan.compiler.base.depth import MAX_TEXT_DEPTH
from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.base.plain import MAX_TEXT, UnreadableTextError, is_yaml, load_documents, read_text
from gpuplan.compiler.documents import MAX_BYTES, parse, read_bytes
from gpuplan.compiler.documents.parse import MAX_DEPTH, MAX_DOCUMENTS
from gpuplan.compiler.documents.printed import read_printed
from gpuplan.compiler.documents.text import MAX_DIRECTIVES
from gpuplan.features.changes import revisions as git_tree
from gpuplan.features.changes.revisions import GitTree
from gpuplan.features.packing.sizing.demand import asked, from_files
from gpuplan.features.packing.sizing.demand.asked import MOST_NEEDS
from gpuplan.features.packing.sizing.demand.tables import MAX_COLUMNS
from tests.git import TreeEntry, a_commit, a_repository, a_tree, an_object


class Bound(NamedTuple):
    """An input of a size, how it is read, what is said of one over the bound, and what makes something of it.

    ``allowed`` is how often that may be called until then.
    """

    text: Callable[[int], str]
    bound: int
    read: Callable[[str], Iterable[str]]
    message: str
    work: tuple[object, str]
    allowed: int = 0


def by_lines(text: str) -> list[str]:
    return _messages(read_bytes("a.yaml", text.encode())[1])


def as_printed(text: str) -> list[str]:
    return _messages(read_printed("a.json", text.encode())[1])


def as_demand(text: str) -> list[str]:
    return _messages(from_files({"a": text.encode()})[1])


def _messages(found: Iterable[Diagnostic]) -> list[str]:
    return [item.finding.message for item in found]


def as_definitions(text: str) -> list[str]:
    try:
        load_documents(text)
    except UnreadableTextError as error:
        return [str(error)]
    return []


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


DOCUMENT, VALUE = (parse._Reader, "_document"), (parse._Reader, "_value")
ITEM = (asked, "parse_as")
LONG = json.dumps("x" * MAX_BYTES)
DEMAND = "apiVersion: gpuplan.dev/v1\nkind: Demand\nmetadata: {name: a}\nspec:\n  needs:\n"
NEED = "  - {team: a, pods: 1, memory: 8Gi}\n"
BOUNDS = {
    "bytes": Bound(lambda size: "a" * size, MAX_BYTES, by_lines, "file is larger than 8 MiB", DOCUMENT),
    "documents": Bound(
        lambda size: "---\na:\n" * size, MAX_DOCUMENTS, by_lines, "file holds more than 100,000 documents", DOCUMENT
    ),
    "directives": Bound(
        lambda size: "#\n" + "".join(f"%TAG !a{number}! b\n" for number in range(size)) + "---\na: 1\n",
        MAX_DIRECTIVES,
        by_lines,
        "file has more than 64 lines that begin with `%`",
        DOCUMENT,
    ),
    "levels": Bound(
        nested, MAX_DEPTH, by_lines, "values are nested more than 64 levels deep", VALUE, allowed=MAX_DEPTH + 1
    ),
    "levels-of-json": Bound(
        lambda size: f"[{LONG}, {nested(size - 1)}]",
        MAX_TEXT_DEPTH,
        as_printed,
        "values are nested more than 200 levels deep",
        (json.JSONDecoder, "raw_decode"),
    ),
    "levels-of-definitions": Bound(
        nested, MAX_TEXT_DEPTH, as_definitions, "values are nested more than 200 levels deep", (yaml, "load_all")
    ),
    "rows": Bound(
        lambda size: "team,pods,memory\n" + "a,1,8Gi\n" * size,
        MOST_NEEDS,
        as_demand,
        "demand has more than 10,000 items",
        ITEM,
    ),
    "items": Bound(lambda size: DEMAND + NEED * size, MOST_NEEDS, as_demand, "demand has more than 10,000 items", ITEM),
    "columns": Bound(
        lambda size: "team," * (size - 1) + "pods",
        MAX_COLUMNS,
        as_demand,
        "table has more than 1,000 columns",
        (asked, "wrong_header"),
    ),
}


def test_a_text_in_a_value_is_read_up_to_what_a_cluster_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_text("a" * MAX_TEXT) == ["a" * MAX_TEXT]
    monkeypatch.setattr(yaml, "load_all", None)
    assert read_text("a" * (MAX_TEXT + 1)) == []
    assert is_yaml("[" * (MAX_TEXT + 1))
    assert not is_yaml("[" * MAX_TEXT)


@pytest.fixture(params=BOUNDS.values(), ids=tuple(BOUNDS))
def bound(request: pytest.FixtureRequest) -> Bound:
    found: Bound = request.param
    return found


@pytest.fixture
def calls(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An item for each time that the work of the bound was begun."""
    owner, name = bound.work
    real, begun = getattr(owner, name), list[str]()

    def work(*arguments: object, **named: object) -> object:
        begun.append(name)
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, work)
    return begun


@pytest.mark.parametrize("times", [1, 10])
def test_what_is_over_a_bound_is_said_before_anything_is_made_of_it(bound: Bound, calls: list[str], times: int) -> None:
    found = bound.read(bound.text(times * bound.bound + 1))

    assert any(message.endswith(bound.message) for message in found)
    assert len(calls) <= bound.allowed


def test_and_what_is_at_the_bound_is_read(bound: Bound, calls: list[str]) -> None:
    found = bound.read(bound.text(bound.bound))

    assert not any(message.endswith(bound.message) for message in found)
    assert len(calls) > 0


# --- Trees of Git, of which a few stand for more paths than anybody could walk ------------------------------------


def a_bomb(root: Path, levels: int) -> str:
    """A commit with one file by ten ways a level in `policies`."""
    entry = TreeEntry(b"40000", b"0", a_tree(root, [TreeEntry(b"100644", b"a.yaml", an_object(root, "blob", b"a: 1"))]))
    for _ in range(levels):
        entry = entry._replace(digest=a_tree(root, [entry._replace(name=b"%d" % number) for number in range(10)]))
    return a_commit(root, a_tree(root, [entry._replace(name=b"policies")]), "bomb")


@pytest.mark.parametrize("count", [lambda tree: tree.expect("policies", frozenset()), lambda tree: tree.contents(".")])
def test_paths_are_counted_before_they_are_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: Callable[[GitTree], object]
) -> None:
    monkeypatch.setattr(git_tree, "MOST_STEPS", 10**12)  # to walk so many takes days
    root = a_repository(tmp_path)
    tree = GitTree(root, a_bomb(root, 13), "", "HEAD")

    with pytest.raises(GpuplanError, match="has folders and links without end: `policies/0"):
        count(tree)
    tree.close()


def test_and_fewer_paths_are_no_trouble(tmp_path: Path) -> None:
    root = a_repository(tmp_path)
    tree = GitTree(root, a_bomb(root, 3), "", "HEAD")

    tree.expect("policies", frozenset())

    assert len(tree.contents("policies")) == 10**3
    tree.close()
