"""Thousands of unknown fields in one mapping are one finding, with a count."""

from __future__ import annotations

from gpuplan.compiler.documents import read_text
from gpuplan.compiler.policy import Parsed, parse

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: a}}
spec:
  gpu: A100-80GB
  nodes: {{count: 1, gpusPerNode: {gpus}}}
  sharing: {{exclusive: {{}}}}
{more}
"""


def parsed(number: int, gpus: str = "8") -> Parsed:
    more = "".join(f"  x{index}: 1\n" for index in range(number))
    (document,), _ = read_text("policies/case.yaml", POOL.format(gpus=gpus, more=more))
    return parse(document)


def test_many_unknown_fields_are_one_finding_at_the_first() -> None:
    found = parsed(5_000)
    [item] = found.diagnostics
    assert item.code == "GPU030"
    assert item.finding.message == "`spec` has 5,000 unknown fields: `x0`, `x1`, `x2`, `x3` and 4996 more"
    assert item.finding.at.locate().span.start.line == 8
    assert found.policy is not None


def test_some_unknown_fields_are_a_finding_each() -> None:
    assert len(parsed(200).diagnostics) == 200


def test_what_else_is_wrong_is_said_beside_them() -> None:
    assert [item.code for item in parsed(5_000, gpus="x").diagnostics] == ["GPU030", "GPU032"]


def test_labels_are_no_unknown_fields() -> None:
    more = "  nodeLabels: {" + ", ".join(f"x{index}: a" for index in range(500)) + "}\n  unknown: 1"
    (document,), _ = read_text("policies/case.yaml", POOL.format(gpus="8", more=more))
    assert [item.finding.message for item in parse(document).diagnostics] == ["unknown field `unknown`"]
