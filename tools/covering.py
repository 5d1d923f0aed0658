"""Which tests come by a line, as coverage measured it."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from mutations import SOURCES, Site, bound, identifiers, parsed

Line = tuple[str, int]
"""A file below gpuplan/, and the number of a line."""


class Coverage:
    """The data file of a run with a context for each test, and the log beside it, which ends with the slowest ones."""

    def __init__(self, path: Path) -> None:
        log = path.with_suffix(".log").read_text(encoding="utf-8")
        self._slow = frozenset(re.findall(r"(?m)^[\d.]+s call +(\S.*)$", log))
        with sqlite3.connect(path) as data:
            files = dict(data.execute("SELECT id, path FROM file"))
            contexts = dict(data.execute("SELECT id, context FROM context"))
            rows = data.execute("SELECT file_id, context_id, numbits FROM line_bits").fetchall()
        below = {file: _below(path) for file, path in files.items()}
        self.tests = {context: name.rpartition("|")[0] for context, name in contexts.items() if "::" in name}
        self._rows: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        self._size: Counter[str] = Counter()
        for file, context, bits in rows:
            if context in self.tests:
                self._rows[below[file]].append((context, bits))
                self._size[self.tests[context]] += int.from_bytes(bits, "little").bit_count()
        self._known: dict[str, tuple[tuple[str, int], ...]] = {}

    def tests_of(self, file: str, lines: Iterable[int]) -> list[str]:
        """The tests that come by one of the lines of a file, most about the file first, slow ones last.

        They are taken in turn from two orders: by the share of the file in all that a test comes by, and by its number
        of lines there.
        """
        wanted = sum(1 << line for line in set(lines))
        here: Counter[str] = Counter()
        found = set()
        for test, covered in self._lines(file):
            here[test] += covered.bit_count()
            if covered & wanted:
                found.add(test)
        by_share = sorted(found, key=lambda test: (-here[test] / self._size[test], test))
        by_lines = sorted(found, key=lambda test: (-here[test], self._size[test], test))
        return self._slow_last(chain.from_iterable(zip(by_share, by_lines, strict=True)))

    def _slow_last(self, tests: Iterable[str]) -> list[str]:
        return sorted(dict.fromkeys(tests), key=self._slow.__contains__)

    def _lines(self, file: str) -> tuple[tuple[str, int], ...]:
        """Tests that come by a file, each with a bit for each line there."""
        if file not in self._known:
            rows = self._rows.get(file, ())
            self._known[file] = tuple((self.tests[context], int.from_bytes(bits, "little")) for context, bits in rows)
        return self._known[file]

    def covering(self, file: str, site: Site) -> list[str]:
        """The tests that come by a node; where it runs on import, those that come by what reads its names."""
        if site.names is None:
            return self.tests_of(file, site.lines) or self.tests_of(file, (site.statement.lineno,))
        readers = _readers().of(file, site.names)
        lists = [self.tests_of(reader, lines) for reader, lines in readers.items()]
        mixed = (test for tests in zip_longest(*lists) for test in tests if test is not None)
        return self._slow_last(mixed) or self.tests_of(file, _lines_of_functions(file))


def _below(path: str) -> str:
    return Path(path).as_posix().removeprefix(f"{SOURCES.as_posix()}/").removeprefix(f"{SOURCES.name}/")


class _Module(NamedTuple):
    """Which names its functions and the statements around them read."""

    functions: tuple[tuple[range, frozenset[str]], ...]
    statements: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The names that a statement binds, and those that it reads."""


class _Readers:
    """Who reads a name of a module, directly or by way of another name."""

    def __init__(self) -> None:
        files = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py"))
        self._modules = {file: _module(parsed(file)) for file in files}

    def of(self, file: str, names: frozenset[str]) -> Mapping[str, set[int]]:
        """Lines of functions by file."""
        lines: dict[str, set[int]] = defaultdict(set)
        known, new = set(names), set(names)
        while new:
            following: set[str] = set()
            for reader, module in self._modules.items():
                read = new if reader == file else {name for name in new if not name.startswith("_")}
                for body, used in module.functions:
                    if read & used:
                        lines[reader].update(body)
                following.update(*(binds for binds, used in module.statements if read & used))
            new = following - known
            known |= new
        return lines


@cache
def _readers() -> _Readers:
    return _Readers()


def _module(tree: ast.Module) -> _Module:
    functions = tuple((_body(node), frozenset(identifiers(node)) | {node.name}) for node in _functions(tree))
    statements = tuple((frozenset(bound(statement)), frozenset(identifiers(statement))) for statement in tree.body)
    return _Module(functions, tuple(item for item in statements if item[0]))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _body(function: ast.FunctionDef) -> range:
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


def _lines_of_functions(file: str) -> set[int]:
    return {line for function in _functions(parsed(file)) for line in _body(function)}
