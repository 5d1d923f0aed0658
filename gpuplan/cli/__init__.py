"""The command line: arguments in, a view out, an exit code."""

from __future__ import annotations

from gpuplan.cli.main import entry

__all__ = ["entry"]
