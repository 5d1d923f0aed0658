"""Nothing that a workload can be is missing where all of it runs on live clusters (`tests/cluster/test_work.py`)."""

from __future__ import annotations

from gpuplan.compiler.policy.models import KINDS_OF_WORK, Api, TrainingKind
from tests.cluster.work import ROWS


def test_each_kind_of_work_is_run() -> None:
    assert {row.field for row in ROWS} == set(KINDS_OF_WORK)


def test_each_kind_of_object_that_a_cluster_may_have_is_run() -> None:
    assert {api for row in ROWS for api in row.apis} == set(Api)


def test_each_kind_of_training_is_run() -> None:
    assert {row.kind for row in ROWS if row.field == "training"} == set(TrainingKind)
