"""`gpuplan catalog`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, format_option, verb

if TYPE_CHECKING:
    from gpuplan.compiler.catalog import Gpu


def _own(root: Path) -> Mapping[str, Gpu]:
    """The models that the platform's documents describe, where there is a platform."""
    from gpuplan.compiler.pipeline import own_gpus

    return own_gpus(root)


def _gpus(_: click.Context) -> Iterable[str]:
    from gpuplan.compiler.catalog import load

    return load().ids()


@verb("catalog")
@click.argument("gpu", required=False, shell_complete=completing(_gpus))
@format_option(
    "table", "svg", "json", what="A table, a picture of each layout of one model, or the contract for programs"
)
def command(terminal: Terminal, gpu: str | None, format_: str) -> None:
    """List the GPU models, the platform's own too, or one's MIG profiles and layouts.

    \b
      gpuplan catalog
      gpuplan catalog A100-80GB            profiles, where each may start, layouts
      gpuplan catalog A100-80GB -o svg     the layouts as a picture
    """
    from gpuplan.compiler.catalog import load
    from gpuplan.terminal import catalog as views

    catalog = load().extended(_own(terminal.root))
    gpus = catalog.all() if gpu is None else (catalog.find(gpu) or catalog.find(gpu.upper()) or catalog.get(gpu),)
    if format_ == "json":
        terminal.print(views.gpus_json(gpus))
    elif format_ == "svg":
        if gpu is None:
            raise click.UsageError("a picture is of one model: name it.")
        from gpuplan.terminal.drawing import catalog_svg

        terminal.print(catalog_svg(gpus[0]))
    else:
        theme = terminal.out_theme
        terminal.print(views.gpu_table(gpus, theme) if gpu is None else views.gpu_page(gpus[0], theme))
