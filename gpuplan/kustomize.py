"""Build folders with kustomize, whether it comes by itself or inside of kubectl."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gpuplan.diagnostics import GpuplanError

KNOWN_PROGRAMS: Final = ("kustomize", "kubectl")
LONGEST_BUILD: Final = 120
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Built:
    """What came of a folder: the objects as YAML text, or why there are none."""

    text: str = ""
    refusal: str = ""


def find_program(wanted: str = "") -> tuple[str, ...] | None:
    """The command that builds a folder: the program wanted, or whichever is on the path; None where there is none."""
    for name in (wanted,) if wanted else KNOWN_PROGRAMS:
        program = shutil.which(name)
        if program:
            is_alone = Path(program).name.lower().startswith("kustomize")
            return (program, "build") if is_alone else (program, "kustomize")
    if wanted:
        raise GpuplanError(
            f"cannot run `{wanted}`: there is no such program",
            "name `kustomize` or `kubectl`, or write `--kustomize off`",
        )
    return None


@contextmanager
def laid_out(root: Path, files: Mapping[str, bytes], links: Sequence[str]) -> Iterator[Path]:
    """A temporary copy of the repository's root with files of its own, whose paths may leave the root.

    ``links`` are folders of the repository that are needed as they are. Around the copy there is all of the root's way,
    so that paths from one folder to another hold.
    """
    with TemporaryDirectory(prefix="gpuplan-") as temporary:
        top = Path(os.path.realpath(temporary))
        copy = top / root.relative_to(root.anchor)
        copy.mkdir(parents=True)
        for path, data in files.items():
            file = Path(os.path.normpath(copy / path))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        for link in links:
            (copy / link).symlink_to(root / link, target_is_directory=True)
        yield copy


def build(command: Sequence[str], folders: Sequence[Path]) -> list[Built]:
    """Build each folder by itself, a few at a time."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(lambda folder: _build(command, folder), folders))


def _build(command: Sequence[str], folder: Path) -> Built:
    try:
        result = subprocess.run(  # noqa: S603 - whoever runs gpuplan chooses the program
            [*command, str(folder)], capture_output=True, check=False, timeout=LONGEST_BUILD
        )
    except OSError as error:
        raise GpuplanError(f"cannot run `{command[0]}`: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        return Built(refusal=f"it did not end within {LONGEST_BUILD} seconds")
    if result.returncode:
        return Built(refusal=_refusal(result.stderr.decode(errors="replace")))
    return Built(result.stdout.decode(errors="replace"))


_IN_LOG: Final = re.compile(r'err=("(?:[^"\\]|\\.)*")')


def _refusal(said: str) -> str:
    """What it said, in one line, out of the log entry that some builds of kubectl make of it; no stack traces."""
    lines = takewhile(lambda line: not line.startswith("goroutine "), said.splitlines())
    text = " ".join(line for line in lines if not line.startswith("# Warning"))
    logged = _IN_LOG.search(text)
    if logged:
        with suppress(ValueError):  # Go has escapes that JSON has not
            text = str(json.loads(logged[1]))
    return " ".join(text.removeprefix("error: ").removeprefix("Error: ").split()) or "it does not say why"
