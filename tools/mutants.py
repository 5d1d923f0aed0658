"""Break the code in small ways, one at a time, and count how often a test sees it: ``make mutants``.

Each mutant runs in a process of its own against tests that come by its line, until one of them fails. Nothing is
written into the sources: that process changes the tree of one module, and imports what comes of it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import NamedTuple

import pytest
import warm
import yaml
from covering import Coverage, digest, module_of
from mutations import SOURCES, Mutation, changes_of, find_site, mutated, mutation
from recording import FOLDER, Recorded, merged

ROOT = SOURCES.parent
EQUIVALENT = ROOT / "tools/mutants-equivalent.yaml"
WORK = ROOT / "build/mutants"
RECORDED = WORK / "recorded.json"
RECORDING = WORK / "recording"
PACKAGES = (
    "compiler/checks",
    "compiler/planning",
    "compiler/backends",
    "features/changes",
    "features/components/checks",
)
SUITES = ("checks", "compiler", "features/changes", "features/components", "laws/properties", "terminal")
"""Tests of values. Others compare with `out/` or with pages, and `make generate` writes these anew."""
SECONDS = 45.0
"""How long the tests of one mutant may go on, in time of the processor."""
SECONDS_OF_A_TEST = 60.0
"""How long the test may take that runs then; one that takes longer does not end."""
MOST_TESTS = 400
PREPARED = (
    "_hypothesis_pytestplugin",
    "click",
    "hypothesis",
    "jsonschema",
    "pydantic",
    "syrupy",
    "xdist.plugin",
    "yaml",
)
"""What takes time to import, and is of no mutant."""


class Outcome(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    NOT_COVERED = "not covered"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which sample (1)")
    parser.add_argument("--count", type=int, default=200, help="how many mutants (200)")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, metavar="PATH", help="packages or modules")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--suites", nargs="+", default=SUITES, metavar="SUITE", help="folders of tests")
    parser.add_argument("--quick", action="store_true", help="ask only tests that are known and read once for all")
    parser.add_argument("--anew", action="store_true", help="run all tests again to see which runs what")
    options = parser.parse_args(arguments)
    for name in options.packages:
        if not (SOURCES / name).exists():
            parser.error(f"there is no gpuplan/{name}")
    prepare()
    if options.anew:
        RECORDED.unlink(missing_ok=True)
    chosen = sample(options.packages, options.seed, options.count)
    recorded = measured(options.suites, is_quick=options.quick)
    if not Soundness("").holds(Ran(Outcome.CAUGHT, next(iter(recorded.seconds)))):
        sys.exit("tests fail without a change, too: make test")
    with warmed(recorded) as address:
        outcomes = run_all(chosen, Coverage(recorded), options.workers, address, is_quick=options.quick)
    print(report(outcomes))  # noqa: T201 - a script
    return 0


def sample(packages: Sequence[str], seed: int, count: int) -> list[Mutation]:
    """So many mutations of these packages; the same ones for the same sources."""
    everything = changes(packages)
    chosen = random.Random(seed).sample(everything, min(count, len(everything)))  # noqa: S311 - no secret
    return [mutation(*change) for change in chosen]


def changes(packages: Sequence[str]) -> list[tuple[str, int, int]]:
    """All that can be changed in packages or modules."""
    roots = [SOURCES / name for name in packages]
    paths = {path for root in roots for path in (root.rglob("*.py") if root.is_dir() else [root])}
    return [change for path in sorted(paths) for change in changes_of(path.relative_to(SOURCES).as_posix())]


# --- Which tests ---------------------------------------------------------------------------------------------------


def measured(suites: Sequence[str], *, is_quick: bool) -> Recorded:
    """What each test runs. Tests that are new or have changed are run now; where there is a new module, all of them."""
    nothing = Recorded({}, {}, {}, {})
    kept = Recorded.read(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else nothing
    files = {file.relative_to(SOURCES).as_posix(): file for file in SOURCES.rglob("*.py")}
    if not is_quick and not files.keys() <= kept.sources.keys():
        kept = nothing
    tests = {path.relative_to(ROOT).as_posix(): _digest_of_tests(path) for path in _modules_of_tests(suites)}
    new = [test for test, hashed in tests.items() if kept.tests.get(test) != hashed]
    if not new or (is_quick and kept.tests):
        return kept
    print(f"running {len(new)} modules of tests: which comes by what? ...", file=sys.stderr, flush=True)  # noqa: T201 - a script
    found = _recorded(new)
    ran = {test: files for test, files in kept.ran.items() if module_of(test) not in new}
    seconds = {test: time for test, time in kept.seconds.items() if module_of(test) not in new}
    sources = kept.sources or {name: digest(file) for name, file in files.items()}
    hashes = {**kept.tests, **{test: tests[test] for test in new}}
    whole = Recorded({**ran, **found.ran}, {**seconds, **found.seconds}, sources, hashes)
    RECORDED.write_text(whole.text(), encoding="utf-8")
    return whole


def _recorded(tests: Sequence[str]) -> Recorded:
    """What is recorded of modules of tests."""
    shutil.rmtree(RECORDING, ignore_errors=True)
    RECORDING.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-p", "recording", *tests]
    paths = os.pathsep.join((str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")))
    environment = {**os.environ, FOLDER: str(RECORDING), "PYTHONPATH": paths}
    with (WORK / "recording.log").open("w", encoding="utf-8") as log:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=log, check=False)  # noqa: S603 - our own tests
    return merged([Recorded.read(path.read_text(encoding="utf-8")) for path in sorted(RECORDING.glob("*.json"))])


def _modules_of_tests(suites: Sequence[str]) -> list[Path]:
    """Return modules, and folders with cases of a rule, which `tests/checks/conftest.py` reads like modules."""
    roots = [ROOT / "tests" / suite for suite in suites]
    return [path for root in roots for path in (*sorted(root.rglob("test_*.py")), *sorted(root.glob("GPU[0-9]*")))]


def _digest_of_tests(path: Path) -> str:
    """A hash of a module of tests, and of all data in its folder."""
    folder = path if path.is_dir() else path.parent
    data = (file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix not in (".py", ".pyc"))
    return hashlib.sha256("".join((digest(path), *map(digest, data))).encode()).hexdigest()[:16]


# --- Running them --------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """How the tests of a mutant ended: ``test`` is the one that failed, and ``tests`` says how many did run."""

    outcome: Outcome
    test: str = ""
    tests: int = 0
    is_warm: bool = False
    """Whether the test had been read before the mutant was made."""


def prepare() -> None:
    """Import, once for all mutants, what is not of this repository, and let them keep what they compile."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in PREPARED:
        importlib.import_module(name)


