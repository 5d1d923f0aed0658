"""Selectors of labels choose what the API server would choose, and say nothing of operators that it would refuse."""

from __future__ import annotations

import pytest

from gpuplan.compiler.manifests.selectors import matches

LABELS = {"team": "vision", "tier": "", "generation": "8"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("team", "In", ["speech", "vision"], True),
        ("team", "In", ["speech"], False),
        ("other", "In", ["vision"], False),
        ("team", "NotIn", ["speech"], True),
        ("team", "NotIn", ["vision"], False),
        ("other", "NotIn", ["vision"], True),  # what has no such label is in no list
        ("tier", "Exists", None, True),
        ("other", "Exists", None, False),
        ("other", "DoesNotExist", None, True),
        ("tier", "DoesNotExist", None, False),
        ("generation", "Gt", ["7"], True),
        ("generation", "Gt", ["8"], False),
        ("generation", "Lt", ["+9"], True),
        ("generation", "Lt", ["-9"], False),
        ("team", "Gt", ["1"], False),  # no number is greater than none
        ("other", "Lt", ["1"], False),
        ("generation", "Gt", ["7", "8"], None),
        ("generation", "Gt", ["seven"], None),
        ("generation", "Gt", ["9223372036854775808"], None),  # no 64-bit integer
        ("team", "in", ["vision"], None),
        ("team", None, ["vision"], None),
    ],
)
def test_an_expression(key: str, operator: str | None, values: list[str] | None, expected: bool | None) -> None:
    assert matches({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}, LABELS) is expected


def test_an_empty_selector_matches_everything() -> None:
    assert matches({}, LABELS) is matches({"matchLabels": None, "matchExpressions": "x"}, {}) is True


def test_all_requirements_have_to_be_met() -> None:
    both = {"matchLabels": {"team": "vision"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}

    assert matches(both, LABELS) is True
    assert matches(both, {"team": "speech", "tier": ""}) is False
    assert matches(both, {"team": "vision"}) is False


@pytest.mark.parametrize(("team", "expected"), [("vision", None), ("speech", False)])
def test_a_requirement_that_nobody_can_judge_decides_if_no_other_does(team: str, expected: bool | None) -> None:
    assert matches({"matchLabels": {"team": team}, "matchExpressions": ["?"]}, LABELS) is expected
    assert matches({"matchLabels": {"team": team, "zone": "a"}}, LABELS, known=["team"]) is expected
