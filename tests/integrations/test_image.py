"""The image: who it runs as, what it is made of, and that all of that is there."""

from __future__ import annotations

import re
import shlex
import tomllib

from tests.cli.runs import REPOSITORY

LINES = [
    line
    for line in (REPOSITORY / "Containerfile").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
COPIED = [
    word for line in LINES if line.startswith("COPY ") and "--from" not in line for word in shlex.split(line)[1:-1]
]
LET_THROUGH = [
    line[1:] for line in (REPOSITORY / ".containerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"
]


def test_it_runs_as_the_user_that_argo_cd_asks_for() -> None:
    assert [line for line in LINES if line.startswith("USER ")] == ["USER 999:999"]
    assert LINES[-1] == 'ENTRYPOINT ["gpuplan"]'


def test_its_base_is_pinned() -> None:
    assert [
        line for line in LINES if re.fullmatch(r"ARG PYTHON=[\w./-]+:3\.11\.\d+-slim-\w+@sha256:[0-9a-f]{64}", line)
    ]
    assert {line.split()[1] for line in LINES if line.startswith("FROM ")} == {"${PYTHON}"}


def test_its_packages_are_locked() -> None:
    installs = [line for line in LINES if line.startswith("RUN pip install ")]

    assert installs == [
        "RUN pip install --require-hashes -r requirements/run.txt",
        "RUN pip install --no-deps --no-build-isolation .",
    ]


def test_what_is_copied_exists_and_is_let_through() -> None:
    assert [path for path in COPIED if not (REPOSITORY / path).exists()] == []
    assert sorted(COPIED) == sorted(LET_THROUGH)


def test_all_that_the_package_is_built_of_is_copied() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))

    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert {*needed, *project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]} <= set(COPIED)
