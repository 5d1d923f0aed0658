"""The report: every number is one of `show`'s JSON, and nothing that a policy says is markup."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.views.showing import shown_plans
from gpuplan.compiler import pipeline
from gpuplan.features.changes.comparing import compare
from gpuplan.features.changes.views.diff import shown_diff
from gpuplan.features.report.views.page import report_page
from gpuplan.features.report.views.published import Published
from gpuplan.terminal.json_findings import json_findings
from gpuplan.terminal.text import PLAIN
from tests.cli.runs import REPOSITORY, run
from tests.git import a_repository, commit, git

VOID = {"meta", "link", "br", "rect", "line", "path", "circle", "use", "img"}


class Page(HTMLParser):
    """Texts with what the element around them, and those around it, say of where they are from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str, dict[str, str | None]]] = []
        self.values: list[Any] = []
        self.open: list[Any] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        found = dict(attrs)
        self.stack.append((tag, found))
        if "data-path" in found or "data-share" in found:
            self.open.append([found, ""])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        name, found = self.stack.pop()
        assert name == tag
        if "data-path" in found or "data-share" in found:
            self.values.append(self.open.pop())

    def handle_data(self, data: str) -> None:
        if any(tag in ("style", "script", "title", "desc") for tag, _ in self.stack):
            return
        for value in self.open:
            value[1] += data
        if not self.open:
            self.texts.append((data, self.stack[-1][0] if self.stack else "", {}))


def found(document: Any, way: str) -> Any:
    """What a way leads to: another reading of the same grammar."""
    if not re.search(r"[ *#\[]|^-", way):
        for step in way.split("/")[1:]:
            document = document[int(step) if isinstance(document, list) else step]
        return document
    total = 0
    for term in way.split(" "):
        sign, counted, route = re.fullmatch(r"(-?)(#?)(.*)", term).groups()  # type: ignore[union-attr]
        items: list[Any] = [int(route)] if route.isdigit() else [document]
        for step in [] if route.isdigit() else route.split("/")[1:]:
            if step == "*":
                items = [one for item in items for one in item]
            elif step.startswith("["):
                key, _, value = step[1:-1].partition("=")
                items = [one for item in items for one in item if one[key] == value]
            else:
                items = [item[int(step) if isinstance(item, list) else step] for item in items]
        total += (len(items) if counted else sum(items)) * (-1 if sign else 1)
    return total


def holds(text: str, value: Any) -> bool:
    if isinstance(value, str):
        is_end = text.startswith("\u2026") and value.endswith(text[1:])
        return is_end or text == value.replace("`", "")
    if value is None or isinstance(value, bool):
        return text == {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, list):
        return text.replace(" ", "") == ",".join(map(str, value)).replace(" ", "")
    digits = len(text.partition(".")[2])
    return bool(abs(float(text.replace(",", "")) - value) <= 0.5 * 10**-digits + 1e-9)


def wrong_values(values: Iterable[Any], documents: dict[str, Any]) -> list[tuple[str, str, Any]]:
    wrong = []
    for attributes, said in values:
        text = said.removesuffix("%")
        if share := attributes.get("data-share"):
            part, whole = share.split("|")
            value: Any = round(
                100 * found(documents[""], part) / float(found(documents[""], whole) if "/" in whole else 1)
            )
            way = share
        else:
            way = attributes["data-path"]
            name = re.match(r"[-#]*(\w+):", way)
            document = documents[name[1] if name else ""]
            value = found(document, re.sub(r"\w+:(?=/)", "", way))
            value = value / int(attributes.get("data-scale", 1)) if "data-scale" in attributes else value
        if not holds(text, value) and not text.endswith("\u2026"):
            wrong.append((way, text, value))
    return wrong


@pytest.fixture(scope="module")
def example() -> tuple[str, dict[str, Any]]:
    report = pipeline.validate(REPOSITORY)
    text = report_page(report, None, PLAIN)
    return text, {"": json.loads(shown_plans(report.plans, "json", PLAIN))}


def test_every_value_is_one_of_shows_json(example: tuple[str, dict[str, Any]]) -> None:
    text, documents = example
    page = Page(text)
    assert len(page.values) > 900
    assert wrong_values(page.values, documents) == []


def test_no_number_stands_without_its_place(example: tuple[str, dict[str, Any]]) -> None:
    page = Page(example[0])
    assert [text for text, tag, _ in page.texts if re.search(r"\d", text) and tag not in ("a", "h1")] == []


