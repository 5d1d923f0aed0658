"""Do what a page says, in one folder and from top to bottom, as a reader would."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.commands import problems
from tests.docs.pages import REPOSITORY, Block

ANYTHING = "..."
"""A line of shown output that stands for any number of lines."""


class DocumentationError(AssertionError):
    """A block says what is not so."""

    def __init__(self, block: Block, message: str) -> None:
        super().__init__(f"{block}: {message}")


@dataclass
class Session:
    """A reader's shell: the folder that a page is followed in, and where in it the reader is."""

    folder: Path
    here: Path = field(init=False)

    def __post_init__(self) -> None:
        self.here = self.folder

    def follow(self, block: Block) -> None:
        """Do what the block says, or compare what it shows."""
        title = block.options.get("title", "")
        match block.language:
            case "console" if "needs" in block.options:
                self._look_at(block)
            case "console":
                self._run(block)
            case "diff" if title:
                self._change(block, self.here / title)
            case "yaml" if title.startswith("out/"):
                self._compare(block, self.here / title)
            case "yaml" if title:
                (self.here / title).parent.mkdir(parents=True, exist_ok=True)
                (self.here / title).write_text(block.text, encoding="utf-8")

    def _run(self, block: Block) -> None:
        commands = transcript(block.text)
        for number, (command, shown) in enumerate(commands, 1):
            expected = int(block.options.get("exit", "0")) if number == len(commands) else 0
            code, printed = self.shell(command)
            if code != expected:
                raise DocumentationError(block, f"`{command}` ends with {code}:\n{printed}")
            if shown and not matches(shown, printed):
                raise DocumentationError(block, f"`{command}` prints:\n{printed}")

    def _look_at(self, block: Block) -> None:
        for command, _ in transcript(block.text):
            if found := problems(command, self.here):
                raise DocumentationError(block, "; ".join(found))

    def _change(self, block: Block, path: Path) -> None:
        lines = [line for line in block.text.splitlines(keepends=True) if not line.startswith("@@")]
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        after = "".join(line[1:] for line in lines if not line.startswith("-"))
        text = path.read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise DocumentationError(block, f"{path.name} has {text.count(before)} times\n{before}")
        path.write_text(text.replace(before, after), encoding="utf-8")

    def _compare(self, block: Block, path: Path) -> None:
        if not path.is_file():
            raise DocumentationError(block, f"{path.name} does not exist")
        text = path.read_text(encoding="utf-8")
        if not matches(block.text.splitlines(), text):
            raise DocumentationError(block, f"{path.name} is\n{text}")

    def shell(self, command: str) -> tuple[int, str]:
        """Run a command; its exit code and all that a terminal would show."""
        if command.startswith("cd "):
            self.here = self.here / command.removeprefix("cd ")
            return (0, "") if self.here.is_dir() else (1, f"{self.here} does not exist\n")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.here,
            env=environment(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout


def environment(folder: Path) -> dict[str, str]:
    """A newcomer's: no settings of this machine, `gpuplan` and git on the path."""
    programs = folder.parent / f"{folder.name}-bin"
    if not programs.exists():
        programs.mkdir()
        (programs / "gpuplan").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpuplan.cli "$@"\n')
        (programs / "gpuplan").chmod(0o755)
    person = {"NAME": "A newcomer", "EMAIL": "newcomer@example.com"}
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(folder.parent),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in person.items()},
    }


def transcript(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the output shown below it.

    Where no line starts with the prompt ``$ ``, every line is a command.
    A command goes on in the next line after a final backslash.
    """
    lines = text.replace("\\\n", "").splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return [(line, []) for line in lines if line and not line.startswith("#")]
    commands: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            commands.append((line.removeprefix("$ "), []))
        else:
            commands[-1][1].append(line)
    return [(command, _without_blank_ends(shown)) for command, shown in commands]


def _without_blank_ends(lines: list[str]) -> list[str]:
    text = "\n".join(lines).strip("\n")
    return text.split("\n") if text else []


def matches(shown: list[str], printed: str) -> bool:
    """Whether that was printed, line by line; a line ``...`` stands for any lines, none included."""
    lines = [line.rstrip() for line in printed.strip("\n").split("\n")]
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == ANYTHING:
            pieces.append([])
        else:
            pieces[-1].append(line.rstrip())
    start = len(pieces[0])
    if lines[:start] != pieces[0]:
        return False
    for number, piece in enumerate(pieces[1:], 2):
        if number == len(pieces):
            return not piece or (start <= len(lines) - len(piece) and lines[-len(piece) :] == piece)
        found = next((i for i in range(start, len(lines)) if lines[i : i + len(piece)] == piece), None)
        if found is None:
            return False
        start = found + len(piece)
    return start == len(lines)
