"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gpuplan import __version__
from gpuplan.diagnostics import Diagnostic, Origin, Rule, Severity
from gpuplan.views.fingerprint import fingerprints
from gpuplan.views.json_findings import json_text
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"
_HOME, _PAGES = "Homepage", "Documentation"
"""Names in `project.urls`; below the latter lies the site of docs/."""


MOST_RESULTS = 25_000
MOST_PLACES = 1_000
"""GitHub refuses a file with more in a run, or at a result:
https://docs.github.com/en/code-security/code-scanning/troubleshooting-sarif-uploads/results-exceed-limit."""


def sarif(report: Report, theme: Theme, urls: Mapping[str, str] = MappingProxyType({})) -> str:
    """A log with one run: the rules that found something, and their results.

    Where there are more than readers take, the least severe are left out and a notification says so. ``urls`` are those
    of `project_urls`.
    """
    marked = [*zip(report.diagnostics, fingerprints(report.diagnostics), strict=True)]
    if len(marked) > MOST_RESULTS:
        marked = sorted(marked, key=lambda item: [*Severity].index(item[0].severity))[:MOST_RESULTS]
    left_out = len(report.diagnostics) - len(marked)
    rules = sorted({item.code: item.rule for item, _ in marked}.items())
    indexes = {code: index for index, (code, _) in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "gpuplan",
                "version": __version__,
                **({"informationUri": urls[_HOME]} if _HOME in urls else {}),
                "rules": [_rule(rule, urls) for _, rule in rules],
            }
        },
        **({"invocations": [_invocation(left_out, len(report.diagnostics))]} if left_out else {}),
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that gpuplan was run in"}}},
        "results": [_result(item, indexes[item.code], fingerprint, theme) for item, fingerprint in marked],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def project_urls() -> dict[str, str]:
    """The addresses in `project.urls` of pyproject.toml, by name; whoever packages gpuplan may give none."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        listed = metadata("gpuplan").get_all("Project-URL") or ()
    except PackageNotFoundError:
        return {}
    return {name: url for name, _, url in (line.partition(", ") for line in listed)}


def _invocation(left_out: int, total: int) -> dict[str, Any]:
    text = f"{left_out} of {total} findings are left out, the least severe ones; `gpuplan validate` prints them all"
    notification = {"level": "warning", "message": {"text": text}}
    return {"executionSuccessful": True, "toolExecutionNotifications": [notification]}


def _rule(rule: Rule, urls: Mapping[str, str]) -> dict[str, Any]:
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
    finding = diagnostic.finding
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": diagnostic.severity.value,
        "message": {"text": _message(diagnostic)},
        "locations": [_location(finding.at, theme)],
        "relatedLocations": [
            {**_location(label.at, theme), "id": index, "message": {"text": label.text}}
            for index, label in enumerate(finding.related[: MOST_PLACES - 1])
        ],
        "partialFingerprints": {"gpuplan/v1": fingerprint},
    }


def _message(diagnostic: Diagnostic) -> str:
    finding = diagnostic.finding
    return "\n".join((finding.headline, *finding.notes, *([f"help: {finding.help}"] if finding.help else [])))


def _location(origin: Origin, theme: Theme) -> dict[str, Any]:
    location = origin.locate()
    start, end = location.span.start, location.span.end
    found: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(theme.path(location.file.path)),
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


def _artifact(path: str) -> dict[str, str]:
    """Where a file is: below the folder that gpuplan was run in, or anywhere on this machine."""
    uri = quote(path, errors="replace")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}
