"""Functions, structs and constants of Go source, found by patterns: as much as tables of facts need."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mirror:
    """A bare git repository at a tag."""

    git_dir: Path
    tag: str

    def text(self, path: str) -> str:
        return self._git("show", f"{self.tag}:{path}")

    def paths(self, folder: str) -> tuple[str, ...]:
        return tuple(self._git("ls-tree", "-r", "--name-only", self.tag, f"{folder}/").splitlines())

    def has_tag(self) -> bool:
        return self.tag in self._git("tag", "--list", self.tag).split()

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self.git_dir}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - git of this machine


@dataclass(frozen=True)
class Function:
    """``parameters`` and ``receiver`` are names with types; ``line`` is that of its head, where ``text`` begins."""

    name: str
    receiver: tuple[str, str] | None
    parameters: tuple[tuple[str, str], ...]
    text: str
    line: int

    def line_at(self, offset: int) -> int:
        return self.line + self.text.count("\n", 0, offset)


@dataclass(frozen=True)
class Call:
    """A call in a function's text."""

    name: str
    arguments: tuple[str, ...]
    offset: int


def without_comments(text: str) -> str:
    """The same lines, comments blanked out: ``//`` inside a string is none."""
    return "\n".join(re.sub(r'^((?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*)//.*$', r"\1", line) for line in text.splitlines())


_HEAD = re.compile(r"^func (?:\((?P<var>\w+) \*?(?P<type>\w+)\) )?(?P<name>\w+)(?:\[[^\]]*\])?\(", re.MULTILINE)


def functions(text: str) -> Iterator[Function]:
    """Those of a file, methods too. Comments are blank in their texts."""
    bare = without_comments(text)
    for head in _HEAD.finditer(bare):
        end = bare.index("\n}", head.end())
        receiver = (head["var"], head["type"]) if head["var"] else None
        parameters = _parameters(between(bare, head.end()))
        yield Function(
            head["name"], receiver, parameters, bare[head.start() : end], 1 + bare.count("\n", 0, head.start())
        )


def _parameters(written: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """``a, b T`` gives both the type that comes last."""
    found, known = list[tuple[str, str]](), ""
    for each in reversed(written):
        name, _, kind = each.partition(" ")
        known = kind.strip() or known
        found.insert(0, (name, known))
    return tuple(found)


def between(text: str, start: int) -> tuple[str, ...]:
    """The arguments from behind an opening bracket to its closing one."""
    parts, depth, begin, position = list[str](), 0, start, start
    while depth >= 0:
        letter = text[position]
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (depth == 0 and letter == ","):
            parts.append(text[begin:position].strip())
            begin = position + 1
        position += 1
    return tuple(part for part in parts if part)


def calls(text: str) -> Iterator[Call]:
    """Calls by name, with the package or variable before it where there is one."""
    for found in re.finditer(r"(?<![\w.])((?:\w+\.)?\w+)\(", text):
        if not text.startswith("func ", found.start() - 5):
            yield Call(found[1], between(text, found.end()), found.start())


def structs(text: str) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """By type the fields, each with its type and its name in JSON; pointers and lists are those of their items."""
    bare = without_comments(text)
    return {
        found[1]: {
            field[1]: (re.sub(r"^(\[\]|\*)+", "", field[2]), field[3])
            for field in re.finditer(r'^\s+(\w+)\s+(\S+)\s+`json:"(\w+)', found[2], re.MULTILINE)
        }
        for found in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", bare, re.MULTILINE | re.DOTALL)
    }


def constants(text: str) -> Mapping[str, str]:
    """Those that are texts."""
    return dict(re.findall(r'^\s*(?:const )?(\w+)(?: string)?\s*=\s*"([^"]*)"', without_comments(text), re.MULTILINE))
