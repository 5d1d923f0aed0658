"""Each rule of `gpuplan pack` is shown by a test of this folder, or of the laws on packing."""

from __future__ import annotations

from pathlib import Path

from gpuplan.features.packing.rules import RULES

FOLDERS = Path(__file__).parent, Path(__file__).parents[2] / "laws" / "packing"
TESTS = "".join(path.read_text(encoding="utf-8") for folder in FOLDERS for path in folder.rglob("test_*.py"))


def test_a_test_shows_each_rule() -> None:
    assert [rule.code for rule in RULES if f'"{rule.code}"' not in TESTS] == []
