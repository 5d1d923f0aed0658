"""Nothing that a workload can be is missing where all of it runs on live clusters (`tests/cluster/test_work.py`)."""

from __future__ import annotations

from gpuplan.policy.models import KINDS_OF_WORK
from tests.cluster.work import ROWS


def test_each_kind_of_work_is_run() -> None:
    assert {row.field for row in ROWS} == set(KINDS_OF_WORK)
