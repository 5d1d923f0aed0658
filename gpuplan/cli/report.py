"""`gpuplan report`."""

from __future__ import annotations

import click

from gpuplan.cli.commands import option, verb
from gpuplan.cli.options import cluster_option
from gpuplan.cli.terminal import Terminal


@verb("report")
@cluster_option
@option(
    "--against",
    default="",
    metavar="REV|DIR",
    section="Input",
    help="Show what changes from this revision, or from the platform or the `out/` in this folder, as `gpuplan diff`.",
)
@option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    metavar="FILE",
    section="Output",
    help="The file to write [default: stdout].",
)
def command(terminal: Terminal, clusters: tuple[str, ...], against: str, file: str) -> int:
    """Draw the platform as one HTML page, for a browser or for paper.

    It needs no network and no script: pools with their nodes and GPUs to scale, who is guaranteed what, what is free,
    who evicts whom, what it costs, and findings. Of policies with errors it shows what could be planned.

    \b
    Exit codes: 0  written
                1  written, and the policies, or the step, have errors
                2  trouble

    \b
      gpuplan report --output report.html
      gpuplan report -c prod --against main > merge.html
    """
    from pathlib import Path

    from gpuplan import pipeline
    from gpuplan.diagnostics import has_errors
    from gpuplan.views.report.page import report_page

    report = pipeline.validate(terminal.root, clusters)
    diff = pipeline.compare(terminal.root, clusters, against=against) if against else None
    text = report_page(report, diff, terminal.out_theme)
    if file == "-":
        terminal.print(text)
    else:
        Path(file).write_text(text, encoding="utf-8")
    return 0 if report.is_valid and not (diff and has_errors(diff.findings)) else 1
