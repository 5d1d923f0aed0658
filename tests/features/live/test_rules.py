"""Each rule of `gpuplan.features.live` is shown by a test beside this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Rule
from gpuplan.features.live.rules import RULES

TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_test_shows_the_rule(rule: Rule) -> None:
    assert f'"{rule.code}"' in TESTS
