"""`gpuplan report`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.terminal.options import against_option, cluster_option
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb

if TYPE_CHECKING:
    from pathlib import Path

    from gpuplan.features.report.views.page import Follow


@verb("report")
@cluster_option
@against_option(
    "Show what changes from this revision, or from the platform or the `out/` in this folder, as `gpuplan diff`"
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
      gpuplan report --serve             # on localhost, while policies are edited
    """
    if port is not None:
        if file != "-":
            raise click.UsageError("--serve writes no file, and --output shows none.")
        return _serve(terminal, clusters, against, port)
    from gpuplan.terminal.named import write_named

    target = None if file == "-" else _target(terminal.root, file)
    made = _made(terminal, clusters, against, None)
    if target is None:
        terminal.print(made.text)
    else:
        write_named(terminal.root, target, made.text)
    terminal.say(made.verdict)
    return 0 if made.is_right else 1


def _target(root: Path, file: str) -> str:
    """Where the page goes; found out before a large platform is planned in vain."""
    from pathlib import Path
    from shlex import quote

    from gpuplan.compiler.base.diagnostics import GpuplanError
    from gpuplan.terminal.named import refuse_links

    folder = Path(file).parent
    refuse_links(root, file)
    if not folder.is_dir():
        raise GpuplanError(f"there is no folder `{folder}` for the page", f"make it: `mkdir -p {quote(str(folder))}`")
    return file


class _Made(NamedTuple):
    """A page, what there is to say of it, and whether nothing has errors."""

    text: str
    verdict: str
    is_right: bool


def _made(terminal: Terminal, clusters: Sequence[str], against: str, follow: Follow | None) -> _Made:
    from gpuplan.compiler import pipeline
    from gpuplan.compiler.base.diagnostics import has_errors
    from gpuplan.features.changes import compare, verdict as verdict_of
    from gpuplan.features.report.views.page import report_page
    from gpuplan.terminal import full

    report = pipeline.validate(terminal.root, clusters)
    diff = compare(terminal.root, clusters, against=against) if against else None
    text = report_page(report, diff, terminal.out_theme, follow=follow)
    verdict = full.verdict(report, terminal.err_theme) + (f"{verdict_of(diff)}\n" if diff else "")
    return _Made(text, verdict, report.is_valid and not (diff and has_errors(diff.findings)))


def _serve(terminal: Terminal, clusters: Sequence[str], against: str, port: int) -> int:
    import gc

    from gpuplan.compiler.base.diagnostics import GpuplanError
    from gpuplan.features.report.commands.following import HOST, server
    from gpuplan.features.report.views.page import Follow, trouble_page

    def page(nonce: str, state: str) -> str:
        follow = Follow(nonce, state)
        try:
            return _made(terminal, clusters, against, follow).text
        except GpuplanError as error:  # a file that is half written is whole a moment later
            return trouble_page(error, follow)
        except OSError as error:  # and so is a folder that has just gone
            return trouble_page(GpuplanError(f"`{error.filename}`: {str(error.strerror).lower()}"), follow)

    gc.enable()  # other commands end before there is any
    try:
        made = server(terminal.root, port, page)
    except OSError as error:
        free = "`--serve` without a number takes one that is free"
        raise GpuplanError(f"port {port}: {(error.strerror or str(error)).lower()}", free) from error
    with made as found:
        terminal.insist(f"http://{HOST}:{found.server_port}/ until Ctrl+C\n")
        try:
            found.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
