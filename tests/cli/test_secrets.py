"""Nothing of a Secret, or of a credential, is printed: whatever is wrong with its file, in each command and format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpuplan.compiler import pipeline
from gpuplan.compiler.base.confidential import confidential_in
from gpuplan.compiler.documents.printed import read_json
from gpuplan.compiler.documents.text import decode
from gpuplan.terminal.formats import Format
from tests.cli.platforms import a_platform
from tests.cli.runs import REPOSITORY, Run, run, scrub
from tests.cli.secret_forms import CODED, FORMS, LEGAL, PLAIN, SECRET, TOKEN
from tests.every import every

FORM = pytest.mark.parametrize("form", FORMS)
PARTS = {text[start : start + 6] for text in (PLAIN, CODED) for start in range(len(text) - 5)}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    scrub(monkeypatch)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_platform(tmp_path_factory.mktemp("platform"))


def told(*texts: str) -> set[str]:
    """The parts of six characters of what is secret, whether or not something stands between two characters."""
    plain = [re.sub(r"[^A-Za-z0-9=]", "", text) for text in texts]
    return {part for part in PARTS if any(part in text for text in plain)}


def written(root: Path, form: str) -> str:
    file = root / "given.yaml"
    file.write_bytes(FORMS[form])
    return str(file)


def told_by(done: Run) -> set[str]:
    assert "bug in gpuplan" not in done.err
    return told(done.out, done.err)


@every(FORMS)
def test_each_line_of_its_file_can_be_shown_and_is_as_long(form: str) -> None:
    """Whatever a finding points at, and whatever of the values it cites."""
    file, _ = decode("given.yaml", FORMS[form])

    shown = [file.confidential.line(number + 1) for number in range(len(file.lines))]

    assert told(*shown) == set()
    assert [*map(len, shown)] == [*map(len, file.lines)]


@every(FORMS)
def test_no_words_on_its_file_cite_it(form: str) -> None:
    file, _ = decode("given.yaml", FORMS[form])
    values = [value for value in (PLAIN, CODED) if value in file.text]

    said = [file.confidential.hidden(f'"{value}" is not of type "integer", nor `{value[:9]}...`') for value in values]

    assert told(*said) == set()


@FORM
def test_check_tells_none_of_it_in_any_format(tmp_path: Path, form: str) -> None:
    file = written(tmp_path, form)
    outputs = [text for format_ in Format for text in ("-o", f"{format_.value}={tmp_path / format_.value}")]

    done = run("check", file, *outputs, cwd=tmp_path)

    reports = [(tmp_path / format_.value).read_text() for format_ in Format]
    assert (told_by(done), told(*reports)) == (set(), set())


@FORM
def test_no_command_tells_any_of_it(tmp_path: Path, platform: Path, form: str) -> None:
    file = written(tmp_path, form)
    given = (tmp_path / "given.yaml").read_text(encoding="utf-8", errors="replace")
    ways = {
        "import": ("import", file, "-c", "new", "--dry-run"),
        "drift": ("drift", file, "-c", "dev"),
        "drift as JSON": ("drift", file, "-c", "dev", "-o", "json"),
        "diff": ("diff", "--against", ".", "-c", "dev", "--pods", file, "--nodes", file),
        "retain": ("retain", "--against", ".", "-c", "dev", "--nodes", file),
        "rollout": ("rollout", "research", "--to", "exclusive", "-c", "dev", "--nodes", file),
        "pack": ("pack", file, "-c", "dev"),
        "trace": ("trace", "-c", "dev", "-"),
    }

    found = {way: told_by(run(*words, cwd=platform, stdin=given)) for way, words in ways.items()}

    assert {way: parts for way, parts in found.items() if parts} == {}


@FORM
def test_nor_do_those_that_read_it_in_a_component_or_among_policies(tmp_path: Path, form: str) -> None:
    root = a_platform(tmp_path)
    folder = root / "overlays/dev/kustomize/namespaces/research"
    folder.mkdir(parents=True)
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    (folder / "kustomization.yaml").write_text(f"{head}resources: [given.yaml]\n")
    (folder / "given.yaml").write_bytes(FORMS[form])

    outputs = [text for format_ in Format for text in ("-o", f"{format_.value}={tmp_path / format_.value}")]
    found = told_by(run("validate", *outputs, cwd=root)) | told_by(run("build", cwd=root))
    (root / "policies/given.yaml").write_bytes(FORMS[form])
    found |= told_by(run("validate", "-o", "full", cwd=root))

    assert (found, told(*((tmp_path / format_.value).read_text() for format_ in Format))) == (set(), set())


@pytest.mark.parametrize("text", LEGAL.values(), ids=LEGAL)
def test_what_only_names_a_secret_is_shown(text: str) -> None:
    found = confidential_in(text)

    assert [found.line(number + 1) for number in range(len(found.lines))] == text.split("\n")
    assert found.hidden(text) == text


def test_names_and_what_is_beside_a_secret_are_shown(tmp_path: Path) -> None:
    text = f"kind: List\nitems:\n- {json.dumps(SECRET)}\n- kind: Node\n  metadata: {{name: research-1}}\n"

    *_, secret, kind, name, _ = confidential_in(text).lines

    plain, coded = "*" * len(PLAIN), "*" * len(CODED)
    assert secret == f"- {json.dumps(SECRET).replace(PLAIN, plain).replace(CODED, coded)}"
    assert (kind, name) == ("- kind: Node", "  metadata: {name: research-1}")


def test_a_finding_is_shown_with_the_name_of_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "given.yaml").write_bytes(FORMS["elsewhere-too"])

    assert "`nvidia.com/gpu` has `replicas: ********************`" in run("check", "given.yaml", cwd=tmp_path).out


def test_a_bug_tells_its_kind_and_place_and_never_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError(PLAIN)

    monkeypatch.setattr(pipeline, "validate", fail)

    done = run("validate")

    assert "this is a bug in gpuplan: KeyError in cli/commands/validating.py:" in done.err
    assert told(done.out, done.err) == set()


def test_the_traceback_of_a_bug_has_stars_for_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"password={PLAIN}, {TOKEN}")

    monkeypatch.setattr(pipeline, "validate", fail)

    done = run("validate", env={"GPUPLAN_DEBUG": "1"})

    assert "ValueError: password=****" in done.err
    assert told(done.out, done.err) == set()


def test_json_without_lines_hides_the_same_values() -> None:
    [printed] = read_json("given.json", FORMS["one-line"].decode())

    assert {PLAIN, CODED} <= printed.at.locate().file.confidential.values


def test_views_and_commands_read_the_words_of_findings_as_they_are_shown() -> None:
    unhidden = re.compile(r"\.finding(\.(message|label|notes|help|headline|related)\b|$)|\.file\.text\b", re.MULTILINE)
    shown = {"cli", "commands", "terminal", "views"}
    files = [file for file in (REPOSITORY / "gpuplan").rglob("*.py") if shown & {*file.parts}]
    assert {part for file in files for part in file.parts} >= shown

    assert [file.name for file in files if unhidden.search(file.read_text())] == []
