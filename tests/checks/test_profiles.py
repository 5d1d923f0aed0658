"""Profiles of MIG layouts: what a name that is spelt in another way stands for, and which stand beside each other."""

from __future__ import annotations

import pytest

from gpuplan.compiler.checks.profiles import media_instance_beside_plain, unreadable_profile
from tests.checks.found import only
from tests.platforms import a_platform, pool


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("nvidia.com/mig-3g.40gb", "did you mean `3g.40gb`"),
        ("mig-1g.10gb.me", "did you mean `1g.10gb+me`"),
        ("1g.10gb_ME", "did you mean `1g.10gb+me`"),
        ("all-1g.10gb", "did you mean `1g.10gb`"),
        ("2g-20gb", "did you mean `2g.20gb`"),
        ("2g20", "did you mean `2g.20gb`"),
        ("2 g 20 gib", "did you mean `2g.20gb`"),
        ("1c-3g-40gb", "did you mean `3g.40gb`"),
        ("3g-20gb", "not `<slices>g.<memory>gb`"),
        ("80gb", "did you mean `7g.80gb`"),
        ("10 GiB", "did you mean `1g.10gb`"),
        ("20gb", "not `<slices>g.<memory>gb`"),
        ("30gb", "not `<slices>g.<memory>gb`"),
        ("3x40", "did you mean `3g.40gb`"),
        ("3x41", "not `<slices>g.<memory>gb`"),
        ("half", "not `<slices>g.<memory>gb`"),
    ],
)
def test_what_was_meant(written: str, label: str) -> None:
    plan = a_platform(pool("p", f'mig: {{instances: {{"{written}": 1}}}}'))
    assert only(unreadable_profile.find(plan)).label == label


@pytest.mark.parametrize(
    ("instances", "number"),
    [
        ("1g.10gb+me: 1", 0),
        ("1g.10gb+me: 1, 1g.10gb: 0", 0),
        ("1g.10gb+me: 1, 1g.10gb: 1", 1),
        ("1g.10gb+me: 1, 2g.20gb: 1", 0),
    ],
)
def test_media_engines_beside_the_same_without_are_told(instances: str, number: int) -> None:
    plan = a_platform(pool("p", f"mig: {{instances: {{{instances}}}}}"))
    assert len(list(media_instance_beside_plain.find(plan))) == number
