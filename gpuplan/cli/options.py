"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import CompletionItem

from gpuplan.cli.commands import F, option
from gpuplan.cli.terminal import Terminal
from gpuplan.values import Value

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

    _OutputParameter = click.ParamType["Output"]
else:
    _OutputParameter = click.ParamType  # click before 8.4 does not take a type here when it runs

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")
"""As `gpuplan.views.formats.Format`, which help must not load."""
STAGES = ("gpu-operator", "partitions", "scheduling", "queues", "namespaces", "monitoring", "workloads")
"""As `gpuplan.planning.plan.Stage`, which help must not load."""
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
"""As `gpuplan.policy.models.SchedulerKind`, which help must not load."""


class Output(Value):
    """A format of findings, and the file it goes to; None is the terminal."""

    format: str
    file: str | None = None


class OutputType(_OutputParameter):
    """``FORMAT`` or ``FORMAT=FILE``."""

    name = "format"

    def __init__(self, formats: Sequence[str] = FORMATS) -> None:
        self.formats = formats

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - click's signature
        return "FORMAT[=FILE]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        format_, equals, file = str(value).partition("=")
        if format_ not in self.formats:
            self._refuse(f"{format_!r} is not one of {', '.join(self.formats)}.", param, ctx)
        if equals and not file:
            self._refuse(f"{value!r} names no file.", param, ctx)
        if file and not Path(file).parent.is_dir():
            self._refuse(f"there is no folder to write {file!r} in.", param, ctx)
        return Output(format_, file or None)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.formats if name.startswith(incomplete)]

    def _refuse(self, message: str, param: click.Parameter | None, ctx: click.Context | None) -> NoReturn:
        self.fail(message, param, ctx)


def _complete_cluster(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    overlays = Terminal.of(context).root / "overlays"
    names = (folder.name for folder in overlays.iterdir() if folder.is_dir()) if overlays.is_dir() else ()
    return sorted(name for name in names if name.startswith(incomplete))


def complete_pool(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The pools of the clusters named so far, or of all."""
    from gpuplan import pipeline
    from gpuplan.diagnostics import GpuplanError

    try:
        report = pipeline.validate(Terminal.of(context).root, context.params.get("clusters") or (), kustomize="off")
    except (GpuplanError, OSError):
        return []
    names = {pool.name for plan in report.plans for pool in plan.pools}
    return sorted(name for name in names if name.startswith(incomplete))


def each_to_its_own(_: click.Context, parameter: click.Parameter, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    """Let no two formats go to one place."""
    files = [output.file for output in outputs]
    if files.count(None) > 1:
        raise click.BadParameter("only one format can go to the terminal; write FORMAT=FILE.", param=parameter)
    if twice := next((file for file in files if files.count(file) > 1), None):
        raise click.BadParameter(f"only one format can go to {twice!r}.", param=parameter)
    return outputs


def cluster_option(function: F) -> F:
    return option(
        "-c",
        "--cluster",
        "clusters",
        multiple=True,
        metavar="NAME",
        section="Selection",
        shell_complete=_complete_cluster,
        help="Only this cluster, a folder of `overlays/`; may be repeated [default: all].",
    )(function)


def _know_stages(_: click.Context, parameter: click.Parameter, stages: tuple[str, ...]) -> tuple[str, ...]:
    for stage in stages:
        if stage.partition("/")[0] not in STAGES:
            raise click.BadParameter(f"{stage!r} is not one of {', '.join(STAGES)}.", param=parameter)
    return tuple(stage.rstrip("/") for stage in stages)


def stage_option(function: F) -> F:
    return option(
        "--stage",
        "stages",
        multiple=True,
        metavar="STAGE[/NAME]",
        section="Selection",
        callback=_know_stages,
        shell_complete=lambda _, __, incomplete: [name for name in STAGES if name.startswith(incomplete)],
        help="With --stdout, only this stage, a folder of `out/<cluster>/`, or one pool or namespace of it; may be"
        " repeated [default: all].",
    )(function)


def kustomize_option(function: F) -> F:
    return option(
        "--kustomize",
        default="",
        envvar="GPUPLAN_KUSTOMIZE",
        show_envvar=True,
        metavar="PATH|off",
        section="Input",
        help="The kustomize or kubectl that builds hand-written Components, so that what they make of objects is"
        " checked; off for none [default: whichever is on the path].",
    )(function)


def findings_option(function: F) -> F:
    return option(
        "--output-format",
        "outputs",
        type=OutputType(),
        multiple=True,
        envvar="GPUPLAN_OUTPUT_FORMAT",
        show_envvar=True,
        callback=each_to_its_own,
        section="Output",
        help=f"How findings are written: {', '.join(FORMATS)}. With =FILE they go to a file, and the terminal keeps"
        " its own; may be repeated [default: full].",
    )(function)


def strictness_option(function: F) -> F:
    return option("--warnings-as-errors", is_flag=True, section="Output", help="End with 1 on warnings too.")(function)


def write_findings(terminal: Terminal, report: Report, outputs: Sequence[Output], *, to_stderr: bool = False) -> None:
    """Write findings in every format asked for, and a verdict on stderr.

    ``to_stderr`` keeps stdout free for the command's own data.
    """
    from gpuplan.views.formats import Format, findings
    from gpuplan.views.full import verdict
    from gpuplan.views.text import Theme

    on_screen = next((output.format for output in outputs if output.file is None), Format.FULL)
    theme = terminal.err_theme if to_stderr else terminal.out_theme
    text = findings(report, Format(on_screen), theme)
    terminal.insist(text) if to_stderr else terminal.print(text)
    for output in outputs:
        if output.file is not None:
            plain = Theme(width=theme.width, root=theme.root)
            Path(output.file).write_text(findings(report, Format(output.format), plain), encoding="utf-8")
    terminal.say(verdict(report, terminal.err_theme))


def is_acceptable(report: Report, *, warnings_as_errors: bool) -> bool:
    """Whether a report lets a command go on, and CI be green."""
    from gpuplan.diagnostics import Severity

    bad = (Severity.ERROR, Severity.WARNING) if warnings_as_errors else (Severity.ERROR,)
    return all(diagnostic.severity not in bad for diagnostic in report.diagnostics)
