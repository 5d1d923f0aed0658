"""What a mark of a field claims is so: a text that cannot be right makes the rule fire that the mark names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.policy.marks import Judged, find_mark
from gpuplan.compiler.policy.models import parts_of_language
from tests.laws.acting.acts import FIELDS
from tests.laws.acting.effects import effects_of
from tests.laws.fields.examples import ORDER, policies_of, texts_of
from tests.laws.tracing.policies import Edit, Policies

JUDGED: Final = {
    FIELDS[id(field)]: mark.code
    for model in parts_of_language()
    for field in model.model_fields.values()
    if id(field) in FIELDS and (mark := find_mark(field, Judged))
}
"""The rule that judges the texts of a field, by field."""

TEXTS: Final = ("Bad Text!! \u2603", "", "-" * 300, "a\tb\nc", "/", "0x-", "9" * 40, "(", "[")
"""Texts of which one is wrong wherever a text can be wrong."""

HOPELESS: Final = (*TEXTS, "$setElementOrder/containers", "managerConfig")
"""With keys that no patch of pods and no values of a scheduler's chart may have."""


def test_a_hopeless_text_makes_the_rule_fire_that_the_mark_names() -> None:
    assert {field: code for field, code in JUDGED.items() if not any(code in codes for codes in _codes(field))} == {}


def _codes(field: str) -> Iterator[set[str]]:
    """Yield the codes of what is found with each hopeless text as a value or as a key of the field."""
    for platform in ORDER:
        for scalar in texts_of(platform, field):
            for text in HOPELESS:
                edit = Edit(scalar.place, text, is_key=scalar.is_key)
                yield _found(policies_of(platform).edited([edit]))


def _found(policies: Policies) -> set[str]:
    return {words.split(" | ")[0] for words in effects_of(policies).said}
