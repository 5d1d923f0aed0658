"""The work of `gpuplan explain`, `gpuplan rules` and `gpuplan catalog`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gpuplan.cli.views import explain as views
from gpuplan.compiler import pipeline
from gpuplan.compiler.catalog import load
from gpuplan.compiler.pipeline import own_gpus
from gpuplan.terminal.catalog import gpu_page, gpu_table, gpus_json
from gpuplan.terminal.options import SCHEMAS
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import late


def explain(terminal: Terminal, words: Sequence[str]) -> None:
    subject = "/".join(words)
    match subject.lower().split("/"):
        case ["gpus" | "catalog"]:
            catalog(terminal, None, "table")
        case ["rules"]:
            rules(terminal, "table")
        case ["schema" | "schemas"]:
            terminal.print(views.schemas_table(terminal.out_theme))
        case ["schema", name]:
            terminal.print(_schema_text({known.lower(): known for known in SCHEMAS}.get(name, name)))
        case _:
            terminal.print(views.explain(subject, terminal.out_theme))


def rules(terminal: Terminal, format_: str) -> None:
    listed = pipeline.rules()
    terminal.print(views.rules_json(listed) if format_ == "json" else views.rules_table(listed, terminal.out_theme))


_schema_text = late("gpuplan.terminal.schemas:schema_text")
_catalog_svg = late("gpuplan.terminal.drawing:catalog_svg")


def catalog(terminal: Terminal, gpu: str | None, format_: str) -> None:
    known = load().extended(own_gpus(terminal.root))
    gpus = known.all() if gpu is None else (known.find(gpu) or known.find(gpu.upper()) or known.get(gpu),)
    if format_ == "json":
        terminal.print(gpus_json(gpus))
    elif format_ == "svg":
        if gpu is None:
            raise click.UsageError("a picture is of one model: type `gpuplan catalog MODEL -o svg`.")
        terminal.print(_catalog_svg(gpus[0]))
    else:
        theme = terminal.out_theme
        terminal.print(gpu_table(gpus, theme) if gpu is None else gpu_page(gpus[0], theme))
