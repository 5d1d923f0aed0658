"""What differs between two policies, and in which words."""

from __future__ import annotations

from typing import Any

from gpuplan.compiler.policy.models import PoolSpec, TenantSpec, WorkloadSpec
from gpuplan.compiler.policy.walking import changed_fields

WORKLOAD: dict[str, Any] = {"tenant": "research", "pool": "big", "image": "registry.example.com/app:1"}


def workload_changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, object, object]]:
    one, other = (WorkloadSpec.model_validate({**WORKLOAD, **fields}) for fields in (old, new))
    return [
        (".".join(map(str, path)), words, before, after) for path, words, before, after in changed_fields(one, other)
    ]


def tenant_changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, object, object]]:
    one, other = (TenantSpec.model_validate(fields) for fields in (old, new))
    return [
        (".".join(map(str, path)), words, before, after) for path, words, before, after in changed_fields(one, other)
    ]


def test_equal_policies_differ_in_nothing() -> None:
    assert workload_changes({"training": {}, "env": {"A": "1"}}, {"training": {"pods": 1}, "env": {"A": "1"}}) == []


def test_field_is_named_as_in_a_file_and_in_words() -> None:
    old = {"training": {"backoffLimit": 3}}
    new = {"training": {"backoffLimit": 4}, "priorityClass": "batch"}
    assert workload_changes(old, new) == [
        ("training.backoffLimit", "training backoff limit", 3, 4),
        ("priorityClass", "priority class", None, "batch"),
    ]


def test_part_that_comes_is_one_change() -> None:
    ((path, words, old, new),) = workload_changes({"training": {}}, {"training": {}, "model": {"size": "1Gi"}})
    assert (path, words, old, getattr(new, "size", None)) == ("model", "model", None, "1Gi")


def test_mapping_is_compared_by_its_keys() -> None:
    old = {"training": {}, "env": {"A": "1", "B": "2"}}
    new = {"training": {}, "env": {"B": "3", "C": "4"}}
    assert workload_changes(old, new) == [
        ("env.B", "environment", "2", "3"),
        ("env.C", "environment", None, "4"),
        ("env.A", "environment", "1", None),
    ]


def test_list_of_values_is_one_value() -> None:
    assert workload_changes({"training": {}, "args": ["a", "b"]}, {"training": {}, "args": ["b"]}) == [
        ("args", "arguments", ["a", "b"], ["b"])
    ]


def test_item_is_known_by_its_key_wherever_it_stands() -> None:
    small, large = ({"pool": pool, "guaranteed": 1} for pool in ("small", "large"))
    assert tenant_changes({"quotas": [small, large]}, {"quotas": [large, {**small, "guaranteed": 2}]}) == [
        ("quotas.1.guaranteed", "quotas guaranteed", 1, 2)
    ]


def test_item_that_goes_has_its_old_place() -> None:
    small, large = ({"pool": pool, "guaranteed": 1} for pool in ("small", "large"))
    ((path, words, _, new),) = tenant_changes({"quotas": [small, large]}, {"quotas": [small]})
    assert (path, words, new) == ("quotas.1", "quotas", None)


def test_item_without_a_key_is_known_by_its_place() -> None:
    def a_pool(*hours: int) -> PoolSpec:
        windows = [{"schedule": f"0 {hour} * * *", "duration": "1h"} for hour in hours]
        return PoolSpec.model_validate(
            {
                "gpu": "A100-80GB",
                "nodes": {"count": 1, "gpusPerNode": 8},
                "sharing": {"exclusive": {}},
                "disruption": {"windows": windows},
            }
        )

    ((path, words, *_),) = changed_fields(a_pool(1, 2), a_pool(1, 3))
    assert (path, words) == (("disruption", "windows", 1, "schedule"), "disruption windows schedule")
