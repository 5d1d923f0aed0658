"""Debian's Chromium, and axe-core in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser, or skip the test where there is none."""
    if CHROMIUM is None:
        if os.environ.get("GPUPLAN_TEST_REQUIRE_CHROMIUM"):
            pytest.fail("GPUPLAN_TEST_REQUIRE_CHROMIUM is set, and no `chromium` is on the path")
        pytest.skip("no `chromium` is on the path: `apt-get install chromium` brings Debian's")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def grave_findings(page: Page) -> list[tuple[str, str, list[str]]]:
    """Return the rules of axe-core that a page breaks seriously, with two places of each."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (item["id"], item["impact"], [node["html"] for node in item["nodes"]][:2])
        for item in Axe().run(page).response["violations"]
        if item["impact"] in ("serious", "critical")
    ]
