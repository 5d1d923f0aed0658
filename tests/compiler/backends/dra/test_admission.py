"""Which pods may claim what. `research` may claim two devices a container: partitions in two pools, a GPU in one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.backends.dra.platform import A100, H100, LARGE, SMALL, platform
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.scheduling.platform import parameters_of, policy
from tests.compiler.backends.scheduling.pods import container, pod

SCHEDULERS = ("kubernetes", "kueue")


def claiming(*templates: str, pool: str = "parts", **spec: Any) -> dict[str, Any]:
    """A pod with a container that uses all of its claims, each from a template."""
    claims = [{"name": f"c{index}", "resourceClaimTemplateName": name} for index, name in enumerate(templates)]
    used = [{"name": claim["name"]} for claim in claims]
    return pod(container(resources={"claims": used}), pool=pool, resourceClaims=claims, **spec)


def by_name(**claim: str) -> dict[str, Any]:
    return pod(container(resources={"claims": [{"name": "c"}]}), pool="parts", resourceClaims=[{"name": "c", **claim}])


def refused(found: dict[str, Any], scheduler: str = "kubernetes", more: dict[str, str] | None = None) -> list[str]:
    """By either policy."""
    plan = platform(scheduler)
    given = {**parameters_of("research", plan), **(more or {})}
    return [
        text for name in ("gpuplan-grants", "gpuplan-devices") for text in refusals(policy(name, plan), found, given)
    ]


@pytest.mark.parametrize(
    "found",
    [
        pod(),
        claiming(SMALL),
        claiming(SMALL, SMALL),
        claiming(SMALL, pool="mixed"),
        claiming(A100, pool="mixed"),
        claiming(SMALL, SMALL, A100, pool="mixed"),
    ],
)
def test_what_is_granted_may_be_claimed(found: dict[str, Any]) -> None:
    assert refused(found) == []


REFUSED = {
    "a unit of another tenant": (
        claiming(H100, pool=""),
        f"tenant research has no quota on what is claimed by {H100}; resourceClaimTemplateName may be {SMALL} in pool",
    ),
    "a unit that is not granted": (claiming(LARGE), f"tenant research has no quota on what is claimed by {LARGE}; "),
    "a template of its own": (claiming("mine"), "tenant research has no quota on what is claimed by mine; "),
    "a unit of its other pool": (claiming(A100), f"in pool parts tenant research may claim by {SMALL}, not by {A100}"),
    "no pool": (
        claiming(SMALL, pool=""),
        (
            "pods that ask for GPUs must choose a pool: set the nodeSelector gpuplan.dev/pool to mixed or parts, or "
            "name several of them by a required nodeAffinity"
        ),
    ),
    "a claim by name": (
        by_name(resourceClaimName="shared"),
        "devices are claimed by a resourceClaimTemplateName; resourceClaimName is not open to tenants",
    ),
    "more than it may have in a container": (
        claiming(SMALL, SMALL, SMALL),
        f"a container of tenant research may claim at most 2 by {SMALL}",
    ),
    "a resource of the device plugin": (
        pod(container(limits={"nvidia.com/gpu": "1"}), pool="parts"),
        "tenant research has no quota on nvidia.com/gpu; ",
    ),
    "a class as a resource": (
        pod(container(limits={f"deviceclass.resource.kubernetes.io/{SMALL}": "1"}), pool="parts"),
        "resources of device classes are not open to tenants",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_all_else_is_refused(case: str) -> None:
    found, text = REFUSED[case]
    assert refused(found)[0].startswith(text)


def test_a_claim_in_an_init_container_counts_there() -> None:
    found = claiming(SMALL, SMALL, SMALL)
    found["spec"]["initContainers"] = found["spec"]["containers"]
    found["spec"]["containers"] = [container()]
    assert refused(found) == [f"a container of tenant research may claim at most 2 by {SMALL}"]


def test_what_is_no_gpu_may_be_allowed_by_hand() -> None:
    found = claiming("nic", pool="")
    assert refused(found)
    assert refused(found, more={"otherClaimTemplates": "nic\n"}) == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_scheduler_that_counts_claims_judges_them(scheduler: str) -> None:
    assert refused(claiming(LARGE), scheduler)[0].startswith("tenant research has no quota")
