"""Kinds of the objects that the chart gpu-operator renders, which no folder of the output holds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from gpuplan.documents import read_data

KindName = tuple[str, str]
"""Group and kind; the core group is empty."""


class ChartKinds(NamedTuple):
    """Kinds by where their objects live: in the cluster as a whole, or in a namespace."""

    cluster: frozenset[KindName]
    namespaced: frozenset[KindName]


@cache
def chart_kinds() -> ChartKinds:
    text = (Path(__file__).with_name("operator_data") / "chart-kinds.yaml").read_text(encoding="utf-8")
    data = read_data(text)
    return ChartKinds(*(frozenset((row["group"], row["kind"]) for row in data[scope]) for scope in ChartKinds._fields))
