"""`gpuplan report`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpuplan.cli.commands import option, verb
from gpuplan.cli.options import cluster_option
from gpuplan.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpuplan.views.report.page import Follow


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
@option(
    "--serve",
    "port",
    is_flag=False,
    flag_value=0,
    type=click.IntRange(0, 65535),
    metavar="[PORT]",
    section="Output",
    help="Show the page at a port of this machine alone, and follow changes of the files, until Ctrl+C.",
)
def command(terminal: Terminal, clusters: tuple[str, ...], against: str, file: str, port: int | None) -> int:
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
      gpuplan report --serve                    # on localhost, while policies are edited
    """
    from pathlib import Path

    if port is not None:
        return _serve(terminal, clusters, against, port)
    text, is_right = _made(terminal, clusters, against, None)
    if file == "-":
        terminal.print(text)
    else:
        Path(file).write_text(text, encoding="utf-8")
    return 0 if is_right else 1


def _made(terminal: Terminal, clusters: Sequence[str], against: str, follow: Follow | None) -> tuple[str, bool]:
    """The page, and whether nothing has errors."""
    from gpuplan import pipeline
    from gpuplan.diagnostics import has_errors
    from gpuplan.views.report.page import report_page

    report = pipeline.validate(terminal.root, clusters)
    diff = pipeline.compare(terminal.root, clusters, against=against) if against else None
    text = report_page(report, diff, terminal.out_theme, follow=follow)
    return text, report.is_valid and not (diff and has_errors(diff.findings))


def _serve(terminal: Terminal, clusters: Sequence[str], against: str, port: int) -> int:
    import gc

    from gpuplan.cli.following import HOST, server
    from gpuplan.diagnostics import GpuplanError
    from gpuplan.views.report.page import Follow, trouble_page

    def page(nonce: str, state: str) -> str:
        follow = Follow(nonce, state)
        try:
            return _made(terminal, clusters, against, follow)[0]
        except GpuplanError as error:  # a file that is half written is whole a moment later
            return trouble_page(error, follow)

    gc.enable()  # other commands end before there is any
    with server(terminal.root, port, page) as found:
        terminal.insist(f"http://{HOST}:{found.server_port}/ until Ctrl+C\n")
        try:
            found.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