@contextmanager
def warmed(recorded: Recorded) -> Iterator[str]:
    """The address of a process that has read all tests, while it is there."""
    modules = [test for test in recorded.tests if (ROOT / test).exists()]
    with TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        pid = warm.serve(ROOT, modules, address)
        try:
            yield address
        finally:
            os.kill(pid, signal.SIGKILL)


def run_all(
    chosen: Sequence[Mutation], coverage: Coverage, workers: int, address: str, *, is_quick: bool
) -> dict[Mutation, Ran]:
    """What becomes of each, several at a time."""
    ended: dict[Mutation, Ran] = {}
    waiting = list(reversed(chosen))
    running: dict[int, tuple[Mutation, Child]] = {}
    sound = Soundness(address)
    while waiting or running:
        if waiting and len(running) < workers:
            mutant = waiting.pop()
            tests = [test for test in coverage.covering(mutant.file, find_site(mutant)) if test not in sound.broken]
            if mutant.key in equivalents():
                ended[mutant] = Ran(Outcome.EQUIVALENT)
            elif not tests:
                ended[mutant] = Ran(Outcome.NOT_COVERED)
            else:
                child = start(mutant, tests[:MOST_TESTS], address, is_fresh=not is_quick)
                running[child.pid] = (mutant, child)
                continue
        else:
            mutant, ran = _next(running)
            if ran.outcome is Outcome.CAUGHT and not sound.holds(ran):
                waiting.append(mutant)
                continue
            ended[mutant] = ran
        _tell(len(ended), len(chosen), mutant, ended[mutant])
    return ended


class Child(NamedTuple):
    """A process that tests a mutant, and where it says how that ended."""

    pid: int
    answer: int


