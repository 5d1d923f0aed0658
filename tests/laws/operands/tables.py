"""Tables of what operands do, made of their source by `tools/operator_tables.py`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "tables"
RELEASES = ("v24.6.2", "v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0")
"""The newest of each line that was read."""

EXPORTERS = {
    "v24.6.2": "3.3.7-3.5.0",
    "v24.9.2": "3.3.9-3.6.1",
    "v25.3.4": "4.3.1-4.4.0",
    "v25.10.1": "4.4.2-4.7.0",
    "v26.3.3": "4.5.3-4.8.2",
}
"""The DCGM exporter that each brings; that of v26.7.0 was not read."""


@cache
def operator(release: str) -> Mapping[str, Any]:
    return _read(f"gpu-operator-{release}")


@cache
def exporter(version: str) -> Mapping[str, Any]:
    return _read(f"dcgm-exporter-{version}")


def line_of(release: str) -> str:
    """`v26.7` of `v26.7.0`."""
    return release.rpartition(".")[0]


def _read(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return found