def test_equal_bytes_every_time(example: tuple[str, dict[str, Any]]) -> None:
    assert report_page(pipeline.validate(REPOSITORY), None, PLAIN) == example[0]


def test_loads_nothing(example: tuple[str, dict[str, Any]]) -> None:
    assert "default-src 'none'" in example[0]
    assert not re.search(r"<script|<link|<iframe|@import|url\((?!#gp-)|\ssrc=", example[0])


def test_names_and_numbers_of_ids_are_unique(example: tuple[str, dict[str, Any]]) -> None:
    ids = re.findall(r'\sid="([^"]+)"', example[0])
    assert len(ids) == len(set(ids))


def test_what_a_policy_says_is_never_markup(tmp_path: Path) -> None:
    overlay = tmp_path / "overlays" / "one"
    overlay.mkdir(parents=True)
    hostile = "<script>alert(1)</script>"
    (overlay / "cluster.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\nkind: Cluster\nmetadata: {name: one}\nspec:\n"
        '  kubernetes: "1.34"\n  gpuOperator: {install: helm, version: v26.7.0}\n---\n'
        f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: '{hostile}'}}\n"
        f"spec: {{namespaces: ['{hostile}']}}\n"
    )
    text = report_page(pipeline.validate(tmp_path), None, PLAIN)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


PRICES = """\
apiVersion: gpuplan.dev/v1
kind: Prices
metadata: {name: list}
spec:
  currency: EUR
  gpus: {A100-80GB: {perGpuHour: %s}, H100-80GB: {perGpuHour: 4}}
"""


def example_with(folder: Path, price: str, edits: dict[str, tuple[str, str]]) -> Path:
    """The example with prices, and with texts of its files replaced."""
    for name in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / name, folder / name)
    (folder / "policies/prices.yaml").write_text(PRICES % price)
    for name, (old, new) in edits.items():
        file = folder / name
        file.write_text(file.read_text().replace(old, new))
    return folder


def merge(before: Path, after: Path) -> tuple[str, dict[str, Any]]:
    """The page of prod in one folder, compared with another, and what programs are told of it."""
    report = pipeline.validate(after, ["prod"])
    diff = compare(after, ["prod"], against=str(before))
    assert diff.earlier.report
    return report_page(report, diff, PLAIN), {
        "": json.loads(shown_plans(report.plans, "json", PLAIN)),
        "findings": json.loads(json_findings(report, PLAIN)),
        "earlier": json.loads(shown_plans(diff.earlier.report.plans, "json", PLAIN)),
        "diff": json.loads(shown_diff(diff, "json", PLAIN)),
    }


def test_a_merge_is_drawn_before_and_after(tmp_path: Path) -> None:
    before = example_with(tmp_path / "before", "2", {})
    after = example_with(tmp_path / "after", "2", {"policies/layouts.yaml": ("1g.10gb: 7", "1g.10gb: 6")})

    text, documents = merge(before, after)

    assert wrong_values(Page(text).values, documents) == []
    assert (text.count("Before: GPUs"), text.count("After: GPUs")) == (1, 1)
    assert "two-step</dt><dd>in one step the change fails or hangs" in text
    assert "layout <code>seven-small</code> is edited" in text


RENAMED = {
    "policies/layouts.yaml": ("name: two-large", "name: two-big"),
    "policies/pools/partitioned.yaml": ("layout: two-large", "layout: two-big"),
}


def banner(page: str) -> str:
    """The verdict at the top of a page."""
    found = re.search(r'<p class="verdict [a-z]+">.*?</p>', page, re.DOTALL)
    assert found
    return found[0]


def test_the_banner_is_that_of_the_step_too(tmp_path: Path) -> None:
    text, documents = merge(example_with(tmp_path / "before", "2", {}), example_with(tmp_path / "after", "2", RENAMED))

    assert [finding["code"] for finding in documents["diff"]["findings"]] == ["GPU701"]
    assert documents["findings"]["summary"]["errors"] == 0
    assert banner(text).startswith('<p class="verdict error">The step has')
    assert '<a href="#step">read them</a>. The policies have no errors and no warnings.' in banner(text)
    assert '<h3 id="step">Findings about the step</h3>' in text
    assert wrong_values(Page(text).values, documents) == []