def start(mutant: Mutation | None, tests: Sequence[str], address: str, *, is_fresh: bool = True) -> Child:
    """Run tests on a mutant, or on the code as it is: those that were read before, and then in a new process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    try:
        os.close(reading)
        os.setsid()
        warm.silence()
        runs_in_functions = mutant is None or find_site(mutant).names is None
        answer = warm.ask(address, mutant, tests) if address and runs_in_functions else None
        is_warm = answer is not None and (answer.has_failed or not is_fresh)
        has_failed, test, number = answer if answer is not None and is_warm else _test(mutant, tests)
        os.write(writing, json.dumps((has_failed, test, number, is_warm)).encode())
    finally:
        os._exit(0)


def end(child: Child, status: int) -> Ran:
    """What a process said before it ended; one that had to be stopped was in a test that does not end."""
    with os.fdopen(child.answer) as answer:
        said = answer.read()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    if os.WIFSIGNALED(status) or not said:
        return Ran(Outcome.CAUGHT)
    failed, test, tests, is_warm = json.loads(said)
    return Ran(Outcome.CAUGHT if failed else Outcome.SURVIVED, test, tests, is_warm)


def _next(running: dict[int, tuple[Mutation, Child]]) -> tuple[Mutation, Ran]:
    while True:
        pid, status = os.wait()
        if pid in running:
            mutant, child = running.pop(pid)
            return mutant, end(child, status)


class Soundness:
    """Which tests fail without a mutant, too: they prove nothing."""

    def __init__(self, address: str) -> None:
        self.broken: set[str] = set()
        self._address = address
        self._good: set[tuple[str, bool]] = set()

    def holds(self, ran: Ran) -> bool:
        """Whether the test that failed does not fail without the mutant, where it was run in the same way."""
        key = ran.test, ran.is_warm
        if ran.test and key not in self._good and ran.test not in self.broken:
            child = start(None, [ran.test], self._address if ran.is_warm else "", is_fresh=not ran.is_warm)
            _, status = os.waitpid(child.pid, 0)
            if end(child, status).outcome is Outcome.SURVIVED:
                self._good.add(key)
            else:
                self.broken.add(ran.test)
        return ran.test not in self.broken


class _Watch(warm.Watch):
    """Stops when the time is over."""

    def __init__(self) -> None:
        super().__init__()
        self.is_late = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        result = yield
        if time.process_time() > SECONDS:
            self.is_late = True
            item.session.shouldstop = "the time is over"
        return result


def _test(mutant: Mutation | None, tests: Sequence[str]) -> warm.Answer:
    """What becomes of tests that are read and run in this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS + SECONDS_OF_A_TEST),) * 2)
    signal.alarm(int(10 * (SECONDS + SECONDS_OF_A_TEST)))
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(WORK / f"hypothesis-{os.getpid()}")
    if mutant:
        sys.meta_path.insert(0, _Finder(mutant))
    watch = _Watch()
    asked = [test if ".py::" in test else test.replace("::", "/", 1) for test in tests]  # a folder takes no `::`
    code = pytest.main([*warm.OPTIONS, "-x", f"--rootdir={ROOT}", *asked], plugins=[watch])
    shutil.rmtree(os.environ["HYPOTHESIS_STORAGE_DIRECTORY"], ignore_errors=True)
    has_failed = code != pytest.ExitCode.OK and not (watch.is_late and not watch.failed)
    return warm.Answer(has_failed, watch.failed, watch.tests)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the module that is changed."""

    def __init__(self, mutant: Mutation) -> None:
        self._mutant = mutant
        self._module = ".".join(Path("gpuplan", mutant.file).with_suffix("").parts).removesuffix(".__init__")

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == self._module else None
        if spec and spec.origin:
            spec.loader = _Loader(name, spec.origin, self._mutant)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutation) -> None:
        super().__init__(name, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - a `SourceFileLoader`
        return mutated(self._mutant)


# --- What is said of them ------------------------------------------------------------------------------------------


@cache
def equivalents() -> frozenset[tuple[str, str, str]]:
    """Changes that are known to change nothing: file, line and change of each."""
    known = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []
    return frozenset((item["file"], item["line"], item["change"]) for item in known)


def _tell(number: int, of: int, mutant: Mutation, ran: Ran) -> None:
    change = "" if ran.outcome is Outcome.CAUGHT else f"{mutant.change}  {mutant.text}"
    line = f"{number:>4}/{of} {ran.outcome:<11} {mutant.file}:{mutant.line} {ran.test or change}"
    print(line.rstrip(), file=sys.stderr, flush=True)  # noqa: T201 - a script


def report(ended: dict[Mutation, Ran]) -> str:
    """Those that no test sees, and the share of the others."""
    counts = Counter(ran.outcome for ran in ended.values())
    judged = len(ended) - counts[Outcome.EQUIVALENT]
    left = [
        f"{mutant}\n    {ran.outcome}" + f" {ran.tests} tests" * bool(ran.tests)
        for mutant, ran in sorted(ended.items())
        if ran.outcome in (Outcome.SURVIVED, Outcome.NOT_COVERED)
    ]
    numbers = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
    share = 100 * counts[Outcome.CAUGHT] / judged if judged else 100
    return "\n".join((*left, f"{len(ended)} mutants: {numbers}; {share:.1f} % of {judged} caught"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
