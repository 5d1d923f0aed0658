"""Build folders with kustomize, as a program of its own or as a part of kubectl."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from gpuplan.compiler.base import programs
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value
from gpuplan.features.components.kustomize.confinement import find_confinement
from gpuplan.features.components.kustomize.running import MAX_PRINTED, Excess, environment, run
from gpuplan.features.components.kustomize.scratch import Scratch as Scratch, Sources as Sources, laid_out as laid_out

OFF: Final = "off"
"""The name that stands for no program."""
KNOWN_PROGRAMS: Final = ("kustomize", "kubectl")
LONGEST_BUILD: Final = 30
"""Seconds of one build. A thousand queues in one folder, which is the largest that gpuplan writes, take eight."""

MARK: Final = "gpuplan.dev/folder"


class Refusal(Value):
    """The reason why no objects came of a folder, as kustomize says it.

    ``is_late`` says that it was stopped, since it took longer than `LONGEST_BUILD`.
    """

    message: str
    is_late: bool = False


def find_program(wanted: str = "") -> tuple[str, ...] | None:
    """The command that builds a folder: the program wanted, or whichever is on the path; None where there is none."""
    if wanted == OFF:
        return None
    for name in (wanted,) if wanted else KNOWN_PROGRAMS:
        program = programs.find_program(name)
        if program:
            is_alone = Path(program).name.lower().startswith("kustomize")
            return (program, "build") if is_alone else (program, "kustomize")
    if wanted:
        raise GpuplanError(
            f"cannot run `{wanted}`: there is no such program",
            "name `kustomize` or `kubectl`, or write `--kustomize off`",
        )
    return None


def bundle(folder: Path, members: Mapping[str, Path]) -> Path:
    """Write a folder that builds several as one; the annotation `MARK` of an object is the name of its member.

    A build takes longer to start than to read what one namespace has. Members are refused together, and an object must
    not be in two of them.
    """
    _write(folder, {"resources": [str(index) for index in range(len(members))]})
    for index, (name, path) in enumerate(members.items()):
        marking = {
            "apiVersion": "builtin",
            "kind": "AnnotationsTransformer",
            "metadata": {"name": "mark"},
            "annotations": {MARK: name},
            "fieldSpecs": [{"path": "metadata/annotations", "create": True}],
        }
        member = folder / str(index)
        _write(member, {"resources": [os.path.relpath(path, member)], "transformers": [json.dumps(marking)]})
    return folder


def _write(folder: Path, kustomization: Mapping[str, object]) -> None:
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization), encoding="utf-8")


def can_confine() -> bool:
    """Whether this system lets programs be kept from a network."""
    return find_confinement() is not None


def build(command: Sequence[str], folders: Sequence[Path], home: Path) -> list[str | Refusal | None]:
    """The objects of each folder as YAML text, without a network where the system can keep programs from it.

    A few are built at a time. When one takes too long, those that were not begun are left out: None came of them.
    """
    confinement = find_confinement()
    late, unwanted = threading.Event(), threading.Event()
    whole = (*(confinement.prefix if confinement else ()), *command)

    def attempt(folder: Path) -> str | Refusal | None:
        if late.is_set():
            return None
        try:
            path, told = str(folder), environment(home)
            ended = run((*whole, path), environment=told, folder=home, seconds=LONGEST_BUILD, unwanted=unwanted)
        except OSError as error:
            raise GpuplanError(f"cannot run `{command[0]}`: {error.strerror}") from error
        if ended.excess is Excess.TIME:
            late.set()
            return Refusal(f"nothing within {LONGEST_BUILD:g} seconds", is_late=True)
        if ended.excess is Excess.OUTPUT:
            return Refusal(f"more than {MAX_PRINTED // 2**20} MiB")
        if ended.status:
            return Refusal(_message(ended.errors.decode(errors="replace")) or f"nothing, and ends with {ended.status}")
        return ended.printed.decode(errors="replace")

    with ThreadPoolExecutor(os.cpu_count(), initializer=confinement.enter if confinement else None) as pool:
        try:
            return list(pool.map(attempt, folders))
        except BaseException:
            unwanted.set()
            raise


_LONGEST_HALF: Final = 4000


_IN_LOG: Final = regex(r'err=("(?:[^"\\]|\\.)*")')


def _message(errors: str) -> str:
    """Return the message in one line, without stack traces. Some builds of kubectl write it into a log entry.

    A long text loses its middle: a Component can make kustomize say anything, and the message is searched for names.
    """
    if len(errors) > 2 * _LONGEST_HALF:
        errors = f"{errors[:_LONGEST_HALF]} … {errors[-_LONGEST_HALF:]}"
    lines = takewhile(lambda line: not line.startswith("goroutine "), errors.splitlines())
    text = " ".join(line for line in lines if not line.startswith("# Warning"))
    logged = _IN_LOG.search(text)
    if logged:
        with suppress(ValueError):  # Go has escapes that JSON has not
            text = str(json.loads(logged[1]))
    return " ".join(text.removeprefix("error: ").removeprefix("Error: ").split())
