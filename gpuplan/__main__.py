"""`python -m gpuplan`, where no script is installed, or none that is isolated."""

from __future__ import annotations

from gpuplan.cli.main import entry

entry()
