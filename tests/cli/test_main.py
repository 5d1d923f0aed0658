"""The command itself: help, start-up, and how it ends when something goes wrong."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from syrupy.assertion import SnapshotAssertion

from gpuplan import __version__
from gpuplan.cli.main import main
from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.formats import Format
from gpuplan.terminal.options import FORMATS
from tests.cli.platforms import a_platform
from tests.cli.runs import REPOSITORY, run, spawn
from tests.git import a_repository, commit

HEAVY = ("jinja2", "jsonschema", "jsonschema_rs", "kubernetes_validate", "pydantic", "wcwidth", "yaml")
OURS = ("backends", "catalog", "checks", "documents", "manifests", "outtree", "pipeline", "planning", "policy")
"""Of the compiler; no feature is loaded either."""


def test_a_start_reads_no_metadata_of_packages_until_somebody_asks() -> None:
    program = "\n".join(
        (
            "import os, sys",
            "from gpuplan.cli import main as module",
            "def stop(code):",
            "    loaded = 'zipfile' in sys.modules",
            "    from importlib.metadata import entry_points, version",
            "    print(code, loaded, len(entry_points(name='gpuplan')), bool(version('click')))",
            "os._exit = stop",
            "sys.argv = ['gpuplan', 'validate', '-q']",
            "module.entry()",
        )
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "0 False 1 True"


CALLS_AT_EACH_DEPTH = """
import resource, sys
from gpuplan.cli import main as module

def call():
    pass

def faults_at(depth):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(1000):
        call()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return max(faults, faults_at(depth - 1)) if depth else faults

def invoke():
    print(faults_at(400), flush=True)
    return 0

