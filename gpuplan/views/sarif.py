"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gpuplan import __version__
from gpuplan.diagnostics import Diagnostic, Origin, Rule
from gpuplan.views.fingerprint import fingerprints
from gpuplan.views.json_findings import json_text
from gpuplan.views.theme import Theme

if TYPE_CHECKING:
    from gpuplan.pipeline import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"


def sarif(report: Report, theme: Theme) -> str:
    """A log with one run: the rules that found something, and their results."""
    rules = sorted({item.code: item.rule for item in report.diagnostics}.items())
    indexes = {code: index for index, (code, _) in enumerate(rules)}
    marked = zip(report.diagnostics, fingerprints(report.diagnostics), strict=True)
    run = {
        "tool": {
            "driver": {
                "name": "gpuplan",
                "version": __version__,
                "rules": [_rule(rule) for _, rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "the folder that gpuplan was run in"}}},
        "results": [_result(item, indexes[item.code], fingerprint, theme) for item, fingerprint in marked],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.docs, "markdown": rule.docs},
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
            for index, label in enumerate(finding.related)
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
