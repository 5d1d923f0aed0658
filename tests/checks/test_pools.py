"""What is said about pools' nodes, labels and fallbacks, beyond what the cases show."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks import node_labels, nodes, pools
from gpuplan.compiler.checks.registry import checks_in
from tests.plans import a_plan


def a_pool(name: str, nodes_text: str, sharing: str = "exclusive: {}", more: str = "") -> str:
    return f"""\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{gpusPerNode: 8, {nodes_text}}}
  sharing: {{{sharing}}}
  {more}
---
"""


def matching(pattern: str) -> str:
    return f"count: 2, namePattern: '{pattern}'"


def findings(text: str) -> list[Diagnostic]:
    plan = a_plan(text)
    return [found for check in checks_in(pools, nodes, node_labels) for found in check.run(plan)]


def messages(text: str) -> list[str]:
    return [found.finding.message for found in findings(text)]


def test_each_pair_of_overlapping_pools_is_said_once_whatever_their_order() -> None:
    forwards = [a_pool("a", matching("gpu-.*")), a_pool("b", matching("gpu-b.*")), a_pool("c", matching("gpu-bc.*"))]
    expected = [
        "node `gpu-b` belongs to the pools `a` and `b`",
        "node `gpu-bc` belongs to the pools `a` and `c`",
        "node `gpu-bc` belongs to the pools `b` and `c`",
    ]
    assert sorted(messages("".join(forwards))) == expected
    assert sorted(messages("".join(reversed(forwards)))) == expected


def test_a_pool_that_lists_many_matching_nodes_is_said_once() -> None:
    text = a_pool("a", "count: 3, names: [n1, n2, n3]") + a_pool("b", matching("n[0-9]"))
    assert messages(text) == ["node `n1` belongs to the pools `a` and `b`"]


def test_patterns_with_different_beginnings_and_none_are_compared() -> None:
    text = a_pool("a", matching("gpu-[0-9]+")) + a_pool("b", matching(".*-7")) + a_pool("c", matching("cpu-[0-9]"))
    assert sorted(messages(text)) == [
        "node `cpu-7` belongs to the pools `b` and `c`",
        "node `gpu-7` belongs to the pools `a` and `b`",
    ]


@pytest.mark.parametrize("key", ["rack", "example.com/rack", "a" * 63, f"{'a.' * 126}b/c", "Rack_1.x", "a/b"])
def test_label_key_is_taken(key: str) -> None:
    assert node_labels.key_fault(key) == ""


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/rack",
        "example.com/",
        "a b",
        "-rack",
        "rack-",
        "Example.com/rack",
        "a/b/c",
        "a" * 64,
        f"{'a.' * 127}b/c",
        "rück",
    ],
)
def test_label_key_is_refused(key: str) -> None:
    assert node_labels.key_fault(key)


def test_circle_of_three_is_said_once_and_a_pool_outside_is_not_part_of_it() -> None:
    fallbacks = {"a": "b", "b": "c", "c": "d", "d": "b"}
    text = "".join(a_pool(name, matching(f"{name}-[0-9]+"), more=f"fallback: {to}") for name, to in fallbacks.items())
    assert messages(text) == ["fallbacks go round: `b` -> `c` -> `d` -> `b`"]


def test_fallback_of_partly_whole_pool_is_judged_unit_by_unit() -> None:
    partly = "mig: {devices: [{gpus: [0], instances: {1g.10gb: 7}}, {gpus: [1, 2, 3, 4, 5, 6, 7], enabled: false}]}"
    same = a_pool("a", matching("a-[0-9]+"), partly, "fallback: b") + a_pool("b", matching("b-[0-9]+"), partly)
    weaker = a_pool("a", matching("a-[0-9]+"), partly, "fallback: b") + a_pool(
        "b", matching("b-[0-9]+"), "mig: {instances: {1g.10gb: 7}}"
    )
    assert messages(same) == []
    assert messages(weaker) == ["fallback `b` isolates less than pool `a`"]


def test_weaker_fallback_names_the_pools_that_would_do() -> None:
    text = (
        a_pool("a", matching("a-[0-9]+"), "mps: {replicas: 4}", "fallback: b")
        + a_pool("b", matching("b-[0-9]+"), "timeSlicing: {replicas: 4}")
        + a_pool("c", matching("c-[0-9]+"), "mps: {replicas: 2}")
    )
    assert [found.finding.help for found in findings(text)] == ["fall back to `c`, or leave `fallback` out"]
