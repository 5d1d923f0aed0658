"""What a finding about a name proposes is what was meant."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import Finding
from tests.plans import resolve_text


def only(text: str) -> Finding:
    _, (found,) = resolve_text(text)
    return found.finding


def quota_on(unit: str, sharing: str) -> Finding:
    return only(
        f"""
        apiVersion: gpuplan.dev/v1
        kind: Pool
        metadata: {{name: a}}
        spec:
          gpu: A100-80GB
          nodes: {{count: 1, gpusPerNode: 8, namePattern: "gpu-[0-9]+"}}
          sharing: {sharing}
        ---
        apiVersion: gpuplan.dev/v1
        kind: Tenant
        metadata: {{name: t}}
        spec: {{namespaces: [t], quotas: [{{pool: a, unit: {unit}, guaranteed: 1}}]}}
        """
    )


@pytest.mark.parametrize(
    ("unit", "sharing", "meant"),
    [
        ("nvidia.com/mig-3g.40gb", "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}", "3g.40gb"),
        ("mig-3g.40gb", "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}", "3g.40gb"),
        ("1g.10gb.me", "{mig: {instances: {1g.10gb: 6, 1g.10gb+me: 1}}}", "1g.10gb+me"),
        ("3g.40gb.shared", "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}, timeSlicing: {replicas: 2}}}", "3g.40gb"),
        ("nvidia.com/gpu", "{mig: {instances: {1g.10gb: 7}, strategy: single}}", "1g.10gb"),
        ("nvidia.com/gpu.shared", "{timeSlicing: {replicas: 2}}", "shared"),
        ("3g40gb", "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}", "3g.40gb"),
        ("3g.40g", "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}", "3g.40gb"),
    ],
)
def test_a_resource_stands_for_the_unit_that_is_published_so(unit: str, sharing: str, meant: str) -> None:
    assert quota_on(unit, sharing).help == f"write `unit: {meant}`"


MIXED = "{mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}"
ADD = "add `{}` to the layout of pool `a`, or count another unit, in numbers of its own"
THE_ONE = "write `unit: {}`, and numbers of that unit; or name another pool"
ANOTHER = "count a unit that pool `a` hands out, in numbers of its own, or name another pool"


@pytest.mark.parametrize(
    ("unit", "sharing", "smallest", "help_"),
    [
        ("1g.10gb", MIXED, "2g.20gb", ADD.format("1g.10gb")),
        ("1g.20gb", MIXED, "2g.20gb", ADD.format("1g.20gb")),
        ("4g.40gb", MIXED, "3g.40gb", ADD.format("4g.40gb")),
        ("7g.80gb", MIXED, None, ADD.format("7g.80gb")),
        ("1g.5gb", MIXED, None, ANOTHER),
        ("gpu", MIXED, None, ANOTHER),
        ("3g.40gb", "{exclusive: {}}", "gpu", THE_ONE.format("gpu")),
        ("3g.40gb", "{timeSlicing: {replicas: 2}}", "shared", THE_ONE.format("shared")),
        ("3g.40gb", "{timeSlicing: {replicas: 3}}", None, THE_ONE.format("shared")),
    ],
)
def test_a_unit_that_is_not_handed_out_is_told_what_is_large_enough(
    unit: str, sharing: str, smallest: str | None, help_: str
) -> None:
    found = quota_on(unit, sharing)
    said = [note for note in found.notes if "the smallest of them" in note]
    assert said == ([] if smallest is None else [f"the smallest of them with the memory of `{unit}` is `{smallest}`"])
    assert found.help == help_


@pytest.mark.parametrize(
    ("gpu", "help_"),
    [
        ("A100", "write `A100-40GB` or `A100-80GB`"),
        ("a100-80gb", "write `A100-80GB`"),
        ("NVIDIA-H200", "write `H200-141GB`"),
    ],
)
def test_a_gpu_that_may_be_several_models_is_not_guessed(gpu: str, help_: str) -> None:
    layout = (
        f"apiVersion: gpuplan.dev/v1\nkind: MigLayout\nmetadata: {{name: l}}\nspec: {{gpu: {gpu}, instances: {{}}}}\n"
    )
    assert only(layout).help == help_


def test_names_that_are_wrong_by_the_thousand_are_not_compared_with_thousands() -> None:
    """Each comparison takes microseconds: all of these would take half a minute."""
    pools = "".join(A_POOL.replace("NAME", f"pool-{index}") for index in range(1000))
    quotas = ", ".join(f"{{pool: pol-{index}, guaranteed: 1}}" for index in range(2000))
    tenant = f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: t}}\nspec: {{quotas: [{quotas}]}}\n"

    _, found = resolve_text(pools + tenant)

    assert [item.finding.label for item in found[:1]] == ["did you mean `pool-0`"]
    assert found[-1].finding.label == "no such document on this cluster"
    assert len(found) == 2000


A_POOL = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: NAME}
spec:
  gpu: T4-16GB
  nodes: {count: 1, gpusPerNode: 1, namePattern: "NAME-[0-9]+"}
  sharing: {exclusive: {}}
---
"""


LAYOUT_AND_POOL = """
    apiVersion: gpuplan.dev/v1
    kind: MigLayout
    metadata: {{name: {layout}}}
    spec: {{gpu: A100-80GB, instances: {{3g.40gb: 2}}}}
    ---
    apiVersion: gpuplan.dev/v1
    kind: Pool
    metadata: {{name: a}}
    spec:
      gpu: A100-80GB
      nodes: {{count: 1, gpusPerNode: 8, namePattern: "gpu-[0-9]+"}}
      sharing: {{mig: {{layout: {wanted}}}}}
"""


def test_the_one_document_that_nothing_refers_to_may_have_been_renamed() -> None:
    found = only(LAYOUT_AND_POOL.format(layout="two-large", wanted="halves"))
    assert found.help == (
        "name `two-large`, to which nothing refers, if it was renamed; or add a MigLayout named `halves`"
    )


def test_a_document_that_another_one_refers_to_was_not_renamed() -> None:
    pool = LAYOUT_AND_POOL.format(layout="two-large", wanted="two-large")
    other = LAYOUT_AND_POOL.format(layout="", wanted="halves").split("---")[1].replace("name: a", "name: b")
    found = only(f"{pool}    ---{other.replace('gpu-[', 'other-[')}")
    assert found.help == "name `two-large`, or add a MigLayout named `halves`"


def test_a_variable_is_no_name() -> None:
    found = only(LAYOUT_AND_POOL.format(layout="two-large", wanted='"${LAYOUT}"'))
    assert found.help.startswith("policies have no variables")
