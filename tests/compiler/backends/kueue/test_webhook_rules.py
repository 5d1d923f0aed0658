"""The rules by which Kueue's webhooks are judged here refuse what Kueue's own tests refuse.

See `pkg/webhooks/clusterqueue_webhook_test.go`, `cohort_webhook_test.go` and `resourceflavor_webhook_test.go`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.backends.kueue.webhook import refusals


def group(*flavors: tuple[str, dict[str, dict[str, str]]], covered: tuple[str, ...] = ("nvidia.com/gpu",)) -> Any:
    return {
        "coveredResources": list(covered),
        "flavors": [
            {"name": name, "resources": [{"name": resource, **numbers} for resource, numbers in quotas.items()]}
            for name, quotas in flavors
        ],
    }


def queue(numbers: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "namespaceSelector": {},
        "cohortName": "all",
        "resourceGroups": [group(("a", {"nvidia.com/gpu": numbers}))],
        **more,
    }


FINE = {"nominalQuota": "4", "borrowingLimit": "2", "lendingLimit": "4"}
ONE = {"nvidia.com/gpu": {"nominalQuota": "1"}}


def test_a_queue_that_breaks_no_rule() -> None:
    assert refusals(queue(FINE)) == []


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        (queue({"nominalQuota": "-1"}), "not_negative"),
        (queue({**FINE, "lendingLimit": "5"}), "lending_within_nominal"),
        (
            {**queue(FINE), "resourceGroups": [group(("a", ONE), covered=("nvidia.com/mig-1g.10gb",))]},
            "order_of_resources",
        ),
        ({**queue(FINE), "resourceGroups": [group(("a", ONE), ("a", ONE))]}, "flavor_names"),
        ({**queue(FINE), "resourceGroups": [group(("a", ONE)), group(("b", ONE))]}, "resource_names"),
        (queue(FINE, preemption={"borrowWithinCohort": {"policy": "LowerPriority"}}), "preemption"),
        (queue(FINE, flavorFungibility={"preference": "BorrowingOverPreemption"}), "fungibility"),
        (queue(FINE, fairSharing={"weight": "1n"}), "weight"),
        ({"resourceGroups": queue(FINE)["resourceGroups"]}, "limits_below_a_parent"),
        ({**queue(FINE), "resourceGroups": [group(*((f"f{i}", ONE) for i in range(257)))]}, "sizes"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "tolerations"),
        ({"levels": [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "rack"}]}, "levels"),
    ],
)
def test_what_breaks_a_rule_is_refused(spec: dict[str, Any], rule: str) -> None:
    assert {refusal.partition(":")[0] for refusal in refusals(spec)} >= {rule}


def test_a_cohort_may_lend_more_than_its_own_quota() -> None:
    spec = {"parentName": "all", "resourceGroups": queue({**FINE, "lendingLimit": "5"})["resourceGroups"]}
    assert refusals(spec) == []