module._invoke = invoke
module.entry()
"""


def test_a_call_maps_no_memory_however_deep_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS_AT_EACH_DEPTH], capture_output=True, text=True, check=True)

    assert int(done.stdout) < 100


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["validate", "--help"], ["build", "-h"]])
def test_help_and_version_load_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys; from gpuplan.cli import main as module\n"
        f"try: module.main.main({arguments!r}, prog_name='gpuplan')\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    loaded = done.stderr.split()
    ours = {"gpuplan.features", "gpuplan.terminal.habits", *(f"gpuplan.compiler.{part}" for part in OURS)}
    assert all(find_spec(name) for name in ours)
    assert [name for name in loaded if name in HEAVY or name in ours] == []
    assert "click" in loaded


@pytest.mark.parametrize("verb", ["validate", "build", "show", "diff"])
def test_templates_and_habits_are_loaded_by_no_verb_that_needs_none(tmp_path: Path, verb: str) -> None:
    root = a_platform(a_repository(tmp_path))
    commit(root)
    program = (
        "import sys; from gpuplan.cli import main as module\n"
        f"try: module.main.main([{verb!r}], prog_name='gpuplan')\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)

    assert "gpuplan.compiler.pipeline" in done.stderr.split()
    assert {"jinja2", "gpuplan.terminal.habits"} & {*done.stderr.split()} == set()


def test_help(snapshot: SnapshotAssertion) -> None:
    assert run("--help").out == snapshot


@pytest.mark.parametrize("verb", main.list_commands(click.Context(main)))
def test_help_of(verb: str, snapshot: SnapshotAssertion) -> None:
    assert run(verb, "--help").out == snapshot


def test_the_line_about_a_verb_is_the_first_of_its_own_help() -> None:
    told = {verb: line for verbs in main.sections.values() for verb, (_, line) in verbs.items()}

    verbs = {verb: main.get_command(click.Context(main), verb) for verb in told}
    meant = {verb: (command.help or "").splitlines()[0] for verb, command in verbs.items() if command}

    assert told == meant


def test_the_work_of_each_verb_takes_what_its_options_give() -> None:
    context = click.Context(main)
    commands = {verb: main.get_command(context, verb) for verb in main.list_commands(context)}
    wrong = {}
    for verb, command in commands.items():
        assert command is not None
        given = {parameter.name for parameter in command.params if parameter.expose_value}
        entry = getattr(command.callback, "work", "")
        module, _, name = entry.partition(":")
        taken = inspect.signature(getattr(import_module(module), name)).parameters
        takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values())
        if not (given >= {*taken} - {"terminal", "options"} if takes_any else given == {*taken} - {"terminal"}):
            wrong[verb] = given, [*taken]

    assert wrong == {}


def test_all_that_is_imported_late_is_there() -> None:
    named = re.compile(r'\blate\(\s*"([\w.]+):(\w+)"\s*\)')
    sources = REPOSITORY / "gpuplan"
    entries = {entry for path in sources.rglob("*.py") for entry in named.findall(path.read_text(encoding="utf-8"))}

    assert entries
    assert [
        (module, name) for module, name in sorted(entries) if not callable(getattr(import_module(module), name))
    ] == []


def test_the_formats_that_help_names_are_all() -> None:
    assert list(FORMATS) == list(Format)


def test_version() -> None:
    assert run("--version").out == f"gpuplan {__version__}\n"


@pytest.mark.parametrize("arguments", [("frobnicate",), ("--frobnicate",), ("validate", "--frobnicate"), ("explain",)])
def test_bad_usage_ends_with_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = spawn(*arguments, cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "Usage: gpuplan" in done.err


def test_a_misspelt_verb_is_guessed() -> None:
    assert run("valdate").err.splitlines()[-1] == "Error: No such command 'valdate'. Did you mean 'validate'?"
    assert "No such command 'frobnicate'. `gpuplan --help` lists the commands." in run("frobnicate").err


def test_no_arguments_show_the_help() -> None:
    assert "Usage: gpuplan" in run().err


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pipeline, "validate", fail)


def test_trouble_is_told_with_a_hint_and_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(GpuplanError("cannot read `x`", "look there"), monkeypatch)

    done = run("validate")

    assert (done.code, done.out) == (2, "")
    assert done.err == "error: cannot read `x`\n  = help: look there\n"


def test_trouble_is_told_even_to_who_wants_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(GpuplanError("cannot read `x`"), monkeypatch)

    assert run("-qq", "validate").err == "error: cannot read `x`\n"


def test_what_the_system_refuses_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(PermissionError(13, "Permission denied", "policies/x.yaml"), monkeypatch)

    done = run("validate")

    assert (done.code, done.err) == (2, "error: `policies/x.yaml`: permission denied\n")


def test_a_bug_is_ours_and_can_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyError("x"), monkeypatch)

    done = run("validate")

    assert done.code == 2
    assert done.err.startswith("error: this is a bug in gpuplan: KeyError in cli/commands/validating.py:")
    assert "\n  = help: report it" in done.err
    assert "SECURITY.md" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("options", "env"), [(("-vv",), {}), ((), {"GPUPLAN_DEBUG": "1"})])
def test_a_bug_shows_its_traceback_when_asked(
    options: tuple[str, ...], env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(RecursionError("too deep"), monkeypatch)

    assert "Traceback" in run("validate", *options, env=env).err


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    program = (
        "import gpuplan.compiler.pipeline as pipeline, os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell may ignore
        "pipeline.validate = lambda *_, **__: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
        "import sys; sys.argv = ['gpuplan', 'validate']\n"
        "from gpuplan.cli import entry; entry()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=a_platform(tmp_path),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuplan.cli", "catalog", "--output-format", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGPIPE
    assert err == b""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("validate 2>&-", 0),
        ("show >&-", 0),
        ("show >&- 2>&-", 0),
        ("show >/dev/full", 2),
        ("validate 2>/dev/full", 2),
        ("frobnicate 2>/dev/full", 2),
    ],
)
def test_a_stream_that_is_closed_or_full_gives_no_traceback(tmp_path: Path, command: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m gpuplan.cli {command}"],
        cwd=a_platform(tmp_path),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_a_folder_that_is_gone_is_trouble(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", f"rmdir ../gone && exec {sys.executable} -m gpuplan.cli validate"],
        cwd=tmp_path / "gone",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


def test_a_terminal_that_cannot_show_a_character_gets_its_number(tmp_path: Path) -> None:
    done = spawn("explain", "日本", cwd=tmp_path, env={"PYTHONIOENCODING": "latin-1"})

    assert done.code == 2
    assert "\\u65e5\\u672c" in done.err
