"""The table of what tenants may do to work that is queued or runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.manifests.templates import read_rows


class RunningWork(Value):
    """One thing that a tenant may try. ``by`` is the rule that refuses it, empty where nothing does.

    ``schedulers`` are those that it is about, none where it is about all.
    """

    id: str
    act: str
    by: str
    schedulers: tuple[str, ...]
    why: str


@cache
def running_work() -> tuple[RunningWork, ...]:
    rows = read_rows(Path(__file__).with_name("running-work.yaml"))["rows"]
    return tuple(
        RunningWork(
            id=row["id"], act=row["act"], by=row.get("by", ""), schedulers=tuple(row.get("with", ())), why=row["why"]
        )
        for row in rows
    )
