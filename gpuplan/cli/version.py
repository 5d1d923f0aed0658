"""`gpuplan version`."""

from __future__ import annotations

from gpuplan.cli.commands import format_option, verb
from gpuplan.cli.terminal import Terminal


@verb("version")
@format_option("text", "json")
def command(terminal: Terminal, format_: str) -> None:
    """Print the version and what this gpuplan knows."""
    from gpuplan.views.version import version_json, version_text

    terminal.print(version_json() if format_ == "json" else version_text())
