"""Options that several verbs share, and words that help names; what help must not load is in other modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar, cast

import click

from gpuplan import handed_in
from gpuplan.compiler.base.values import Value
from gpuplan.terminal.verbs import F, completing, late, option

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit", "markdown")
"""As `gpuplan.terminal.formats.Format`."""
STAGES = ("gpu-operator", "scheduler", "partitions", "scheduling", "queues", "namespaces", "monitoring", "workloads")
"""As `gpuplan.compiler.planning.plan.Stage`."""
SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
"""As `gpuplan.compiler.policy.models.SchedulerKind`."""
KINDS: Final = ("Cluster", "Pool", "Gpu", "MigLayout", "PriorityClass", "Tenant", "Workload", "Retained", "Prices")
"""The kinds of documents that a platform may have."""
GIVEN: Final = tuple(entry.partition(":")[2] for entry in handed_in.DOCUMENTS)
"""The kinds of documents that commands are given, and that no platform has."""
OUTPUTS: Final = {
    "findings": "validate",
    "plan": "show",
    "comparison": "show --scheduler NAME",
    **{name: command for name, (_, command) in handed_in.OUTPUTS.items()},
}
"""The JSON that is written, with the command that writes it with `--output-format json`."""
SCHEMAS: Final = ("policy", "overlay", *KINDS, *GIVEN, *OUTPUTS)

T = TypeVar("T")

_refuse_leaving = late("gpuplan.terminal.session:refuse_leaving")
_refuse_links = late("gpuplan.terminal.session:refuse_links")


def root_of(context: click.Context) -> Path:
    """Return the repository's root, as `Terminal.root` does."""
    return Path(context.find_root().ensure_object(dict).get("directory", "."))


class Output(Value):
    """A format, and the file that it goes to; None is the terminal."""

    format: str
    file: str | None = None


def outputs_option(formats: Sequence[str], help: str, **attributes: str | bool) -> Callable[[F], F]:  # noqa: A002 - click's name
    """Offer formats to write in, each as ``FORMAT`` or ``FORMAT=FILE``; the first one is for people."""

    def read(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[Output, ...]:
        try:
            outputs = tuple(_output(value, formats) for value in values)
            _refuse_same_place([output.file for output in outputs])
        except ValueError as error:
            raise click.BadParameter(str(error), param=parameter) from error
        for output in outputs:
            if output.file:
                _refuse_links(root_of(context), output.file)
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
        help=f"{help}; may be repeated [default: {formats[0]}].",
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


def _refuse_same_place(files: Sequence[str | None]) -> None:
    if files.count(None) > 1:
        raise ValueError("only one format can go to the terminal; write FORMAT=FILE.")
    if twice := next((file for file in files if files.count(file) > 1), None):
        raise ValueError(f"only one format can go to {twice!r}.")


def cluster_names(context: click.Context) -> Iterable[str]:
    """Return the folders of `overlays/`."""
    overlays = root_of(context) / "overlays"
    return sorted(folder.name for folder in overlays.iterdir() if folder.is_dir()) if overlays.is_dir() else ()


_plans = late("gpuplan.terminal.completions:plans")
_catalog = late("gpuplan.compiler.catalog:load")


def pool_names(context: click.Context) -> Iterable[str]:
    """Return the pools of the clusters that were named before, or of all."""
    return sorted({pool.name for plan in _plans(context) for pool in plan.pools})


def tenant_names(context: click.Context) -> Iterable[str]:
    """Return the tenants of the clusters that were named before, or of all."""
    return sorted({tenant.name for plan in _plans(context) for tenant in plan.tenants})


def gpu_models(_: click.Context) -> Iterable[str]:
    """Return the GPU models that the catalog has."""
    models: Iterable[str] = _catalog().ids()
    return models


def _refuse_lists(_: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if {*", ="}.intersection(name):
            raise click.BadParameter(f"{name!r} is no name; each cluster has its own `-c`.", param=parameter)
    return names


cluster_option = option(
    "-c",
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    section="Selection",
    callback=_refuse_lists,
    shell_complete=completing(cluster_names),
    help="Only this cluster, a folder of `overlays/`; may be repeated [default: all].",
)


_refuse_clusters = late("gpuplan.terminal.habits:refuse_clusters")


def refuse_clusters(context: click.Context, _: click.Parameter, value: T) -> T:
    """Refuse the name of a cluster among the files that an argument takes."""
    return cast("T", _refuse_clusters(context, value)) if value else value


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
    help="The kustomize or kubectl that builds hand-written Components, so that gpuplan can check their objects; "
    "off for none [default: from the path].",
)


def _refuse_folder_outside(_: click.Context, __: click.Parameter, place: T) -> T:
    """Refuse a folder to which a link leads out of a repository; what is no folder, such as a revision, passes."""
    if place and os.path.isdir(str(place)):  # noqa: PTH112 - as the user typed it
        _refuse_leaving(str(place))
    return place


def against_option(help: str, default: str = "") -> Callable[[F], F]:  # noqa: A002 - click's name
    """Offer an earlier state that the platform is compared with."""
    return option(
        "--against",
        default=default,
        metavar="REV|DIR",
        section="Input",
        callback=_refuse_folder_outside,
        help=f"{help} [default: {default}]." if default else f"{help}.",
    )


nodes_option = option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    section="Input",
    help="The cluster's nodes, from `kubectl get nodes -o json` (or yaml): a file, a folder of them, or - for stdin,"
    " whatever else is in it; may be repeated. gpuplan then uses the real labels and names of nodes, and assumes none.",
)
crds_option = option(
    "--crds",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_refuse_folder_outside,
    envvar="GPUPLAN_CRDS",
    show_envvar=True,
    metavar="DIR",
    section="Input",
    help="Check custom resources first against the CustomResourceDefinitions in this folder, then against gpuplan's "
    "own.",
)
findings_option = outputs_option(
    FORMATS,
    f"The format of findings: {', '.join(FORMATS)}. With =FILE they go to a file, and the "
    "terminal still shows the default format",
    envvar="GPUPLAN_OUTPUT_FORMAT",
    show_envvar=True,
)
strictness_option = option("--warnings-as-errors", is_flag=True, section="Output", help="End with 1 on warnings too.")
gpu_option = option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="MODEL",
    section="Input of FILE",
    shell_complete=completing(gpu_models),
    help="Check partitions on this model of `gpuplan catalog`; may be repeated [default: any model that fits].",
)
kubernetes_option = option(
    "--kubernetes",
    default="",
    metavar="VERSION",
    section="Input of FILE",
    help="Check objects against the schemas of this minor version, such as 1.34 [default: the newest known version].",
)
operator_option = option(
    "--operator",
    default="",
    metavar="VERSION",
    section="Input of FILE",
    help="Check values of the GPU Operator's chart against this release, such as v26.7.0 [default: the release that a"
    " file names beside the values, else every known release].",
)
