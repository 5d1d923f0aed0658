"""A process that has read all tests, and runs some of them on a changed function at once.

To start the tests anew takes longer than most of them. Here a fork gets the function's code in place of the old, and
runs tests that were read before. What was computed as they were read knows nothing of the change: that no test fails
here proves nothing, and `mutants` then starts anew.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from mutations import SOURCES, Mutation, mutated

SECONDS = 8
"""How long the tests of one mutant may go on, in time of the processor."""
OPTIONS = (
    "-q",
    "--tb=no",
    "--capture=no",
    *(f"-pno:{plugin}" for plugin in ("cacheprovider", "pytest_cov", "xdist", "faulthandler")),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # plugins of pytest are imported before
)


class Answer(NamedTuple):
    """Whether a test failed, which one, and how many ran."""

    has_failed: bool
    test: str
    tests: int


def serve(root: Path, modules: Sequence[str], address: str) -> int:
    """Start the process; it listens at the address as soon as it has read these modules of tests."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    pid = os.fork()
    if pid:
        listener.close()
        return pid
    try:
        silence()
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{address}-hypothesis"
        options = (*OPTIONS, "--continue-on-collection-errors", f"--rootdir={root}")
        pytest.main([*options, *modules], plugins=[_Server(listener)])
    finally:
        os._exit(0)


def silence() -> None:
    """Let nothing that tests print be seen."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def ask(address: str, mutant: Mutation | None, tests: Sequence[str]) -> Answer | None:
    """What became of the tests there; None where the process said nothing."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(address)
            asking.sendall(json.dumps([mutant, tests]).encode())
            asking.shutdown(socket.SHUT_WR)
            said = _received(asking)
    except OSError:
        return None
    return Answer(*json.loads(said)) if said else None


def _received(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


class Watch:
    """Remembers what failed, and how many tests ran."""

    def __init__(self) -> None:
        self.failed = ""
        self.tests = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests += report.when == "call"
        if report.failed:
            self.failed = report.nodeid


class _Server:
    """Runs nothing of what was read before it is asked to."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions, caches = _functions(), _caches()
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            connection, _ = self._listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                mutant, tests = json.loads(_received(connection))
                if mutant:
                    put(Mutation(*mutant), functions)
                for clear in caches:
                    clear()
                answer = _run([items[test] for test in tests if test in items])
                connection.sendall(json.dumps(answer).encode())
                os._exit(0)
            connection.close()


def _run(items: Sequence[pytest.Item]) -> Answer:
    resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS,) * 2)
    watch = Watch()
    for item, following in zip(items, [*items[1:], None], strict=False):
        if not item.config.pluginmanager.is_registered(watch):
            item.config.pluginmanager.register(watch)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if watch.failed or time.process_time() > SECONDS:
            break
    return Answer(bool(watch.failed), watch.failed, watch.tests)


# --- Another code --------------------------------------------------------------------------------------------------

_Key = tuple[str, int]


def put(mutant: Mutation, functions: dict[str, list[FunctionType]]) -> None:
    """Give the functions of a module the code of the changed one, but for two of one name and line."""
    found: dict[_Key, list[CodeType]] = defaultdict(list)
    for code in _codes(mutated(mutant)):
        found[_key(code)].append(code)
    for function in functions.get(mutant.file, ()):
        codes = found[_key(function.__code__)]
        if len(codes) == 1 and codes[0].co_freevars == function.__code__.co_freevars:
            function.__code__ = codes[0]


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _functions() -> dict[str, list[FunctionType]]:
    """All functions of gpuplan by file."""
    found: dict[str, list[FunctionType]] = defaultdict(list)
    for value in gc.get_objects():
        if type(value) is FunctionType and Path(value.__code__.co_filename).is_relative_to(SOURCES):
            found[Path(value.__code__.co_filename).relative_to(SOURCES).as_posix()].append(value)
    return found


def _caches() -> list[Callable[[], Any]]:
    """What empties the caches of gpuplan and of the tests, but for those of facts and schemas."""
    kept = (
        "gpuplan.compiler.catalog",
        "gpuplan.compiler.manifests",
        "gpuplan.compiler.policy",
        "gpuplan.compiler.documents",
        "gpuplan.compiler.base.patterns",
    )
    ours = ("gpuplan.", "tests.")
    return [
        value.cache_clear
        for value in gc.get_objects()
        if type(value) is _lru_cache_wrapper
        and value.__module__.startswith(ours)
        and not value.__module__.startswith(kept)
    ]
