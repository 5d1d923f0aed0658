"""`python -m gpuplan.cli`, where no script is installed."""

from __future__ import annotations

from gpuplan.cli.main import entry

entry()
