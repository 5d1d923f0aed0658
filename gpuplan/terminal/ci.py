"""Findings for CI servers: GitHub's commands, GitLab's code quality, SARIF 2.1.0 and JUnit XML."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from gpuplan.compiler.base.diagnostics import Diagnostic, Origin, Rule, Severity, shortened
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.version import __version__
from gpuplan.compiler.pipeline import rules
from gpuplan.terminal.full import frame
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.text import Theme, printable

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline import Report

_ORDER: Final = tuple(Severity)

# --- GitHub ------------------------------------------------------------------------------------------------------

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
MOST_COMMANDS: Final = 50
"""Findings shown. GitHub shows ten of each kind in a step and fifty in a job; others would only fill the log."""


def github(report: Report, theme: Theme) -> str:
    """A command for each finding, errors first, and one that says how many there is no room for.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    worst_first = sorted(report.diagnostics, key=lambda diagnostic: _ORDER.index(diagnostic.severity))
    commands = [_command(diagnostic, theme) for diagnostic in worst_first[:MOST_COMMANDS]]
    total = len(worst_first)
    if total > MOST_COMMANDS:
        text = f"{total - MOST_COMMANDS} of {total} findings are not shown; `gpuplan validate` prints them all"
        commands.append(f"::notice title=gpuplan::{escape_message(text)}")
    return "".join(f"{command}\n" for command in commands)


def _command(diagnostic: Diagnostic, theme: Theme) -> str:
    location = diagnostic.finding.at.locate()
    place = {"line": str(location.span.start.line), "endLine": str(location.span.end.line)}
    if location.span.start.line == location.span.end.line:  # else GitHub refuses an annotation with columns
        place |= {"col": str(location.span.start.column), "endColumn": str(location.span.end.column)}
    properties = {
        "file": printable(theme.path(location.file.path)),
        **place,
        "title": f"{diagnostic.code} {diagnostic.rule.name}",
    }
    written = ",".join(f"{key}={escape_property(value)}" for key, value in properties.items())
    finding = diagnostic.shown
    lines = [finding.headline, *(line for note in finding.notes for line in f"note: {note}".split("\n"))]
    lines += [f"help: {finding.help}"] if finding.help else []
    text = escape_message("\n".join(map(printable, lines)))
    return f"::{_COMMANDS[diagnostic.severity]} {written}::{text}"


def escape_message(text: str) -> str:
    """As the runner's own toolkit escapes: a line end would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")


# --- GitLab ------------------------------------------------------------------------------------------------------

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: Report, theme: Theme) -> str:
    """A list of issues; https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""
    marked = zip(report.diagnostics, fingerprints(report.diagnostics), strict=True)
    return json_text([_issue(diagnostic, fingerprint, theme) for diagnostic, fingerprint in marked])


def _issue(diagnostic: Diagnostic, fingerprint: str, theme: Theme) -> dict[str, Any]:
    location = diagnostic.finding.at.locate()
    return {
        "description": f"{diagnostic.code}: {diagnostic.shown.headline}",
        "check_name": diagnostic.rule.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[diagnostic.severity],
        "location": {
            "path": theme.path(location.file.path),
            "lines": {"begin": location.span.start.line, "end": location.span.end.line},
        },
    }


# --- SARIF -------------------------------------------------------------------------------------------------------

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"
_HOME, _PAGES = "Homepage", "Documentation"
"""Names in `project.urls`; below the latter lies the site of docs/."""


MOST_RESULTS = 25_000
MOST_PLACES = 1_000
"""GitHub refuses a file with more in a run, or at a result:
https://docs.github.com/en/code-security/code-scanning/troubleshooting-sarif-uploads/results-exceed-limit."""


