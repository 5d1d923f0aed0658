"""The image: who it runs as, what it is made of, and that all of that is there."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import yaml

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


@pytest.mark.parametrize(
    "image", [r"PYTHON=docker\.io/library/python:3\.11\.\d+-slim-\w+", r"GO=docker\.io/library/golang:1\.\d+-\w+"]
)
def test_what_it_is_made_of_is_pinned(image: str) -> None:
    assert [line for line in LINES if re.fullmatch(rf"ARG {image}@sha256:[0-9a-f]{{64}}", line)]


def test_it_is_made_of_nothing_else() -> None:
    assert {line.split()[1] for line in LINES if line.startswith("FROM ")} == {"${PYTHON}", "${GO}"}
    assert {match[1] for line in LINES if (match := re.match(r"COPY --from=(\S+)", line))} == {"build", "kustomize"}


def test_its_kustomize_is_the_one_that_tests_run() -> None:
    [version] = re.findall(
        r"^kustomize_version=(\S+)$", (REPOSITORY / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE
    )

    assert f"RUN go install -trimpath -ldflags=-s sigs.k8s.io/kustomize/kustomize/v5@{version}" in LINES
    assert "COPY --from=kustomize /opt/kustomize/kustomize /usr/local/bin/kustomize" in LINES


def test_its_go_is_the_one_of_the_pipeline() -> None:
    [go] = [line.removeprefix("ARG GO=") for line in LINES if line.startswith("ARG GO=")]

    pipeline = yaml.safe_load((REPOSITORY / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    assert pipeline["all"]["image"] == go


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
