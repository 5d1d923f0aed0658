"""The example platform as earlier states of gpuplan wrote it, each kept as one file of text.

A line `=== path` opens a file of the tree, and what follows to the next such line is its text. A release that says
`--- base NAME` is that release but for the files that it names; `--- path` takes one away. Write one with::

    python -m tests.laws.upgrades.releases COMMIT NAME [BASE]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "releases"
_KEPT = ("policies/", "overlays/", "out/")
_OPENS, _GOES, _BASE = "=== ", "--- ", "--- base "


def names() -> tuple[str, ...]:
    """Oldest first: a name begins with its day."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.txt")))


def tree(name: str) -> Mapping[str, str]:
    """The texts of a release by path."""
    return read((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def read(text: str) -> Mapping[str, str]:
    """The texts by path that `written` put into one."""
    found: dict[str, str] = {}
    path, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        if line.startswith(_BASE):
            found = dict(tree(line.removeprefix(_BASE).strip()))
        elif line.startswith(_GOES) and not path:
            del found[line.removeprefix(_GOES).strip()]
        elif line.startswith(_OPENS):
            found |= {path: "".join(lines)} if path else {}
            path, lines = line.removeprefix(_OPENS).strip(), []
        elif path:
            lines.append(line)
    return found | ({path: "".join(lines)} if path else {})


def written(texts: Mapping[str, str], base: str = "") -> str:
    """What `read` reads back: all of a tree, or what differs from a base."""
    known = tree(base) if base else {}
    gone = [f"{_GOES}{path}\n" for path in sorted({*known} - {*texts})]
    first = [f"{_BASE}{base}\n"] if base else []
    return "".join([*first, *gone, *_opened({path: text for path, text in texts.items() if known.get(path) != text})])


def _opened(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in sorted(texts.items()):
        if not text.endswith("\n") or any(line.startswith(_OPENS) for line in text.splitlines()):
            raise ValueError(f"{path} cannot be kept as lines between marks")
        yield f"{_OPENS}{path}\n{text}"


def _committed(commit: str) -> Mapping[str, str]:
    listed = _git("ls-tree", "-r", "--name-only", commit).splitlines()
    return {path: _git("show", f"{commit}:{path}") for path in listed if path.startswith(_KEPT)}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    commit, name, base = [*sys.argv[1:], ""][:3]
    (FOLDER / f"{name}.txt").write_text(written(_committed(commit), base), encoding="utf-8")
