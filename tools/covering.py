"""Which tests run a part of the code, as `recording` wrote it down."""

from __future__ import annotations

import ast
import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from mutations import SOURCES, Site, bound, identifiers, parsed
from recording import Recorded, blocks, function_of, functions_of

SLOW_TESTS = 200
"""How many of the slowest come last."""


class Coverage:
    """What `recording` wrote down of each test, by the names of blocks: it is of use when the code has changed since.

    A part of the code that was not there then, or that has moved, is looked for by the name of its function, or of its
    module; ``sources`` are the hashes of the modules of that time.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._slow = frozenset(heapq.nlargest(SLOW_TESTS, recorded.seconds, key=recorded.seconds.__getitem__))
        self._ran: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        self._size: Counter[str] = Counter()
        self._beside: dict[str, list[str]] = defaultdict(list)
        for test, ran in recorded.ran.items():
            self._beside[module_of(test)].append(test)
            for file, names in ran.items():
                self._ran[file].append((test, names))
                self._size[test] += len(names)

    def tests_of(self, file: str, wanted: frozenset[str] | set[str]) -> list[str]:
        """The tests that run one of these blocks of a file, most about the file first, slow ones last.

        They are taken in turn from two orders: by the share of the file in all that a test runs, and by the number of
        blocks there. What reading a module of tests ran, or a test before them and was kept, its other tests see, too.
        """
        here = {test: len(names) for test, names in self._ran[file]}
        found = {test for test, names in self._ran[file] if not wanted.isdisjoint(names)}
        by_share = sorted(found, key=lambda test: (-here[test] / self._size[test], test))
        by_number = sorted(found, key=lambda test: (-here[test], self._size[test], test))
        in_turn = dict.fromkeys(chain.from_iterable(zip(by_share, by_number, strict=True)))
        modules = dict.fromkeys(map(module_of, in_turn))
        beside = chain.from_iterable(self._beside[module] for module in modules)
        return self._slow_last(test for test in (*in_turn, *beside) if "::" in test)

    def _slow_last(self, tests: Iterable[str]) -> list[str]:
        return sorted(dict.fromkeys(tests), key=self._slow.__contains__)

    def covering(self, file: str, site: Site) -> list[str]:
        """The tests that run a node; where it runs on import, those that run what reads its names."""
        if site.names is None:
            return self._running(file, _blocks(parsed(file))[site.statement])
        readers = _readers().of(file, site.names)
        lists = [self._running_one_of(reader, functions) for reader, functions in readers.items()]
        mixed = [test for tests in zip_longest(*lists) for test in tests if test is not None]
        return self._slow_last(mixed) or self.tests_of(file, self._known(file))

    def _running(self, file: str, block: str) -> list[str]:
        """The tests that run a block; where the module has changed since, what else may run it comes after them."""
        tests = self.tests_of(file, {block})
        if self._recorded.sources.get(file) == digest(SOURCES / file):
            return tests
        others = self._running_one_of(file, {function_of(block)}), self.tests_of(file, self._known(file))
        return self._slow_last(chain(tests, *others))

    def _running_one_of(self, file: str, functions: frozenset[str] | set[str]) -> list[str]:
        """The tests that run one of these functions; where it has moved, those that run one of its name."""
        if tests := self.tests_of(file, {name for name in self._known(file) if function_of(name) in functions}):
            return tests
        moved = {other: {name for name in self._known(other) if function_of(name) in functions} for other in self._ran}
        return [test for other, names in moved.items() if names for test in self.tests_of(other, names)]

    def _known(self, file: str) -> set[str]:
        return {name for _, names in self._ran[file] for name in names}


def module_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


@cache
def _blocks(tree: ast.Module) -> Mapping[ast.stmt, str]:
    """The name of the block of each statement in a function."""
    return {statement: block.name for block in blocks(tree) for statement in block.body[block.first : block.end]}


class _Module(NamedTuple):
    """Which names its functions and the statements around them read."""

    functions: tuple[tuple[str, frozenset[str]], ...]
    statements: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The names that a statement binds, and those that it reads."""


class _Readers:
    """Who reads a name of a module, directly or by way of another name."""

    def __init__(self) -> None:
        files = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.py"))
        self._modules = {file: _module(parsed(file)) for file in files}

    def of(self, file: str, names: frozenset[str]) -> Mapping[str, set[str]]:
        """Names of functions by file."""
        readers: dict[str, set[str]] = defaultdict(set)
        known, new = set(names), set(names)
        while new:
            following: set[str] = set()
            for reader, module in self._modules.items():
                read = new if reader == file else {name for name in new if not name.startswith("_")}
                readers[reader].update(function for function, used in module.functions if read & used)
                following.update(*(binds for binds, used in module.statements if read & used))
            new = following - known
            known |= new
        return {reader: functions for reader, functions in readers.items() if functions}


@cache
def _readers() -> _Readers:
    return _Readers()


def _module(tree: ast.Module) -> _Module:
    functions = tuple((name, frozenset(identifiers(node)) | {node.name}) for name, node in functions_of(tree))
    statements = tuple((frozenset(bound(statement)), frozenset(identifiers(statement))) for statement in tree.body)
    return _Module(functions, tuple(item for item in statements if item[0]))