def sarif(report: Report, theme: Theme, urls: Mapping[str, str] | None = None) -> str:
    """Return a log with one run: the rules that found something, and their results.

    If there are more than readers take, the least severe are left out and a notification says so. ``urls`` are the
    project's addresses, or None for those of `project_urls`.
    """
    urls = project_urls() if urls is None else urls
    marked = [*zip(report.diagnostics, fingerprints(report.diagnostics), strict=True)]
    if len(marked) > MOST_RESULTS:
        marked = sorted(marked, key=lambda pair: _ORDER.index(pair[0].severity))[:MOST_RESULTS]
    left_out = len(report.diagnostics) - len(marked)
    broken = sorted({item.code: item.rule for item, _ in marked}.items())
    indexes = {code: index for index, (code, _) in enumerate(broken)}
    run = {
        "tool": {
            "driver": {
                "name": "gpuplan",
                "version": __version__,
                **({"informationUri": urls[_HOME]} if _HOME in urls else {}),
                "rules": [_sarif_rule(rule, urls) for _, rule in broken],
            }
        },
        **({"invocations": [_invocation(left_out, len(report.diagnostics))]} if left_out else {}),
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that gpuplan was run in"}}},
        "results": [_result(item, indexes[item.code], fingerprint, theme) for item, fingerprint in marked],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def project_urls() -> dict[str, str]:
    """Return the addresses in `project.urls` of pyproject.toml by name; whoever packages gpuplan may give none."""
    try:
        listed = metadata.metadata("gpuplan").get_all("Project-URL") or ()
    except metadata.PackageNotFoundError:
        return {}
    return {name: url for name, _, url in (line.partition(", ") for line in listed)}


def _invocation(left_out: int, total: int) -> dict[str, Any]:
    text = f"{left_out} of {total} findings are left out, the least severe ones; `gpuplan validate` prints them all"
    notification = {"level": "warning", "message": {"text": text}}
    return {"executionSuccessful": True, "toolExecutionNotifications": [notification]}


def _sarif_rule(rule: Rule, urls: Mapping[str, str]) -> dict[str, Any]:
    page = {"helpUri": f"{urls[_PAGES].rstrip('/')}/rules/{rule.code}/"} if _PAGES in urls else {}
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.docs, "markdown": rule.docs},
        **page,
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(diagnostic: Diagnostic, rule_index: int, fingerprint: str, theme: Theme) -> dict[str, Any]:
    finding = diagnostic.shown
    help_ = [f"help: {finding.help}"] if finding.help else []
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": diagnostic.severity.value,
        "message": {"text": "\n".join((finding.headline, *finding.notes, *help_))},
        "locations": [_location(finding.at, theme)],
        "relatedLocations": [
            {**_location(label.at, theme), "id": index, "message": {"text": label.text}}
            for index, label in enumerate(finding.related[: MOST_PLACES - 1])
        ],
        "partialFingerprints": {"gpuplan/v1": fingerprint},
    }


def _location(origin: Origin, theme: Theme) -> dict[str, Any]:
    location = origin.locate()
    start, end = location.span.start, location.span.end
    path = theme.path(location.file.path)
    uri = quote(path, errors="replace")
    found: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": _ROOT},
            "region": {
                "startLine": start.line,
                "startColumn": start.column,
                "endLine": end.line,
                "endColumn": end.column,
            },
        }
    }
    if origin.path:
        found["logicalLocations"] = [{"fullyQualifiedName": str(origin)}]
    return found


# --- The same in the next run ------------------------------------------------------------------------------------

_NAMED = regex("`([^`]*)`")


def fingerprints(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """One for each finding, all different.

    It is made of the rule, the file, the field, the text there and the names in the message: not of lines, nor of
    list indexes or numbers in words, so that neither a comment above nor a sorted list opens an alert again.
    """
    seen: Counter[str] = Counter()
    found = []
    for diagnostic in diagnostics:
        finding = diagnostic.shown
        location = finding.at.locate()
        start, end = location.span.start, location.span.end
        line = location.file.confidential.line(start.line)
        marked = line[start.column - 1 : end.column - 1 if end.line == start.line else None]
        field = ".".join(part for part in finding.at.path if isinstance(part, str))
        identity = "\0".join(
            (diagnostic.code, location.file.path, field, marked.strip(), *_NAMED.findall(finding.message))
        )
        found.append(hashlib.sha256(f"{identity}\0{seen[identity]}".encode(errors="replace")).hexdigest()[:32])
        seen[identity] += 1
    return found


# --- JUnit -------------------------------------------------------------------------------------------------------


def junit(report: Report, theme: Theme, judged: Sequence[Rule] | None = None) -> str:
    """Return a suite for each file with findings, and one with the rules that found nothing: ``judged``, or all.

    Only errors are failures; a warning or note is a test that passes and has something to say.
    """
    named = zip(report.diagnostics, _names(report.diagnostics), strict=True)
    suites = [
        _suite(theme.path(path), [_case(diagnostic, name, theme) for diagnostic, name in on_file])
        for path, on_file in groupby(named, key=lambda pair: _path(pair[0]))
    ]
    found = {diagnostic.code for diagnostic in report.diagnostics}
    quiet = [
        _element("testcase", name=_title(rule), classname="rules", time="0")
        for rule in (rules() if judged is None else judged)
        if rule.code not in found
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
        name = printable(f"{_title(diagnostic.rule)}: {diagnostic.shown.message}{f' ({place})' if place else ''}")
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
        case.append(_element("failure", message=diagnostic.shown.headline, type=diagnostic.severity.value))
    else:
        case.append(_element("system-out"))
    case[0].text = frame(diagnostic, Theme(width=theme.width, root=theme.root))
    return case


def _title(rule: Rule) -> str:
    return f"{rule.code} {rule.name}"


def _element(tag: str, **attributes: str) -> ET.Element:
    """An element; attributes may quote the policy, which may hold what XML cannot."""
    return ET.Element(tag, {key: printable(value) for key, value in attributes.items()})
