"""Count the words and sizes that make code hard to read, by package: ``make check`` fails above a package's ceiling.

python tools/words.py                      # a table
python tools/words.py --list openings FILE # each place in a module or a folder
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from count import ROOT, package_of

OPENINGS: Final = frozenset({"What", "Which", "Who", "How", "Of", "By"})
"""The words with which no docstring begins: without a verb it is open whether a value or a case is meant."""
VAGUE: Final = frozenset({"found", "item", "what", "told", "said", "own", "left", "there"})
"""Names that say nothing of the thing that they name."""
LONG: Final = 80
"""The lines that a function has at most."""

Functions = ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Offence(NamedTuple):
    """A place that counts towards a ceiling. ``kind`` is one of ``SHARES`` or ``COUNTS``; ``text`` is read there."""

    kind: str
    path: Path
    line: int
    text: str


SHARES: Final = {"openings": "docstrings", "once": "functions"}
"""Kinds whose ceiling is in per cent, with that of which they are a share: docstrings that begin with one of
``OPENINGS``, and private functions that are used once in their module."""
COUNTS: Final = ("names", "imports", "long")
"""Kinds whose ceiling is a number: parameters, fields and functions with a name of ``VAGUE``, imports within functions,
and functions of more than ``LONG`` lines."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=ROOT / "gpuplan", help="a module or a folder (gpuplan/)")
    parser.add_argument("--list", choices=[*SHARES, *COUNTS], help="print each place of a kind instead of a table")
    parser.add_argument("--budget", type=Path, help="fail where a package is above a ceiling of this file")
    options = parser.parse_args(arguments)
    path = options.path.resolve()
    modules = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if options.list:
        places = [offence for module in modules for offence in offences(module) if offence.kind == options.list]
        print("\n".join(f"{p.path.relative_to(ROOT)}:{p.line}: {p.text}" for p in places))  # noqa: T201 - a script
        return 0
    counts = count_packages(modules, ROOT / "gpuplan")
    if options.budget:
        ceilings = tomllib.loads(options.budget.read_text(encoding="utf-8"))["words"]
        faults = [*over_ceilings(counts, ceilings)]
        print("\n".join(faults), end="\n" if faults else "")  # noqa: T201 - a script
        return 1 if faults else 0
    print(as_table(counts))  # noqa: T201 - a script
    return 0


def count_packages(modules: Sequence[Path], folder: Path) -> dict[str, Counter[str]]:
    """Return what each package of a folder has: the number of its functions, docstrings, and offences by kind."""
    counts: dict[str, Counter[str]] = {}
    for module in modules:
        read = _read(module)
        count = counts.setdefault(package_of(module, folder), Counter())
        count.update(functions=len(read.functions), docstrings=len(read.docstrings))
        count.update(offence.kind for offence in _offences(module, read))
    return counts


def over_ceilings(counts: Mapping[str, Mapping[str, int]], ceilings: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a sentence for each package that is above one of its ceilings, or that has none."""
    for package, count in counts.items():
        for kind in (*SHARES, *COUNTS):
            number, unit = _measured(count, kind)
            allowed = ceilings.get(package, {}).get(kind, 0)
            if number > allowed:
                yield (
                    f"{package}: {kind} {number}{unit}, above the ceiling of {allowed}{unit}: "
                    f"see `python tools/words.py --list {kind} gpuplan/{'' if package == '.' else package}`"
                )
    yield from (
        f"{package}: there is no such package: remove its table" for package in ceilings if package not in counts
    )


def offences(module: Path) -> Iterator[Offence]:
    """Yield each place of a module that counts towards a ceiling."""
    return _offences(module, _read(module))


class _Read(NamedTuple):
    """A module, read once: its docstrings and names with their lines, its functions, how often each name is used."""

    docstrings: Sequence[tuple[int, str]]
    names: Sequence[tuple[int, str]]
    functions: Sequence[Functions]
    uses: Mapping[str, int]


def _read(module: Path) -> _Read:
    nodes = [*ast.walk(ast.parse(module.read_text(encoding="utf-8")))]
    return _Read(
        [place for node in nodes if isinstance(node, _Documented) for place in _docstrings(node)],
        [place for node in nodes for place in _names(node)],
        [node for node in nodes if isinstance(node, Functions)],
        Counter(
            [node.id for node in nodes if isinstance(node, ast.Name)]
            + [node.attr for node in nodes if isinstance(node, ast.Attribute)]
        ),
    )


def _offences(module: Path, read: _Read) -> Iterator[Offence]:
    for line, text in read.docstrings:
        if text.split() and text.split(None, 1)[0].strip("`,.:;") in OPENINGS:
            yield Offence("openings", module, line, text.strip().splitlines()[0])
    for line, name in read.names:
        if name.strip("_") in VAGUE:
            yield Offence("names", module, line, name)
    late = {
        (node.lineno, ast.unparse(node))
        for function in read.functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    yield from (Offence("imports", module, line, text) for line, text in sorted(late))
    for function in read.functions:
        if function.name.startswith("_") and not function.name.startswith("__") and read.uses[function.name] == 1:
            yield Offence("once", module, function.lineno, function.name)
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > LONG:
            yield Offence("long", module, function.lineno, f"{function.name}: {lines} lines")


def _docstrings(node: _Documented) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of the docstring of a module, class or function, and of each of its values."""
    for place, statement in enumerate(node.body):
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
            and (place == 0 or isinstance(node.body[place - 1], ast.Assign | ast.AnnAssign))
        ):
            yield statement.lineno, statement.value.value


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of a function, of a parameter, or of each field of a class."""
    if isinstance(node, Functions):
        yield node.lineno, node.name
    if isinstance(node, ast.arg):
        yield node.lineno, node.arg
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.lineno, statement.target.id


def _measured(count: Mapping[str, int], kind: str) -> tuple[float, str]:
    """Return how much of a kind there is, and its unit."""
    if kind in SHARES:
        return round(100 * count.get(kind, 0) / (count.get(SHARES[kind], 0) or 1), 1), " %"
    return count.get(kind, 0), ""


def as_table(counts: Mapping[str, Counter[str]]) -> str:
    head = ("package", "docstrings", "openings", "%", "functions", "once", "%", *COUNTS)
    total = sum(counts.values(), Counter[str]())
    rows = [
        (
            name,
            *(count["docstrings"], count["openings"], _measured(count, "openings")[0]),
            *(count["functions"], count["once"], _measured(count, "once")[0]),
            *(count[kind] for kind in COUNTS),
        )
        for name, count in [*sorted(counts.items()), ("total", total)]
    ]
    width = max(len(str(row[0])) for row in rows) + 2
    return "\n".join(f"{row[0]!s:<{width}}" + "".join(f"{cell!s:>11}" for cell in row[1:]) for row in [head, *rows])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
