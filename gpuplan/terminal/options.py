"""Options that several verbs share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gpuplan.compiler.base.values import Value
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import F, completing, option

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report
    from gpuplan.compiler.planning.plan import Plan
    from gpuplan.terminal.text import Theme

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")
"""As `gpuplan.terminal.formats.Format`, which help must not load."""
STAGES = ("gpu-operator", "scheduler", "partitions", "scheduling", "queues", "namespaces", "monitoring", "workloads")
"""As `gpuplan.compiler.planning.plan.Stage`, which help must not load."""
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
"""As `gpuplan.compiler.policy.models.SchedulerKind`, which help must not load."""


class Output(Value):
    """A format of findings, and the file it goes to; None is the terminal."""

    format: str
    file: str | None = None


def outputs_option(formats: Sequence[str], what: str, **attributes: str | bool) -> Callable[[F], F]:
    """The formats to write in, each as ``FORMAT`` or ``FORMAT=FILE``; the first one is for people."""

    def read(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[Output, ...]:
        try:
            outputs = _each_to_its_own([_output(value, formats) for value in values])
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from error
        for file in filter(None, (output.file for output in outputs)):
            from gpuplan.terminal.named import refuse_links

            refuse_links(Terminal.of(context).root, file)
        return outputs

    return option(
        "-o",
        "--output-format",
        "outputs",
        multiple=True,
        metavar="FORMAT[=FILE]",
        section="Output",
        callback=read,
        shell_complete=completing(lambda _: formats),
        help=f"{what}; may be repeated [default: {formats[0]}].",
        **attributes,
    )


def _output(value: str, formats: Sequence[str]) -> Output:
    format_, equals, file = value.partition("=")
    if format_ not in formats:
        raise ValueError(f"{format_!r} is not one of {', '.join(formats)}.")
    if equals and not file:
        raise ValueError(f"{value!r} names no file.")
    if file and not Path(file).parent.is_dir():
        raise ValueError(f"there is no folder to write {file!r} in.")
    return Output(format_, file or None)


def _each_to_its_own(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Let no two formats go to one place."""
    files = [output.file for output in outputs]
    if files.count(None) > 1:
        raise ValueError("only one format can go to the terminal; write FORMAT=FILE.")
    if twice := next((file for file in files if files.count(file) > 1), None):
        raise ValueError(f"only one format can go to {twice!r}.")
    return tuple(outputs)


def _clusters(context: click.Context) -> Iterable[str]:
    overlays = Terminal.of(context).root / "overlays"
    return sorted(folder.name for folder in overlays.iterdir() if folder.is_dir()) if overlays.is_dir() else ()


def pool_names(context: click.Context) -> Iterable[str]:
    """The pools of the clusters named so far, or of all."""
    return sorted({pool.name for plan in _plans(context) for pool in plan.pools})


def tenant_names(context: click.Context) -> Iterable[str]:
    """The tenants of the clusters named so far, or of all."""
    return sorted({tenant.name for plan in _plans(context) for tenant in plan.tenants})


def _plans(context: click.Context) -> Sequence[Plan]:
    from gpuplan.compiler import pipeline
    from gpuplan.compiler.base.diagnostics import GpuplanError

    try:
        report = pipeline.validate(Terminal.of(context).root, context.params.get("clusters") or (), kustomize="off")
    except (GpuplanError, OSError):
        return ()
    return report.plans


cluster_option = option(
    "-c",
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    section="Selection",
    shell_complete=completing(_clusters),
    help="Only this cluster, a folder of `overlays/`; may be repeated [default: all].",
)


def _know_stages(_: click.Context, parameter: click.Parameter, stages: tuple[str, ...]) -> tuple[str, ...]:
    for stage in stages:
        if stage.partition("/")[0] not in STAGES:
            raise click.BadParameter(f"{stage!r} is not one of {', '.join(STAGES)}.", param=parameter)
    return tuple(stage.rstrip("/") for stage in stages)


stage_option = option(
    "--stage",
    "stages",
    multiple=True,
    metavar="STAGE[/NAME]",
    section="Selection",
    callback=_know_stages,
    shell_complete=completing(lambda _: STAGES),
    help="With --stdout, only this stage, a folder of `out/<cluster>/`, or one pool or namespace of it; may be"
    " repeated [default: all].",
)
kustomize_option = option(
    "--kustomize",
    default="",
    envvar="GPUPLAN_KUSTOMIZE",
    show_envvar=True,
    metavar="PATH|off",
    section="Input",
    help="The kustomize or kubectl that builds hand-written Components, so that what they make of objects is"
    " checked; off for none [default: whichever is on the path].",
)
T = TypeVar("T")


def _read_where_it_lies(_: click.Context, __: click.Parameter, place: T) -> T:
    """Refuse a folder that a link of a repository leads to, out of it; a revision is none."""
    if place and os.path.isdir(str(place)):  # noqa: PTH112 - as the user typed it
        from gpuplan.terminal.named import refuse_leaving

        refuse_leaving(str(place))
    return place


def against_option(what: str, default: str = "") -> Callable[[F], F]:
    """The earlier state that a platform is compared with."""
    return option(
        "--against",
        default=default,
        metavar="REV|DIR",
        section="Input",
        callback=_read_where_it_lies,
        help=f"{what} [default: {default}]." if default else f"{what}.",
    )


crds_option = option(
    "--crds",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_read_where_it_lies,
    envvar="GPUPLAN_CRDS",
    show_envvar=True,
    metavar="DIR",
    section="Input",
    help="Check custom resources against the CustomResourceDefinitions in this folder first, and against those that"
    " come with gpuplan where it has none.",
)
findings_option = outputs_option(
    FORMATS,
    f"How findings are written: {', '.join(FORMATS)}. With =FILE they go to a file, and the terminal keeps its own",
    envvar="GPUPLAN_OUTPUT_FORMAT",
    show_envvar=True,
)
strictness_option = option("--warnings-as-errors", is_flag=True, section="Output", help="End with 1 on warnings too.")


def write_findings(terminal: Terminal, report: Report, outputs: Sequence[Output], *, to_stderr: bool = False) -> None:
    """Write findings in every format asked for, and a verdict on stderr.

    ``to_stderr`` keeps stdout free for the command's own data.
    """
    from gpuplan.terminal.formats import Format, findings
    from gpuplan.terminal.full import verdict

    theme, put = (terminal.err_theme, terminal.insist) if to_stderr else (terminal.out_theme, terminal.print)
    write_outputs(
        terminal.root, outputs, Format.FULL, theme, put, lambda name, theme: findings(report, Format(name), theme)
    )
    terminal.say(verdict(report, terminal.err_theme))


def write_outputs(
    root: Path,
    outputs: Sequence[Output],
    usual: str,
    theme: Theme,
    put: Callable[[str], None],
    shown: Callable[[str, Theme], str],
) -> None:
    """Write in every format asked for, and for people in the usual one unless another goes to the terminal."""
    from gpuplan.terminal.text import Theme

    put(shown(next((output.format for output in outputs if output.file is None), usual), theme))
    for output in outputs:
        if output.file is not None:
            from gpuplan.terminal.named import write_named

            text = shown(output.format, Theme(width=theme.width, root=theme.root))
            write_named(root, output.file, text)


def is_acceptable(report: Report, *, warnings_as_errors: bool) -> bool:
    """Whether a report lets a command go on, and CI be green."""
    from gpuplan.compiler.base.diagnostics import Severity

    bad = (Severity.ERROR, Severity.WARNING) if warnings_as_errors else (Severity.ERROR,)
    return all(diagnostic.severity not in bad for diagnostic in report.diagnostics)
