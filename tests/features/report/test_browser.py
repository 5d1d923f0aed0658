"""The report in a browser: whoever cannot see, use a mouse or run scripts reads it, and nothing leaves it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuplan.compiler import pipeline
from gpuplan.features.report.views.page import report_page
from gpuplan.terminal.text import PLAIN
from tests.browsers import grave_findings
from tests.cli.runs import REPOSITORY
from tests.features.report.views.test_report import example_with, merge, wrong_values

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("report") / "report.html"
    found.write_text(report_page(pipeline.validate(REPOSITORY, ["dev", "prod"]), None, PLAIN), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A page with all that there is: what changes, costs and errors; and what programs are told of it."""
    folder = tmp_path_factory.mktemp("merge")
    edits = {"policies/layouts.yaml": ("1g.10gb: 7", "1g.10gb: 3"), "policies/pools/shared.yaml": (" 4\n", " 12\n")}
    text, documents = merge(example_with(folder / "was", "2", {}), example_with(folder / "is", "3", edits))
    (folder / "merge.html").write_text(text, encoding="utf-8")
    return folder / "merge.html", documents


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_nothing_serious_keeps_anybody_from_reading(browser: Browser, file: Path, width: int, scheme: str) -> None:
    judge(browser, file, width, scheme)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_nor_from_reading_what_changes(
    browser: Browser, merged: tuple[Path, dict[str, Any]], width: int, scheme: str
) -> None:
    judge(browser, merged[0], width, scheme)


def judge(browser: Browser, file: Path, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    asked, said = _listened(page)
    page.goto(file.as_uri())

    assert grave_findings(page) == []
    assert asked == [file.as_uri()]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_every_value_that_is_shown_is_one_that_programs_are_told(
    browser: Browser, merged: tuple[Path, dict[str, Any]]
) -> None:
    file, documents = merged
    page = browser.new_page()
    page.goto(file.as_uri())

    values = page.locator("[data-path], [data-share]").evaluate_all(
        """all => all.map(one => [
          Object.fromEntries([...one.attributes].map(at => [at.name, at.value])), one.textContent
        ])"""
    )
    page.close()
    assert len(values) > 600
    assert wrong_values(values, documents) == []


def test_drawings_of_nodes_cover_no_words(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    page.goto(file.as_uri())
    covered = page.evaluate(
        """() => [...document.querySelectorAll(".pictures svg")].flatMap(svg => {
          const boxes = [...svg.querySelectorAll("use, g[id]")].map(one => one.getBoundingClientRect());
          return [...svg.querySelectorAll("text")].filter(text => {
            const at = text.getBoundingClientRect();
            return boxes.some(box => at.left < box.right && box.left < at.right
              && at.top + 2 < box.bottom && box.top < at.bottom - 2);
          }).map(text => text.textContent);
        })"""
    )
    assert page.locator(".pictures svg use").count() > 5
    page.close()
    assert covered == []


def test_all_is_there_without_script(browser: Browser, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.get_by_role("heading", name="Cluster prod").is_visible()
    assert page.locator("#c1 svg[role=img]").first.is_visible()
    context.close()


def test_the_keyboard_skips_to_the_content(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    page.goto(file.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.close()


def test_prints_on_a_few_sheets(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    page.goto(file.as_uri())
    sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=True)))
    assert 3 <= sheets <= 12
    page.close()


def _listened(page: Page) -> tuple[list[str], list[str]]:
    """What the page asks for, and what it has to say of that."""
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return asked, said
