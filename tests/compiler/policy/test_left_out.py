"""What is wrong in a document is left out as far as the rest still means what it says."""

from __future__ import annotations

from textwrap import indent

import pytest

from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import Parsed, parse

HEAD = "apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n"
REQUIRED = {
    "Cluster": 'kubernetes: "1.34"\n',
    "Pool": "gpu: A100-80GB\n",
    "MigLayout": "gpu: A100-80GB\n",
    "PriorityClass": "value: 5\n",
    "Tenant": "",
    "Workload": "tenant: a\npool: a\nimage: registry.example.com/a:1\n",
}
OPERATOR = "gpuOperator: {install: helm, version: v26.7.0}\n"
NODES = "nodes: {count: 1, gpusPerNode: 8}\n"
WHOLE = "sharing: {exclusive: {}}\n"


def read(kind: str, fields: str) -> Parsed:
    text = HEAD.format(kind=kind) + indent(REQUIRED[kind] + fields, "  ")
    (document,), found = read_text("policies/a.yaml", text)
    assert not found
    return parse(document)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Cluster", f"{OPERATOR}scheduler: {{kind: kaii}}"),
        ("Cluster", f"{OPERATOR}nodeLabels: labels"),
        ("Pool", f"{WHOLE}nodes: {{count: 1, gpusPerNode: 8, names: {{a: {{b: c}}}}}}"),
        ("Pool", f"{WHOLE}nodes: {{count: 1, gpusPerNode: 8, namePattern: 5}}"),
        ("Pool", f"{NODES}sharing: {{mig: {{instances: {{1g.10gb: '7', 2g.20gb: 1}}}}}}"),
        ("Pool", f"{NODES}sharing: {{mig: {{instances: {{1g.10gb: 7}}, strategy: Single}}}}"),
        ("MigLayout", "instances: {1g.10gb: many, 2g.20gb: 1}"),
        ("PriorityClass", "preemptible: never"),
        ("Tenant", "namespaces: [5, research]"),
        ("Workload", "training: {pods: many}"),
        ("Workload", "inference: {}\ncount: none"),
        ("Workload", "inference: {}\nfraction: 2"),
        ("Workload", "inference: {}\ntraining: {}"),
        ("Workload", "training: {}\npriorityClass: [a]"),
    ],
)
def test_no_policy_is_made_of_defaults_for_what_a_document_is_about(kind: str, fields: str) -> None:
    parsed = read(kind, fields)
    assert len(parsed.diagnostics) == 1
    assert parsed.policy is None


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (
            "Pool",
            f"{WHOLE}nodes: {{count: 1, gpusPerNode: 8, names: gpu-1}}",
            f"{WHOLE}nodes: {{count: 1, gpusPerNode: 8, names: [gpu-1]}}",
        ),
        ("Pool", f"{NODES}sharing: exclusive", f"{NODES}sharing: {{exclusive: {{}}}}"),
        ("Pool", f"{NODES}sharing: none", f"{NODES}sharing: {{exclusive: {{}}}}"),
        ("Pool", f"{NODES}sharing: mps=2", f"{NODES}sharing: {{mps: {{replicas: 2}}}}"),
        ("Pool", f"{NODES}sharing: time-slicing=4", f"{NODES}sharing: {{timeSlicing: {{replicas: 4}}}}"),
        ("Tenant", "namespaces: a, b", "namespaces: [a, b]"),
        ("Cluster", f"{OPERATOR}scheduler: kueue", f"{OPERATOR}scheduler: {{kind: kueue}}"),
        ("Workload", "inference: {}\ncommand: python -m a", "inference: {}\ncommand: [python, -m, a]"),
    ],
)
def test_a_mapping_or_a_list_is_read_as_it_was_meant(kind: str, wrong: str, right: str) -> None:
    parsed = read(kind, wrong)
    assert len(parsed.diagnostics) == 1
    assert parsed.policy == read(kind, right).policy
    assert not parsed.left_out


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Cluster", "gpuOperator: {install: helm, version: v26.7.0, rebootOnMigChange: often}"),
        ("Pool", f"{NODES}{WHOLE}disruption: {{maxUnavailable: 0}}"),
        ("Pool", f"{NODES}{WHOLE}taints: [{{key: nvidia.com/gpu}}]"),
        ("PriorityClass", "description: 5"),
        ("Tenant", "namespaces: [research]\nquotas: [{pool: a}]"),
        ("Workload", "training: {}\ncpu: 4"),
        ("Workload", "inference: {}\nconfig: {a.txt: 5}"),
    ],
)
def test_the_rest_is_a_policy(kind: str, fields: str) -> None:
    parsed = read(kind, fields)
    assert len(parsed.diagnostics) == 1
    assert parsed.policy is not None


def test_the_items_that_are_left_are_found_where_they_are_written() -> None:
    parsed = read(
        "Tenant",
        "namespaces: [research]\n"
        "quotas:\n"
        "  - {pool: first}\n"  # line 7
        "  - {pool: second, guaranteed: 1}\n"
        "  - {pool: third, guaranteed: -1}\n"
        "  - {pool: fourth, guaranteed: 1}\n"  # line 10
        "members: [5, {group: g, role: none}, {group: h, role: view}]\n",
    )
    assert parsed.policy is not None
    spec = parsed.policy.model_dump()["spec"]
    assert [quota["pool"] for quota in spec["quotas"]] == ["second", "fourth"]
    assert [member["group"] for member in spec["members"]] == ["h"]

    def line(*path: str | int) -> int:
        at = parsed.origin
        for part in ("spec", *path):
            at = at / part
        return at.locate().span.start.line

    assert [line("quotas", index, "pool") for index in range(2)] == [8, 10]
    assert line("members", 0, "role") == 11
    assert line("namespaces", 0) == 5
