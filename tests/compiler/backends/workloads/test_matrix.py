"""Nothing that a workload can be is missing where all of it runs on live clusters (`tests/cluster/test_work.py`)."""

from __future__ import annotations

from gpuplan.compiler.backends.workloads import objects
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.policy.models import KINDS_OF_WORK, Api, TrainingKind
from tests.cluster.lending import EVERYBODY
from tests.cluster.work import ROWS, platform
from tests.platforms import a_platform, tenant


def test_each_kind_of_work_is_run() -> None:
    assert {row.field for row in ROWS} == set(KINDS_OF_WORK)


def test_what_makes_jobs_and_what_ends_it_is_known() -> None:
    """A Job can never be changed, and its time is compared with that of its tenant."""
    everybody = tenant(EVERYBODY, namespaces="")
    plan = a_platform(everybody, *platform(), *(row.document() for row in ROWS))
    found = {item.name: (item.is_job, item.time_limit is not None) for item in plan.workloads}
    written = {item.name: [body for _, body, _ in objects(plan, item)] for item in plan.workloads}
    assert found == {
        row.name: ("Job" in row.kind, "activeDeadlineSeconds" in "".join(map(to_yaml, written[row.name])))
        for row in ROWS
    }


def test_each_kind_of_object_that_a_cluster_may_have_is_run() -> None:
    assert {api for row in ROWS for api in row.apis} == set(Api)


def test_each_kind_of_training_is_run() -> None:
    assert {row.kind for row in ROWS if row.field == "training"} == set(TrainingKind)
