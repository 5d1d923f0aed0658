"""NVIDIA's runtime, and what of a pod it opens: every container is judged, and the class that the operator makes."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.scheduling.platform import policy
from tests.compiler.backends.scheduling.pods import asking, container, pod
from tests.plans import a_cluster, a_plan

GPU: Final = "nvidia.com/gpu"
VOID: Final = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
NRI: Final = "annotations nvidia.cdi.k8s.io must not be set; ask for GPUs in resources.limits"


@cache
def platform(runtime_class: str = "", scheduler: str = "kubernetes", without: str = "") -> Plan:
    cluster = a_cluster(f"kind: {scheduler}")
    if runtime_class:
        values = f", values: {{operator: {{runtimeClass: {runtime_class}}}}}"
        cluster = cluster.replace("version: v26.7.0", f"version: v26.7.0{values}")
    return a_plan(cluster.replace("spec:\n", f"spec:\n  admission: {{without: [{without}]}}\n", 1))


def judge(made: dict[str, Any], plan: Plan | None = None, **more: Any) -> list[str]:
    return refusals(policy("gpuplan-devices", plan or platform()), made, **more)


def told(*names: str, runtime_class: str = "nvidia") -> str:
    return (
        f"under runtimeClassName {runtime_class} an image may open all GPUs of its node: take the class away where its "
        "runtime is the default one, or set NVIDIA_VISIBLE_DEVICES to void in what asks for no GPU: " + ", ".join(names)
    )


def under(*containers: dict[str, Any], runtime_class: str = "nvidia", **more: Any) -> dict[str, Any]:
    return pod(*containers, runtimeClassName=runtime_class, **more)


@pytest.mark.parametrize("runtime_class", ["nvidia", "nvidia-cdi", "nvidia-legacy"])
def test_a_container_beside_one_with_a_gpu_sees_no_others(runtime_class: str) -> None:
    mixed = under(asking(GPU), container("side"), runtime_class=runtime_class)
    assert judge(mixed) == [told("side", runtime_class=runtime_class)]


def test_so_does_an_init_container() -> None:
    assert judge(under(asking(GPU), init=(container("first"),))) == [told("first")]
    assert judge(under(container("main"), init=(asking(GPU, name="first"),))) == [told("main")]


def test_it_may_say_that_it_sees_none() -> None:
    assert judge(under(asking(GPU), container("side", env=VOID))) == []
    assert judge(under(asking(GPU), init=(container("first", env=VOID),))) == []


def test_without_the_class_sidecars_say_nothing() -> None:
    assert judge(pod(asking(GPU), container("side"))) == []


def test_each_container_with_a_gpu_is_fine() -> None:
    assert judge(under(asking(GPU), asking(GPU, name="side"))) == []


def test_a_debug_container_says_so_too() -> None:
    old = under(asking(GPU))
    new = {**old, "spec": {**old["spec"], "ephemeralContainers": [container("debug")]}}
    said = {**old, "spec": {**old["spec"], "ephemeralContainers": [container("debug", env=VOID)]}}
    assert judge(new, old=old, subresource="ephemeralcontainers") == [told("debug")]
    assert judge(said, old=old, subresource="ephemeralcontainers") == []


def test_a_pod_that_runs_is_not_judged_again() -> None:
    mixed = under(asking(GPU), container("side"))
    assert judge(mixed, old=mixed) == []


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
def test_the_class_is_the_operators(scheduler: str) -> None:
    made = under(container("main"), runtime_class="gpu")
    assert judge(made, platform("gpu", scheduler)) == [told("main", runtime_class="gpu")]
    assert judge(made, platform("", scheduler)) == []


def test_the_rule_can_be_left_out() -> None:
    mixed = under(asking(GPU), container("side"))
    assert judge(mixed, platform(without="runtime-class-in-every-container")) == []


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
@pytest.mark.parametrize("name", ["nvidia.cdi.k8s.io", "nvidia.cdi.k8s.io/pod", "nvidia.cdi.k8s.io/container.main"])
def test_no_annotation_chooses_devices_by_nri(scheduler: str, name: str) -> None:
    named, plan = pod(annotations={name: "nvidia.com/gpu=all"}), platform("", scheduler)
    assert judge(named, plan) == [NRI]
    assert judge(named, plan, old=pod()) == [NRI]
    assert judge(named, plan, old=named) == []
    assert judge(pod(), plan, old=named) == []
