"""The pages of what tenants tried have the requests that there are."""

from __future__ import annotations

import pytest

from gpuplan.compiler.admission import known_rules
from tests.cluster.attacks import KAI, KAI_FRACTIONS, KUEUE
from tests.cluster.lending import in_words
from tests.cluster.squatters import SQUATTERS
from tests.laws.tenancy.boundaries import ALL_PLATFORMS
from tests.laws.tenancy.proof import names, path, reclaim_path, rows
from tests.laws.tenancy.requests import escapes, legitimate

PAGES = [platform for platform in ALL_PLATFORMS if path(platform).is_file()]
"""Those that `make proof` has written so far."""


@pytest.mark.parametrize("platform", PAGES)
def test_the_page_has_every_row(platform: str) -> None:
    """`make proof` writes it."""
    found = rows(path(platform).read_text(encoding="utf-8"))

    assert [name for name in found if name not in known_rules()] == [
        *names(escapes(), platform),
        *names(legitimate(), platform),
    ]


PLAYED = {
    "kueue": [in_words(attack) for attack in (*KUEUE, *SQUATTERS)],
    "kai": [
        *map(in_words, (*KAI, *SQUATTERS)),
        *(f"{in_words(attack)}, with halves of GPUs" for attack in KAI_FRACTIONS),
    ],
}


@pytest.mark.parametrize("scheduler", [name for name in PLAYED if reclaim_path(name).is_file()])
def test_the_page_has_every_attack(scheduler: str) -> None:
    """`make proof` writes it."""
    assert rows(reclaim_path(scheduler).read_text(encoding="utf-8")) == PLAYED[scheduler]
