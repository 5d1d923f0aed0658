"""The work of `gpuplan catalog`."""

from __future__ import annotations

import click

from gpuplan.compiler.catalog import load
from gpuplan.compiler.pipeline import own_gpus
from gpuplan.terminal import catalog as views
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import late

_catalog_svg = late("gpuplan.terminal.drawing:catalog_svg")


def catalog(terminal: Terminal, gpu: str | None, format_: str) -> None:
    known = load().extended(own_gpus(terminal.root))
    gpus = known.all() if gpu is None else (known.find(gpu) or known.find(gpu.upper()) or known.get(gpu),)
    if format_ == "json":
        terminal.print(views.gpus_json(gpus))
    elif format_ == "svg":
        if gpu is None:
            raise click.UsageError("a picture is of one model: name it.")
        terminal.print(_catalog_svg(gpus[0]))
    else:
        theme = terminal.out_theme
        terminal.print(views.gpu_table(gpus, theme) if gpu is None else views.gpu_page(gpus[0], theme))
