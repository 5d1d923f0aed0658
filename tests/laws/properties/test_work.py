"""Three hundred random workloads: their objects are valid, let in, and as large as `gpuplan show` says."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final

import kubernetes_validate
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel

from gpuplan.compiler.admission import rules_of
from gpuplan.compiler.admission.arriving import arrivals
from gpuplan.compiler.admission.verdicts import refused
from gpuplan.compiler.backends import workloads
from gpuplan.compiler.backends.workloads import kserve
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.manifests import Manifest, check_schemas
from gpuplan.compiler.manifests.builtin_schemas import builtin_schemas
from gpuplan.compiler.manifests.crds import served
from gpuplan.compiler.manifests.kinds import get_kind
from gpuplan.compiler.manifests.model import Gvk
from gpuplan.compiler.pipeline import judge_plan
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, Counted, Plan
from gpuplan.compiler.planning.requests import asked_by_pod
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.policy.models import KINDS_OF_WORK, Sharing, WorkloadSpec
from gpuplan.terminal.plan_json import plan_as_data
from tests.conftest import EXAMPLES
from tests.laws.properties.counting import Asked, amount, asked_by
from tests.laws.properties.work import FIELDS, FITS, LEFT_OUT, ONE_OF, PLACED, PLACES, TOGETHER, models_below, platforms
from tests.plans import a_plan

pytestmark = pytest.mark.no_cover

IN_ALL: Final = 300
PLATFORMS: Final = max(IN_ALL // (TOGETHER * len(SCHEDULERS)), EXAMPLES // TOGETHER)
"""How many are drawn for each scheduler."""
MINOR: Final = "1.34"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=PLATFORMS)
@given(data=st.data())
def test_random_workloads_are_valid_let_in_and_counted(scheduler: str, data: st.DataObject) -> None:
    plan = a_plan(data.draw(platforms(scheduler)))
    assert [(item.code, item.finding.message) for item in judge_plan(plan) if item.is_error] == []
    manifests = list(workloads.render(plan))
    assert invalid(plan, manifests) == []
    assert refusals(plan, manifests) == []
    work = [manifest.body for manifest in manifests if not is_download(manifest)]
    assert asked_by(work, MAIN_CONTAINER, kserve.CONTAINER) == shown(plan)
    assert {name: (asked.cpu, asked.memory) for name, asked in asked_by(work).items()} == counted(plan)
    downloads = asked_by(manifest.body for manifest in manifests if is_download(manifest))
    assert set(downloads) <= {""}
    assert downloads.get("", Asked()).units == 0


def invalid(plan: Plan, manifests: list[Manifest]) -> list[str]:
    """What of the objects, and of the pods that controllers make of them, fits no schema."""
    custom = [item.gvk for item in manifests if get_kind(item.gvk.group, item.kind).is_custom]
    newest = {item.project: item.releases[0] for item in (served(gvk.group, gvk.kind)[0] for gvk in custom)}
    found = [problem.text for problem in check_schemas(manifests, MINOR, releases=newest)]
    for manifest in manifests:
        for arrival in arrivals(plan, manifest.body, {}):
            if arrival.body["kind"] == "Pod":
                found += pod_problems(arrival.body)
    return found


@cache
def _pod_validator() -> Any:
    return builtin_schemas(MINOR).find_validator(Gvk("", "v1", "Pod"))


def pod_problems(pod: Mapping[str, Any]) -> list[str]:
    """Who owns it is said in part: the name and the uid are not known before it is there."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}
    return [error.message for error in _pod_validator().iter_errors({**pod, "metadata": metadata})]


def refusals(plan: Plan, manifests: list[Manifest]) -> list[tuple[str, str, Path]]:
    """What the plan's own policies refuse of the objects and of the pods that controllers make of them."""
    by_name = {workload.name: workload for workload in plan.workloads}
    return [
        (manifest.name, item.refusal.rule.name, item.route)
        for manifest in manifests
        for workload in (by_name[manifest.about[0].name],)
        for item in refused(plan, rules_of(plan), manifest.body, workload.tenant, workload.namespace)
    ]


def is_download(manifest: Manifest) -> bool:
    """A Job that fills a volume: `show` counts none of it, for it ends before the pods come."""
    return manifest.kind == "Job" and manifest.body["metadata"]["name"].rpartition("-")[0].endswith("-download")


def shown(plan: Plan) -> dict[str, Asked]:
    """What `gpuplan show -o json` says of each workload at its largest; CPU and memory are its own container's."""
    return {
        work["name"]: Asked(
            1,
            Decimal(0) if work["gpu_memory_mib"] else Decimal(str(work["units_per_pod"])),
            Decimal(work["gpu_memory_mib"] or 0),
            amount(work["cpu"] or "0"),
            amount(work["memory"] or "0"),
        ).times(work["most_pods"])
        for work in plan_as_data(plan)["workloads"]
    }


def counted(plan: Plan) -> dict[str, tuple[Decimal, Decimal]]:
    """CPUs and bytes that quotas are held against: containers are among them that `podPatch` adds."""
    return {
        workload.name: (
            Decimal((asked_by_pod(workload, Counted.CPU) or 0) * workload.most_pods) / 1000,
            Decimal((asked_by_pod(workload, Counted.MEMORY) or 0) * workload.most_pods),
        )
        for workload in plan.workloads
    }


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=2)
@given(data=st.data())
def test_another_validator_takes_them(scheduler: str, data: st.DataObject) -> None:
    for manifest in workloads.render(a_plan(data.draw(platforms(scheduler)))):
        if not get_kind(manifest.gvk.group, manifest.kind).is_custom:
            kubernetes_validate.validate(manifest.body, MINOR, strict=True)


# --- Nothing is forgotten ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", models_below(WorkloadSpec), ids=lambda model: model.__name__)
def test_every_field_is_drawn_or_left_out(model: type[BaseModel]) -> None:
    left_out = {name for of, name in LEFT_OUT if of is model}
    placed = PLACED if model is WorkloadSpec else frozenset()
    rows = [*FIELDS.get(model, ()), *left_out, *placed]
    assert sorted(rows) == sorted(model.model_fields)


def test_every_kind_of_work_is_drawn() -> None:
    assert FITS.keys() == set(KINDS_OF_WORK)


def test_work_is_drawn_on_each_kind_of_pool() -> None:
    written = {place.sharing.partition(":")[0] for place in PLACES.values()}
    assert written == {info.alias or name for name, info in Sharing.model_fields.items()}


@pytest.mark.parametrize("model", ONE_OF, ids=lambda model: model.__name__)
def test_what_is_one_of_several_is_drawn(model: type[BaseModel]) -> None:
    assert FIELDS[model].keys() >= set(ONE_OF[model])
