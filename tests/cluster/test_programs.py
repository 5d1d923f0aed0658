"""Programs are built once for all runs, and anew when what they are made of changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import programs
from tests.cluster.programs import need_go

_MODULE = "module example.com/tiny\n\ngo 1.26\n"
_MAIN = 'package main\n\nfunc main() { print("one") }\n'


@pytest.fixture(autouse=True, scope="module")
def _programs() -> None:
    need_go()


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A module of one program, where the builder looks for modules."""
    shutil.copy(programs.__file__, tmp_path)
    module = tmp_path / "go" / "tiny"
    module.mkdir(parents=True)
    (module / "go.mod").write_text(_MODULE, encoding="utf-8")
    (module / "go.sum").touch()
    (module / "main.go").write_text(_MAIN, encoding="utf-8")
    return module


def start(tiny: Path, **environment: str | Path) -> subprocess.Popen[str]:
    root = tiny.parents[1]
    variables = {"GPUPLAN_TEST_PROGRAMS": root / "cache", **environment}
    return subprocess.Popen(
        [sys.executable, root / "programs.py"],
        env=os.environ | {name: str(value) for name, value in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def build(tiny: Path, **environment: str | Path) -> str:
    """What the builder says."""
    process = start(tiny, **environment)
    out, error = process.communicate()
    return error if process.returncode else out


def built(tiny: Path) -> list[Path]:
    """The programs in the cache, finished or not."""
    return list((tiny.parents[1] / "cache").glob("*/**/tiny"))


def go_that(folder: Path, first: str) -> str:
    """A PATH on which Go does something else first."""
    folder.mkdir()
    program = folder / "go"
    program.write_text(f'#!/bin/sh\n{first}\nexec {shutil.which("go")} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def test_a_program_is_built_once(tiny: Path) -> None:
    assert "building 1 of 1: tiny/tiny ..." in build(tiny)
    assert "building" not in build(tiny)
    [program] = built(tiny)
    assert subprocess.run([program], stderr=subprocess.PIPE, text=True, check=True).stderr == "one"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("main.go", _MAIN.replace("one", "two")),
        ("go.mod", f"{_MODULE}\n// another\n"),
        ("go.sum", "example.com/other v1.0.0/go.mod h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"),
        ("added.s", "// assembly\n"),
    ],
)
def test_a_change_of_its_module_builds_it_anew(tiny: Path, file: str, text: str) -> None:
    build(tiny)
    (tiny / file).write_text(text, encoding="utf-8")
    assert "building 1 of 1: tiny/tiny ..." in build(tiny)
    assert len(built(tiny)) == 2


def test_another_release_of_go_builds_it_anew(tiny: Path, tmp_path: Path) -> None:
    build(tiny)
    path = go_that(tmp_path / "newer", 'test "$1" = env && echo go1.99.0 && exit')
    assert "building 1 of 1: tiny/tiny ..." in build(tiny, PATH=path)
    assert len(built(tiny)) == 2


def test_two_runs_at_once_build_it_once(tiny: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    path = go_that(tmp_path / "slow", f'test "$1" = build && echo built >>{log} && sleep 1')
    runs = [start(tiny, PATH=path) for _ in range(2)]
    assert ["" for _ in runs] == [run.communicate()[1] for run in runs]
    assert log.read_text(encoding="utf-8") == "built\n"
    assert len(built(tiny)) == 1


def test_what_is_half_built_is_not_used(tiny: Path, tmp_path: Path) -> None:
    half = go_that(tmp_path / "half", 'test "$1" = build && for out in "$@"; do :; done && echo half >"$5" && exit 1')
    assert "error: go build" in build(tiny, PATH=half)
    assert built(tiny) == []
    assert "building 1 of 1: tiny/tiny ..." in build(tiny)


def test_settings_of_the_user_change_nothing(tiny: Path, tmp_path: Path) -> None:
    """Neither in the environment nor by `go env -w`."""
    (tiny / "odd.go").write_text("//go:build odd\n\npackage odd\n", encoding="utf-8")
    own = tmp_path / "env"
    own.write_text("GOFLAGS=-tags=odd\nGOTOOLCHAIN=go1.99.0\nCGO_ENABLED=0\n", encoding="utf-8")
    assert "error" not in build(tiny, GOENV=own, GOFLAGS="")
    assert "error" not in build(tiny, GOFLAGS="-tags=odd", CGO_ENABLED="0")
    assert len(built(tiny)) == 1


def test_a_checkout_that_git_does_not_trust_is_built(tiny: Path, tmp_path: Path) -> None:
    """As that of another user, in a container: Go asks Git for the commit unless it is told not to."""
    (tmp_path / ".git").mkdir()
    path = go_that(tmp_path / "bin", ":")
    git = tmp_path / "bin" / "git"
    git.write_text("#!/bin/sh\necho 'fatal: detected dubious ownership' >&2\nexit 128\n", encoding="utf-8")
    git.chmod(0o755)
    assert "error" not in build(tiny, PATH=path, GOENV="off")


def test_a_release_of_go_that_is_too_old_is_said(tiny: Path) -> None:
    (tiny / "go.mod").write_text(_MODULE.replace("1.26", "1.99"), encoding="utf-8")
    assert "go.mod requires go >= 1.99" in build(tiny)


def test_without_go_it_says_what_to_install(tiny: Path) -> None:
    assert build(tiny, PATH="").startswith("error: Go is not on PATH\n  help: install Go")