def test_a_step_without_findings_is_right_with_its_policies(tmp_path: Path) -> None:
    text, _ = merge(example_with(tmp_path / "before", "2", {}), example_with(tmp_path / "after", "3", {}))

    assert 'verdict clean">The policies and the step are right: no errors, no warnings.</p>' in text


def test_windows_are_in_words(example: tuple[str, dict[str, Any]]) -> None:
    assert ">a person starts it, within Saturdays 02:00-06:00 UTC</span>" in example[0]


def test_nodes_have_their_names_or_their_pattern(tmp_path: Path) -> None:
    pattern, names = "namePattern: gpu-a100-mixed-[0-9]+", "names: [gpu-1, gpu-a100-mixed-2]"
    edits = {"policies/pools/partitioned.yaml": (pattern, names)}
    before, after = example_with(tmp_path / "before", "2", {}), example_with(tmp_path / "after", "2", edits)

    text, documents = merge(before, after)

    assert re.search(r'/nodes/names/0">gpu-1</tspan>', text)
    assert re.search(r'/nodes/names/1">\u202600-mixed-2</tspan>', text)
    assert re.search(r'/nodes/name_pattern">gpu-a100-production-\[0-9\]\+</tspan>', text)
    assert wrong_values(Page(text).values, documents) == []


# --- The commit --------------------------------------------------------------------------------------------------


def head_of(root: Path) -> str:
    """The line below the title of the page of a platform."""
    run("report", "-c", "prod", "--output", "page.html", cwd=root)
    found = re.search(r'<p class="faint">Files at .*?</p>', (root / "page.html").read_text(encoding="utf-8"))
    return found[0] if found else ""


def test_the_head_says_the_commit_and_its_day(tmp_path: Path) -> None:
    root = a_repository(example_with(tmp_path / "platform", "2", {}))
    commit(root, "platform")
    late = re.sub(r"(committer .*>) .*", r"\1 1709278200 -0800", git(root, "cat-file", "commit", "HEAD"))
    (tmp_path / "commit").write_text(f"{late}\n", encoding="utf-8")
    digest = git(root, "hash-object", "-w", "-t", "commit", str(tmp_path / "commit"))
    git(root, "update-ref", "HEAD", digest)

    told = f"Files at commit <code>{digest[:12]}</code> of"
    assert f'{told} <time datetime="2024-02-29">2024-02-29</time>.</p>' in head_of(root)

    with (root / "policies/prices.yaml").open("a") as file:
        file.write("# another price\n")
    assert "2024-02-29</time>, with changes that are not committed.</p>" in head_of(root)


def test_a_file_that_is_no_policy_is_no_change(tmp_path: Path) -> None:
    root = example_with(tmp_path, "2", {})
    a_repository(root)
    commit(root, "platform")
    (root / "policies/notes.txt").write_text("later\n")

    assert "not committed" not in head_of(root)

    (root / "policies/new.yaml").write_text("# nothing yet\n")
    assert "not committed" in head_of(root)


def test_without_git_the_head_names_no_commit(tmp_path: Path) -> None:
    assert head_of(example_with(tmp_path, "2", {})) == ""


def test_a_merge_says_what_it_costs(tmp_path: Path) -> None:
    text, documents = merge(example_with(tmp_path / "before", "2", {}), example_with(tmp_path / "after", "1.5", {}))

    assert wrong_values(Page(text).values, documents) == []
    assert "What it costs, in EUR a month" in text
    assert re.search(r">29,200</span> EUR a month less\.", text)  # 80 GPUs, 730 hours, half a euro
    rows = [value for value, said in Page(text).values if "/costs/pools/" in (value.get("data-path") or "")]
    assert len([row for row in rows if row["data-path"].startswith("diff:")]) == 5 * 4


def test_one_of_a_kind_is_told_in_the_singular() -> None:
    page = run("report", "-c", "prod", cwd=REPOSITORY).out
    assert re.findall(r"<dt>(clusters?|pools?)</dt>", page) == ["cluster", "pools"]


def test_a_part_of_an_amount_and_a_count() -> None:
    published = Published({"": {"pools": [{"gpu": "A", "n": 2}, {"gpu": "B", "n": 3}]}})
    assert published.find("/pools/*/n") == 5
    assert published.find("/pools/[gpu=B]/n") == 3
    assert published.find("#/pools/* -1") == 1


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    done = run("report", "-c", "dev", "--output", str(tmp_path / "page.html"))
    assert done.code == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
