"""A pytest plugin that writes down which blocks of gpuplan each test runs: ``tools/mutants.py`` starts it.

A block is what runs as a whole: it ends where the code may go elsewhere. Each gets one more statement as its module is
imported, which is many times faster than to trace lines, and to begin a new file of them for each test.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import pytest
from mutations import SOURCES

FOLDER = "RECORDING"
"""The variable that names the folder for what is written: a file for each process."""
RUN = "__run__"
_LEAVES = ast.Return | ast.Raise | ast.Continue | ast.Break | ast.Yield | ast.YieldFrom


# --- Blocks --------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """The statements of a body from ``first`` to before ``end``; its name is that of the function and a number."""

    name: str
    body: list[ast.stmt]
    first: int
    end: int


def blocks(tree: ast.AST) -> Iterator[Block]:
    """All blocks of the functions of a module."""
    for name, function in functions_of(tree):
        yield from (Block(f"{name}#{number}", *part) for number, part in enumerate(_parts(function.body)))


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions of a module, by the names of classes and functions that they are in and their own."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{within}{name}", node
                yield from functions_of(node, f"{within}{name}.")
            case ast.ClassDef(name=name):
                yield from functions_of(node, f"{within}{name}.")
            case _:
                yield from functions_of(node, within)


def function_of(block: str) -> str:
    return block.partition("#")[0]


def _parts(body: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int, int]]:
    """A body in parts, and those of the bodies within it."""
    ends = [number for number, statement in enumerate(body, 1) if _may_leave(statement)]
    bounds = sorted({0, *ends, len(body)})
    yield from ((body, first, end) for first, end in pairwise(bounds))
    for statement in body:
        for inner in _bodies(statement):
            yield from _parts(inner)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.ExceptHandler | ast.match_case):
                    yield item.body


def _may_leave(statement: ast.stmt) -> bool:
    return any(isinstance(node, _LEAVES) for node in ast.walk(statement))


def instrumented(tree: ast.Module) -> list[str]:
    """The names of the blocks of a tree, after each has been given a statement that notes its number."""
    found = list(blocks(tree))
    for number, block in reversed(list(enumerate(found))):
        note = ast.parse(f"{RUN}[{number}] = 1").body[0]
        at = block.first + (block.first == 0 and _is_docstring(block.body[0]))
        beside = block.body[min(at, len(block.body) - 1)]
        for node in ast.walk(note):
            ast.copy_location(node, beside)
        block.body.insert(at, note)
    return [block.name for block in found]


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of gpuplan."""

    def __init__(self) -> None:
        self.run: dict[str, tuple[list[str], bytearray]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_ours = name.partition(".")[0] == SOURCES.name
        spec = importlib.machinery.PathFinder.find_spec(name, path) if is_ours else None
        if spec and spec.origin and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(name, spec.origin, self)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, finder: _Finder) -> None:
        super().__init__(name, path)
        self._finder = finder
        self._noted = bytearray()

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - a `SourceFileLoader`
        tree = ast.parse(Path(self.path).read_bytes())
        names = instrumented(tree)
        self._noted = bytearray(len(names))
        self._finder.run[Path(self.path).relative_to(SOURCES).as_posix()] = (names, self._noted)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        code = self.get_code(module.__name__)
        module.__dict__[RUN] = self._noted
        exec(code, module.__dict__)  # noqa: S102 - what a loader does


# --- What is recorded ----------------------------------------------------------------------------------------------

Ran = Mapping[str, frozenset[str]]
"""The names of blocks by file."""


class Recorded(NamedTuple):
    """What each test ran, and each module of tests as it was read; ``seconds`` is the time of the processor."""

    ran: Mapping[str, Ran]
    seconds: Mapping[str, float]
    sources: Mapping[str, str]
    """The hash of each module of gpuplan."""
    tests: Mapping[str, str]
    """The hash of each module of tests."""

    @classmethod
    def read(cls, text: str) -> Recorded:
        found = json.loads(text)
        records = [(file, frozenset(names)) for file, names in found["records"]]
        ran = {test: dict(records[number] for number in numbers) for test, numbers in found["ran"].items()}
        return cls(ran, found["seconds"], found["sources"], found["tests"])

    def text(self) -> str:
        numbers: dict[tuple[str, frozenset[str]], int] = {}
        ran = {
            test: [numbers.setdefault(record, len(numbers)) for record in files.items()]
            for test, files in self.ran.items()
        }
        records = [(file, sorted(names)) for file, names in numbers]
        return json.dumps({"records": records, "ran": ran, **{name: getattr(self, name) for name in _PLAIN}})


_PLAIN = ("seconds", "sources", "tests")


def merged(parts: Sequence[Recorded]) -> Recorded:
    """What several processes recorded: each reads all modules of tests, and runs some of the tests."""
    ran: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for part in parts:
        for test, files in part.ran.items():
            for file, names in files.items():
                ran[test][file] = ran[test].get(file, frozenset()) | names
    return Recorded(ran, {test: time for part in parts for test, time in part.seconds.items()}, {}, {})


class Recorder:
    """Notes the blocks of each test, and those of a module of tests as it is read."""

    def __init__(self, finder: _Finder) -> None:
        self._finder = finder
        self._ran: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, object, object]:
        self._flush("")
        result = yield
        self._flush(collector.nodeid if isinstance(collector, pytest.Module) else "")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._flush("")
        start = time.process_time()
        result = yield
        self._seconds[item.nodeid] = time.process_time() - start
        self._flush(item.nodeid)
        return result

    def _flush(self, name: str) -> None:
        for file, (names, noted) in list(self._finder.run.items()):
            if 1 in noted:
                if name:
                    ran = frozenset(names[number] for number, is_run in enumerate(noted) if is_run)
                    self._ran[name][file] = self._ran[name].get(file, frozenset()) | ran
                noted[:] = bytes(len(noted))

    def pytest_sessionfinish(self) -> None:
        recorded = Recorded(self._ran, self._seconds, {}, {})
        Path(os.environ[FOLDER], f"{os.getpid()}.json").write_text(recorded.text(), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    config.pluginmanager.register(Recorder(finder))
