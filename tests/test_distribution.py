"""The wheel and the sdist: what is in them, what they say of themselves, and that they come out the same twice."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from trove_classifiers import classifiers

import gpuplan
from tests.cli.runs import REPOSITORY

NAME = f"gpuplan-{gpuplan.__version__}"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_PIN = re.compile(r"^([\w.-]+)(?:\[[\w,.-]+\])?==(\S+)", re.MULTILINE)


_INSTALLER = re.compile(
    r"\b(?:(?:pip3?|pipx|conda|mamba|brew|apt|apt-get) (?:install|download|upgrade|inject)|pipx run|uvx|uv add"
    r"|uv tool (?:install|run|upgrade)|(?:poetry|pdm) add)(?P<words>\s[^`;|&\n]*)"
)
_BY_NAME = re.compile(r"[\"']?gpuplan(?:\[[^\]]*\])?(?:[=<>~!]=\S*)?[\"',.)]*")
_PINNED = re.compile(r"\bgpuplan(?:\[[^\]]*\])?[=<>~!]=\s*[0-9]|GPUPLAN_PACKAGE[:=]\s*[\"']?gpuplan\b")


def installs_by_name(line: str) -> bool:
    """Whether a line has an index say what gpuplan is."""
    commands = [match["words"].split() for match in _INSTALLER.finditer(line)]
    return _PINNED.search(line) is not None or any(
        _BY_NAME.fullmatch(word) and not {"--spec", "--from"} & {*words} for words in commands for word in words
    )


@pytest.mark.parametrize(
    "line",
    [
        "pip install gpuplan",
        "run `pip install 'gpuplan[solver]'`",
        "python -m pip install -q --upgrade gpuplan.",
        "pipx install gpuplan",
        "pipx run gpuplan version",
        "uvx gpuplan validate",
        "uv tool install gpuplan",
        "such as gpuplan==0.1.0",
        "GPUPLAN_PACKAGE: gpuplan # by default",
    ],
)
def test_an_installation_by_name_is_seen(line: str) -> None:
    assert installs_by_name(line)


@pytest.mark.parametrize(
    "line",
    [
        "pipx install .",
        "pipx install 'git+https://git.example.com/gpuplan@v0.1.0'",
        "pipx run --spec . gpuplan version  # or: uvx --from . gpuplan version",
        "pip install -e . && gpuplan version",
    ],
)
def test_an_installation_from_a_checkout_or_a_repository_is_none_by_name(line: str) -> None:
    assert not installs_by_name(line)


def test_nothing_installs_gpuplan_by_its_name() -> None:
    """The name is not ours on any index, so a package there may be anybody's."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    paths = [REPOSITORY / name for name in listed.decode().split("\0") if name]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file()}
    del texts[Path(__file__).resolve()]

    assert {
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path, text in texts.items()
        if "gpuplan" in text
        for number, line in enumerate(text.splitlines(), 1)
        if "gpuplan" in line and installs_by_name(line)
    } == set()


def build(source: Path, into: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of a folder."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(into)], cwd=source, check=True, timeout=120)
    return into / f"{NAME}.tar.gz", into / f"{NAME}-py3-none-any.whl"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(REPOSITORY, tmp_path_factory.mktemp("dist"))


def files_of_package() -> set[str]:
    found = (path for path in (REPOSITORY / "gpuplan").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(REPOSITORY).as_posix() for path in found}


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"{NAME}.dist-info/METADATA").decode())


def test_the_wheel_has_the_package_and_no_more(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == files_of_package()
    assert "gpuplan/py.typed" in names


def test_the_sdist_has_what_builds_it_and_who_to_tell(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}

    beside = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md", "pyproject.toml"}
    assert names - {".gitignore"} == files_of_package() | beside


def test_a_wheel_of_the_sdist_is_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")

    again = build(tmp_path / NAME, tmp_path / "again")

    assert again[0].read_bytes() == built[0].read_bytes()
    assert again[1].read_bytes() == built[1].read_bytes()


def test_it_says_what_it_is(built: tuple[Path, Path]) -> None:
    said = metadata(built[1])

    assert (said["Name"], said["Version"]) == ("gpuplan", gpuplan.__version__)
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload() == (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_its_classifiers_are_known_to_package_indexes() -> None:
    assert set(PROJECT["classifiers"]) - classifiers == set()


def test_the_pythons_it_names_begin_with_the_lowest_that_it_takes() -> None:
    named = [match[1] for item in PROJECT["classifiers"] if (match := re.search(r":: (3\.\d+)$", item))]

    assert PROJECT["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("larger", ["bench", "dist", "docs"])
def test_what_is_installed_on_top_changes_no_locked_version(larger: str) -> None:
    dev, more = (
        dict(_PIN.findall((REPOSITORY / f"requirements/{name}.txt").read_text(encoding="utf-8")))
        for name in ("dev", larger)
    )

    assert dev.items() - more.items() == set()
