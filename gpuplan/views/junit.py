"""Findings as JUnit XML, which most CI servers show as tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from gpuplan.diagnostics import Diagnostic, Rule
from gpuplan.views.full import frame
from gpuplan.views.text import printable
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report


def junit(report: Report, theme: Theme, rules: Sequence[Rule] = ()) -> str:
    """A suite for each file with findings, and one with the rules that found nothing.

    Only errors are failures; a warning or note is a test that passes and has something to say.
    """
    suites = [
        _suite(theme.path(path), [_case(diagnostic, theme) for diagnostic in on_file])
        for path, on_file in groupby(report.diagnostics, key=lambda item: item.finding.at.locate().file.path)
    ]
    found = {diagnostic.code for diagnostic in report.diagnostics}
    quiet = [_element("testcase", name=_name(rule), classname="rules") for rule in rules if rule.code not in found]
    suites += [_suite("rules", quiet)] if quiet else []
    total = {key: str(sum(int(suite.get(key, "0")) for suite in suites)) for key in ("tests", "failures", "errors")}
    root = _element("testsuites", name="gpuplan", **total)
    root.extend(suites)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    failures = sum(case.find("failure") is not None for case in cases)
    suite = _element("testsuite", name=name, tests=str(len(cases)), failures=str(failures), errors="0")
    suite.extend(cases)
    return suite


def _case(diagnostic: Diagnostic, theme: Theme) -> ET.Element:
    path = diagnostic.finding.at.locate().file.path
    case = _element("testcase", name=_name(diagnostic.rule), classname=path.rpartition(".")[0] or path)
    if diagnostic.is_error:
        case.append(_element("failure", message=diagnostic.finding.message, type=diagnostic.severity.value))
    else:
        case.append(_element("system-out"))
    case[0].text = frame(diagnostic, Theme(width=theme.width, root=theme.root))
    return case


def _name(rule: Rule) -> str:
    return f"{rule.code} {rule.name}"


def _element(tag: str, **attributes: str) -> ET.Element:
    """An element; attributes may quote the policy, which may hold what XML cannot."""
    return ET.Element(tag, {key: printable(value) for key, value in attributes.items()})
