"""Each rule of `gpuplan.adoption` is shown by a test beside this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.adoption.rules import RULES
from gpuplan.diagnostics import Rule

TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_test_shows_the_rule(rule: Rule) -> None:
    assert f'"{rule.code}"' in TESTS
