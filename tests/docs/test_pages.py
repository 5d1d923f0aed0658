"""Every page that people write can be followed: its commands run, its policies are valid, what it shows comes out."""

from __future__ import annotations

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gpuplan.compiler.base.diagnostics import Severity
from gpuplan.compiler.checks import run as run_checks
from tests import kustomizing
from tests.docs.pages import DOCS, REPOSITORY, Block, blocks_of, by_hand, prose_of
from tests.docs.platform import prepare
from tests.docs.sessions import DocumentationError, Session, matches, transcript
from tests.every import every
from tests.plans import resolve_text

pytestmark = pytest.mark.no_cover
PAGES = by_hand()
_PATH = re.compile(r"`((?:out|overlays|policies)/[\w./-]*)`")
LANGUAGES = {"console", "csv", "diff", "json", "lua", "python", "text", "yaml"}


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    if any("/kustomize/" in block.options.get("title", "") for block in blocks_of(page)):
        kustomizing.need()
    session = Session(prepare(page, tmp_path / "reader"))
    missing = paths_missing(page, session)
    for block in blocks_of(page):
        session.follow(block)
        missing &= paths_missing(page, session)
    assert missing == set()
    if (session.here / "overlays").exists():
        assert session.shell("gpuplan validate --quiet")[0] == 0


def paths_missing(page: Path, session: Session) -> set[str]:
    """The paths that the page's prose names and that the reader does not have."""
    return {path for path in _PATH.findall(prose_of(page)) if not (session.here / path).exists()}


@every(block for page in PAGES for block in blocks_of(page))
def test_blocks_say_what_they_are(block: Block) -> None:
    assert block.language in LANGUAGES
    assert block.options.keys() <= {"title", "needs", "exit"}
    assert block.options.get("needs") in (None, "cluster", "network")


def is_policy(block: Block) -> bool:
    return "apiVersion: gpuplan.dev/v1" in block.text


@pytest.mark.parametrize(
    "block",
    [block for page in PAGES for block in blocks_of(page) if block.language == "yaml" and not block.options],
    ids=str,
)
def test_yaml_shown_alone_is_valid(block: Block) -> None:
    if is_policy(block):
        assert problems_of_policy(block.text) == []
    else:
        assert [problem for part in yaml.safe_load_all(block.text) for problem in problems_of_object(part)] == []


def problems_of_policy(text: str) -> list[str]:
    plan, diagnostics = resolve_text(text)
    assert plan is not None
    found = (*diagnostics, *run_checks(plan))
    return [item.finding.message for item in found if item.severity is not Severity.NOTE]


def problems_of_object(body: object) -> list[str]:
    """Whatever looks like a Kubernetes object has to be one, as far as its schema is at hand."""
    if not isinstance(body, dict) or "kind" not in body or "apiVersion" not in body:
        return []
    try:
        kubernetes_validate.validate(body, "1.34", strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        return []
    except kubernetes_validate.ValidationError as error:
        return [error.message]
    return []


def test_an_object_that_is_none_is_noticed() -> None:
    assert problems_of_object({"apiVersion": "v1", "kind": "ConfigMap", "date": {}}) != []


# --- The reader itself -------------------------------------------------------------------------------------------


def a_block(language: str, text: str, **options: str) -> Block:
    return Block(DOCS / "page.md", 1, language, options, text)


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    with pytest.raises(DocumentationError, match="`gpuplan validate` ends with 2"):
        session.follow(a_block("console", "$ gpuplan validate\n"))


def test_output_that_is_not_printed_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    with pytest.raises(DocumentationError, match="prints:\ntwo"):
        session.follow(a_block("console", "$ echo two\nthree\n"))


def test_a_flag_that_no_program_has_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    with pytest.raises(DocumentationError, match="has no flag `--prunes`"):
        session.follow(a_block("console", "$ argocd app sync gpuplan --prunes\n", needs="cluster"))


def test_an_application_that_nobody_writes_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    with pytest.raises(DocumentationError, match="names the Application `gpu-operator-dev`"):
        session.follow(a_block("console", "$ argocd app sync gpu-operator-dev\n", needs="cluster"))


def test_a_path_that_is_not_built_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    with pytest.raises(DocumentationError, match="names `out/dev`, which does not exist"):
        session.follow(a_block("console", "$ kubectl diff -k out/dev\n", needs="cluster"))


def test_a_change_that_does_not_apply_is_noticed(tmp_path: Path) -> None:
    session = Session(prepare(DOCS / "tutorial.md", tmp_path / "reader"))
    (session.here / "a.yaml").write_text("one\ntwo\n")
    with pytest.raises(DocumentationError, match=r"a\.yaml has 0 times"):
        session.follow(a_block("diff", " one\n-three\n+four\n", title="a.yaml"))
    session.follow(a_block("diff", " one\n-two\n+four\n", title="a.yaml"))
    assert (session.here / "a.yaml").read_text() == "one\nfour\n"


def test_three_dots_stand_for_any_lines() -> None:
    assert matches(["a", "...", "d"], "a\nb\nc\nd\n")
    assert matches(["...", "b", "..."], "a\nb\nc\n")
    assert matches(["a", "...", "b"], "a\nb\n")
    assert not matches(["a", "..."], "b\na\n")
    assert not matches(["a", "b"], "a\nb\nc\n")
    assert not matches(["...", "b", "...", "a"], "a\nb\n")


def test_commands_are_told_from_what_they_print() -> None:
    assert transcript("$ one \\\n  --flag\nprinted\n\n$ two\n") == [("one   --flag", ["printed"]), ("two", [])]
    assert transcript("one\n# said to people\ntwo # and this\n") == [("one", []), ("two # and this", [])]
