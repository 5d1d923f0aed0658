"""The pages of what tenants tried have the requests that there are."""

from __future__ import annotations

import pytest

from gpuplan.admission import known_rules
from tests.tenancy.boundaries import ALL_PLATFORMS
from tests.tenancy.proof import names, path, rows
from tests.tenancy.requests import escapes, legitimate

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
