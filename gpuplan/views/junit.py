"""Findings as JUnit XML, which most CI servers show as tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpuplan.diagnostics import Diagnostic, Rule, shortened
from gpuplan.views.full import frame
from gpuplan.views.text import printable
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report


def junit(report: Report, theme: Theme, rules: Sequence[Rule] = ()) -> str:
    """A suite for each file with findings, and one with the rules that found nothing.

    Only errors are failures; a warning or note is a test that passes and has something to say.
    """
    named = zip(report.diagnostics, _names(report.diagnostics), strict=True)
    suites = [
        _suite(theme.path(path), [_case(diagnostic, name, theme) for diagnostic, name in on_file])
        for path, on_file in groupby(named, key=lambda item: _path(item[0]))
    ]
    found = {diagnostic.code for diagnostic in report.diagnostics}
    quiet = [
        _element("testcase", name=_rule(rule), classname="rules", time="0") for rule in rules if rule.code not in found
    ]
    suites += [_suite("rules", quiet)] if quiet else []
    total = {key: str(sum(int(suite.get(key, "0")) for suite in suites)) for key in ("tests", "failures", "errors")}
    root = _element("testsuites", name="gpuplan", **total)
    root.extend(suites)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _names(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """One for each finding, all different in a file, and the same in the next run although lines have moved.

    Servers tell cases apart by class and name, and take one that they know for the same case: GitLab's is
    `lib/gitlab/ci/reports/test_case.rb`. So neither lines nor list indexes are part of a name, and only findings that
    nothing else tells apart are numbered.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for diagnostic in diagnostics:
        at = diagnostic.finding.at
        route = (at.source.title, ".".join(part for part in at.path if isinstance(part, str)))
        place = shortened(" ".join(filter(None, route)))
        name = printable(f"{_rule(diagnostic.rule)}: {diagnostic.finding.message}{f' ({place})' if place else ''}")
        seen[_path(diagnostic), name] += 1
        number = seen[_path(diagnostic), name]
        found.append(f"{name} #{number}" if number > 1 else name)
    return found


def _path(diagnostic: Diagnostic) -> str:
    return diagnostic.finding.at.locate().file.path


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    failures = sum(case.find("failure") is not None for case in cases)
    suite = _element("testsuite", name=name, tests=str(len(cases)), failures=str(failures), errors="0")
    suite.extend(cases)
    return suite


def _case(diagnostic: Diagnostic, name: str, theme: Theme) -> ET.Element:
    path = theme.path(_path(diagnostic))
    case = _element("testcase", name=name, classname=path.rpartition(".")[0] or path, file=path, time="0")
    if diagnostic.is_error:
        case.append(_element("failure", message=diagnostic.finding.headline, type=diagnostic.severity.value))
    else:
        case.append(_element("system-out"))
    case[0].text = frame(diagnostic, Theme(width=theme.width, root=theme.root))
    return case


def _rule(rule: Rule) -> str:
    return f"{rule.code} {rule.name}"


def _element(tag: str, **attributes: str) -> ET.Element:
    """An element; attributes may quote the policy, which may hold what XML cannot."""
    return ET.Element(tag, {key: printable(value) for key, value in attributes.items()})
