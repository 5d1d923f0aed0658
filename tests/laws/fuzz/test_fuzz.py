"""One byte changed anywhere in the example platform gives findings or trouble, never a traceback."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import validate
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.text import Theme

REPOSITORY = Path(__file__).parents[3]
FILES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("policies", "overlays")
    for path in (REPOSITORY / folder).rglob("*.yaml")
)
CHANGES_PER_FILE = int(os.environ.get("GPUPLAN_TEST_FUZZ", "12"))
"""How many bytes to change in each file; raise it to search longer."""

TELLING_BYTES = b"\x00\t\n\r \"#&'*,-.:<>?@[]`{|}!%~0\x7f\x80\xc3\xff"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_changed_byte_never_raises(name: str, repository: Path) -> None:
    chance = random.Random(name)
    original = (repository / name).read_bytes()
    for _ in range(CHANGES_PER_FILE):
        place = chance.randrange(len(original))
        byte = chance.choice(TELLING_BYTES) if chance.random() < 0.7 else chance.randrange(256)
        check_survives(repository, name, original[:place] + bytes([byte]) + original[place + 1 :])


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_never_raises(name: str, repository: Path) -> None:
    original = (repository / name).read_bytes()
    chance = random.Random(name)
    for _ in range(4):
        check_survives(repository, name, original[: chance.randrange(len(original))])


def check_survives(repository: Path, name: str, data: bytes) -> None:
    (repository / name).write_bytes(data)
    try:
        report = validate(repository)
    except GpuplanError:
        return
    for output_format in Format:
        findings(report, output_format, Theme())
    for found in report.diagnostics:
        location = found.finding.at.locate()
        assert location.span.start <= location.span.end
        assert 1 <= location.span.start.line <= len(location.file.lines)
