"""`gpuplan version`."""

from __future__ import annotations

from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import format_option, verb


@verb("version")
@format_option("text", "json")
def command(terminal: Terminal, format_: str) -> None:
    """Print the version and what this gpuplan knows."""
    from gpuplan.cli.views.version import version_json, version_text

    terminal.print(version_json() if format_ == "json" else version_text())
