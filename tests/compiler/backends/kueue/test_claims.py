"""Pools whose devices are had by claims, with Dynamic Resource Allocation."""

from __future__ import annotations

from typing import Any

import yaml

from tests.compiler.backends.kueue.platform import cells, files, found, platform, team
from tests.platforms import document

SPEC = "gpu: A100-80GB, allocation: dra, sharing: {mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}}, nodes: "
POOLS = "".join(
    document("Pool", name, f"{SPEC} {{count: {count}, gpusPerNode: 8}}")
    for name, count in [("first", 1), ("second", 2)]
)
SMALL, LARGE = "gpuplan.dev/gpuplan-a100-80gb-2g.20gb", "gpuplan.dev/gpuplan-a100-80gb-3g.40gb"


def configured(pools: str) -> Any:
    (file,) = files(platform(pools=pools))
    return yaml.safe_load(file.data)["resources"].get("deviceClassMappings")


def test_claims_are_counted_by_a_name_for_each_device_class() -> None:
    assert configured(POOLS) == [
        {"name": SMALL, "deviceClassNames": ["gpuplan-a100-80gb-2g.20gb"]},
        {"name": LARGE, "deviceClassNames": ["gpuplan-a100-80gb-3g.40gb"]},
    ]


def test_resources_need_no_mapping() -> None:
    assert configured(POOLS.replace("allocation: dra, ", "")) is None


def test_a_quota_is_on_that_name() -> None:
    plan = platform(team("research", "pool: second, unit: 2g.20gb, guaranteed: 4, limit: 6"), pools=POOLS)
    assert found(plan, "ResourceFlavor", "second")["nodeLabels"] == {"gpuplan.dev/pool": "second"}
    assert cells(plan, "ClusterQueue", "research") == {("second", SMALL): ("4", "2", None)}
    assert cells(plan, "Cohort", "gpuplan")["second", SMALL] == ("28", None, None)
    assert cells(plan, "Cohort", "gpuplan")["first", LARGE] == ("8", None, None)
