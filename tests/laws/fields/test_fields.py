"""Each field of policies is traced, named in a diff, compared, read back and shown, or a list says why it is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.laws.fields.examples import FIELDS_ASKED, ORDER, example_of, set_on
from tests.laws.fields.questions import unanswered

REASONS: Final = Path(__file__).parent / "unanswered.yaml"
"""By question, the reasons and the fields that have each."""


@pytest.mark.parametrize("platform", ORDER)
def test_each_question_about_a_field_has_an_answer_or_a_reason(platform: str) -> None:
    fields = set_on(platform)
    found = {field: set(unanswered(example_of(field))) for field in fields}
    listed = {field: _allowed().get(field, set()) for field in fields}
    assert {field: found[field] - listed[field] for field in fields if found[field] - listed[field]} == {}
    assert {field: listed[field] - found[field] for field in fields if listed[field] - found[field]} == {}


def test_the_list_names_fields_of_policies_each_once_for_a_question() -> None:
    for question, reasons in _reasons().items():
        fields = [field for listed in reasons.values() for field in listed]
        assert {field for field in fields if fields.count(field) > 1 or field not in FIELDS_ASKED} == set(), question


def test_every_field_is_asked_about_on_one_platform() -> None:
    assert sorted(field for platform in ORDER for field in set_on(platform)) == sorted(FIELDS_ASKED)


@cache
def _allowed() -> Mapping[str, set[str]]:
    allowed: defaultdict[str, set[str]] = defaultdict(set)
    for question, reasons in _reasons().items():
        for fields in reasons.values():
            for field in fields:
                allowed[field].add(question)
    return allowed


@cache
def _reasons() -> Mapping[str, Mapping[str, Sequence[str]]]:
    reasons: Mapping[str, Mapping[str, Sequence[str]]] = yaml.safe_load(REASONS.read_text(encoding="utf-8"))
    return reasons
