"""The command `report`, with its options and its help; the modules beside do its work."""

from __future__ import annotations

import click

from gpuplan.terminal.options import against_option, cluster_option
from gpuplan.terminal.verbs import option, verb


@verb("drawing")
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
    help="Show the page at a port of this machine only, and update it with the files, until Ctrl+C.",
)
def report() -> None:
    """Draw the platform as one HTML page.

    The page needs no network and no script. It draws pools with their nodes and GPUs to scale, and lists guarantees,
    free units, evictions, costs, and findings. If policies have errors, it shows the parts without errors.

    \b
    Exit codes: 0  written
                1  written, and the policies, or the step, have errors
                2  trouble

    \b
      gpuplan report --output report.html
      gpuplan report -c prod --against main > merge.html
      gpuplan report --serve             # on localhost, while policies are edited
    """
