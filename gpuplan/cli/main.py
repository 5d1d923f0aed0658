"""The command `gpuplan`: its verbs, its global options, and how it ends."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from gpuplan.compiler.base.version import __version__
from gpuplan.terminal.verbs import Option, Verbs, late

TROUBLE = 2
"""The exit code of anything but findings: bad usage, an unreadable file, a bug."""
INTERRUPTED = 130

_SECTIONS = {
    "Commands": {
        "init": ("cli", "Write a small starter platform."),
        "validate": ("cli", "Check the policies against the hardware and the controllers."),
        "show": ("cli", "Show the pools, the tenants and the free units."),
        "build": ("cli", "Write the policies as kustomize folders to out/."),
        "diff": ("features.changes", "Show what a change disturbs, and how to undo it."),
        "rollout": ("features.changes", "Plan how a pool changes its sharing, node by node."),
        "report": ("features.report", "Draw the platform as one HTML page."),
        "explain": ("cli", "Explain a rule, a field, a GPU model or a scheduler."),
    },
    "More": {
        "trace": ("features.tracing", "Show where a value comes from, or what depends on a line."),
        "drift": ("features.live", "List where the cluster differs from the policies."),
        "pack": ("features.packing", "Compute how to partition the GPUs for a demand."),
        "import": ("features.live", "Write policies from what a cluster runs."),
        "check": ("features.files", "Check manifests and MIG files without a platform."),
        "retain": ("features.changes", "Keep definitions that nodes or queues still use after a change."),
        "catalog": ("cli", "List the GPU models, or the partitions of one model."),
        "rules": ("cli", "List the rules."),
        "schema": ("cli", "Print a JSON Schema."),
        "version": ("cli", "Print the versions of gpuplan and of the policy language."),
        "completion": ("cli", "Print a script that completes commands in a shell."),
    },
}
"""All commands: the folder of each, whose package `commands` declares it, with the line that the help shows."""

_HELP = """\
Check GPU clusters, pools and tenants that you describe in Git, and write them as kustomize folders.

gpuplan reads `overlays/<cluster>/` and the bases that they name, such as `policies/`. It writes `out/`.

\b
Exit codes: 0  no errors and no differences
            1  errors in the policies, or differences
            2  bad usage, or a file that gpuplan cannot read
"""


_report_error = late("gpuplan.terminal.session:report_error")


class _Main(Verbs):
    """Reports what goes wrong in a verb, and ends with an exit code."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence: nobody gets a bare traceback
            _report_error(error, ctx)
            ctx.exit(TROUBLE)


main = _Main(
    "gpuplan",
    help=_HELP,
    sections=_SECTIONS,
    params=[
        Option(
            ["-V", "--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            section="Global options",
            callback=lambda context, _, value: _print_version(context) if value else None,
            help="Print the version.",
        )
    ],
)


_STACK_SLOTS = 70_000
"""Just above half a MiB, so that the piece is one of a MiB."""


def entry() -> None:
    """Run `gpuplan` and leave with its exit code.

    What is set here is for the whole process, which is ours alone: programs that import `gpuplan` keep what they set.
    """
    # Otherwise pydantic searches the metadata of every installed package for plug-ins, 20 ms of every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _postpone_metadata()
    gc.disable()  # looking for garbage takes a tenth of a build's time, and finds none that outlives the process
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `gpuplan rules | head` ends as quietly as any command
    _open_streams()
    # CPython keeps frames in pieces of 16 KiB and gives a piece back with its last frame: a loop that calls at the end
    # of one maps memory each time, a tenth of a start (`push_chunk` in Python/pystate.c). A large frame brings a large
    # piece, with room for all that is called below it.
    _run.__code__ = _run.__code__.replace(co_stacksize=_STACK_SLOTS)
    code = _run()
    os._exit(code)  # to take a plan of a thousand tenants apart again takes as long as to check it


def _postpone_metadata() -> None:
    """Import `importlib.metadata`, a tenth of every start, when somebody asks it for something.

    Pydantic takes a function of it that it calls when it looks for plug-ins.
    """
    name = "importlib.metadata"
    stand_in: Any = ModuleType(name)

    def find(attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        if attribute.startswith("__"):  # of which the import system asks for some
            raise AttributeError(attribute)
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__getattr__ = find  # as PEP 562 has it
    stand_in.entry_points = lambda **wanted: find("entry_points")(**wanted)  # noqa: PLW0108 - to find it then
    sys.modules.setdefault(name, stand_in)


def _open_streams() -> None:
    """Make both streams take any text; a stream that was closed (``2>&-``) is None, and its text goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _run() -> int:
    try:
        code = _invoke()
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # stderr is full or gone: there is nobody left to tell
        return TROUBLE
    return code


def _invoke() -> int:
    if "_GPUPLAN_COMPLETE" in os.environ:
        import_module("gpuplan.cli.commands.completing")  # shells ask, and it knows how to answer them
    try:
        return int(main.main(prog_name="gpuplan", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return TROUBLE
    except click.Abort:
        return INTERRUPTED


def _print_version(context: click.Context) -> None:
    click.echo(f"gpuplan {__version__}")
    context.exit()
