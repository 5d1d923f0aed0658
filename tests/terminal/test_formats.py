"""Findings for other programs: each format is what its readers accept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, strategies as st
from junitparser import JUnitXml
from sarif_pydantic import Sarif
from syrupy.assertion import SnapshotAssertion

from gpuplan.compiler.base.diagnostics import (
    Diagnostic,
    Label,
    Location,
    Origin,
    Path as Route,
    Position,
    SourceFile,
    Span,
    field_path,
)
from gpuplan.compiler.pipeline import Report
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.terminal.ci import (
    MOST_COMMANDS,
    MOST_PLACES,
    MOST_RESULTS,
    escape_message,
    escape_property,
    fingerprints,
    junit,
    sarif,
)
from gpuplan.terminal.formats import Format, findings
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN, Theme, printable
from tests.terminal.builders import (
    DOES_NOT_FIT,
    FIT,
    LIMIT,
    MIXED,
    ODD_NAME,
    SHORT_LIMIT,
    a_diagnostic,
    a_report,
    at,
    whole,
)

EMPTY = a_report()
HOSTILE_TEXT = "a%b,c:d\r\ne\x1b[2J\x00\ud800\ufffe\u2028::error::日本<&>\"']]>"
HOSTILE = a_report(
    a_diagnostic(
        at("«a»: 1\n", file=f"policies/{HOSTILE_TEXT}.yaml"),
        HOSTILE_TEXT,
        label=HOSTILE_TEXT,
        related=(Label(at("«a»: 1\n"), HOSTILE_TEXT),),
        notes=(HOSTILE_TEXT,),
        help=HOSTILE_TEXT,
    ),
    clusters=(HOSTILE_TEXT,),
)
REPORTS = {"mixed": MIXED, "empty": EMPTY, "hostile": HOSTILE}


@pytest.mark.parametrize("format_", [item for item in Format if item is not Format.JUNIT])
def test_whole_output(format_: Format, snapshot: SnapshotAssertion) -> None:
    assert (
        re.sub(r'"version": "\d[^"]*",\n +"rules"', '"version": "VERSION", "rules"', findings(MIXED, format_, PLAIN))
        == snapshot
    )


@pytest.mark.parametrize("format_", Format)
@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_format_takes_every_report(format_: Format, report: Report, tmp_path: Path) -> None:
    text = findings(report, format_, PLAIN)

    (tmp_path / "report").write_text(text, encoding="utf-8")
    assert "\x1b" not in text


# --- JSON --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_json_is_as_its_schema_says(report: Report) -> None:
    jsonschema.Draft7Validator.check_schema(schema("findings"))

    jsonschema.validate(json.loads(findings(report, Format.JSON, PLAIN)), schema("findings"))


def test_json_gives_places_as_editors_count_them() -> None:
    (found,) = json.loads(findings(a_report(LIMIT), Format.JSON, PLAIN))["diagnostics"]

    assert found["location"] == {
        "file": "policies/tenants.yaml",
        "path": "spec.quotas[0].limit",
        "start": {"line": 4, "column": 44},
        "end": {"line": 4, "column": 45},
    }


def test_json_says_whether_the_policies_are_valid() -> None:
    assert json.loads(findings(MIXED, Format.JSON, PLAIN))["valid"] is False
    assert json.loads(findings(a_report(LIMIT), Format.JSON, PLAIN))["valid"] is True


@given(st.text())
def test_json_text_changes_nothing_but_halves_of_characters(text: str) -> None:
    whole_characters = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    assert json.loads(json_text([text])) == [whole_characters]


def test_json_text_keeps_what_only_looks_like_half_of_a_character() -> None:
    assert json.loads(json_text(["\\ud800 \U0001f600 \ud800"])) == ["\\ud800 \U0001f600 \ufffd"]


# --- GitHub ------------------------------------------------------------------------------------------------------


def test_github_gets_errors_first() -> None:
    lines = findings(a_report(LIMIT, FIT), Format.GITHUB, PLAIN).splitlines()

    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning"]


def test_github_gets_columns_only_for_a_single_line() -> None:
    one = findings(a_report(a_diagnostic(at("a: «b»\n"))), Format.GITHUB, PLAIN)
    several = findings(a_report(a_diagnostic(at("a: «{\n}»\n"))), Format.GITHUB, PLAIN)

    assert "line=1,endLine=1,col=4,endColumn=5," in one
    assert "line=1,endLine=2,title" in several


def test_github_gets_the_way_from_where_it_runs() -> None:
    assert "file=platform/policies/team.yaml," in findings(a_report(FIT), Format.GITHUB, Theme(root="platform/"))


def unescape(text: str) -> str:
    """As GitHub's runner reads a command."""
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, char)
    return text


@given(st.text())
def test_github_reads_back_what_was_escaped(text: str) -> None:
    assert unescape(escape_property(text)) == text
    assert not set(escape_property(text)) & set("\r\n:,")
    assert not set(escape_message(text)) & set("\r\n")


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_github_command_is_one_line_with_two_separators(path: str, message: str) -> None:
    text = findings(a_report(a_diagnostic(at("«a»\n", file=path), message)), Format.GITHUB, PLAIN)

    assert text.count("\n") == 1
    properties = re.fullmatch(r"::error file=([^:,\r\n]*),line=1,[^\r\n]*?::([^\r\n]*)\n", text)
    assert properties is not None
    assert unescape(properties[1]) == printable(path)
    assert unescape(properties[2]) == printable(message)


def test_github_gets_no_more_than_it_shows() -> None:
    lines = findings(a_report(*[LIMIT] * MOST_COMMANDS, FIT, FIT), Format.GITHUB, PLAIN).splitlines()

    assert len(lines) == MOST_COMMANDS + 1
    assert [line.split(" ")[0] for line in lines[:3]] == ["::error", "::error", "::warning"]
    assert lines[-1] == "::notice title=gpuplan::2 of 52 findings are not shown; `gpuplan validate` prints them all"
    assert len(findings(a_report(*[LIMIT] * MOST_COMMANDS), Format.GITHUB, PLAIN).splitlines()) == MOST_COMMANDS


# --- GitLab ------------------------------------------------------------------------------------------------------


def test_gitlab_gets_a_list_of_issues_with_different_fingerprints() -> None:
    issues = json.loads(findings(a_report(FIT, FIT, LIMIT), Format.GITLAB, PLAIN))

    assert [(issue["severity"], issue["location"]["lines"]["begin"]) for issue in issues] == [
        ("major", 4),
        ("major", 4),
        ("minor", 4),
    ]
    assert len({issue["fingerprint"] for issue in issues}) == 3
    assert issues[0]["description"] == "GPU203: layout `mixed` does not fit on H100-80GB: no free placement left"


# --- Fingerprints ------------------------------------------------------------------------------------------------


def test_a_fingerprint_outlives_lines_that_move_and_items_that_are_sorted() -> None:
    before = a_diagnostic(at("a: «4»\n", field=("spec", "quotas", 0)), "limit 4 of `research` is below 8")
    after = a_diagnostic(
        at("# new\n\nb: 1\na:   «4»\n", field=("spec", "quotas", 3)), "limit 4 of `research` is below 9"
    )

    assert fingerprints([before]) == fingerprints([after])


@pytest.mark.parametrize(
    "other",
    [
        a_diagnostic(at("a: «4»\n"), "`x` is wrong", rule=SHORT_LIMIT),
        a_diagnostic(at("a: «4»\n", file="policies/other.yaml"), "`x` is wrong"),
        a_diagnostic(at("a: «4»\n", field=("spec", "gpu")), "`x` is wrong"),
        a_diagnostic(at("a: «5»\n"), "`x` is wrong"),
        a_diagnostic(at("a: «4»\n"), "`y` is wrong"),
    ],
    ids=["rule", "file", "field", "text", "name"],
)
def test_a_fingerprint_tells_findings_apart_by(other: Diagnostic) -> None:
    one = a_diagnostic(at("a: «4»\n"), "`x` is wrong")

    assert fingerprints([one]) != fingerprints([other])


# --- SARIF -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_sarif_is_sarif(report: Report) -> None:
    log = Sarif.model_validate_json(findings(report, Format.SARIF, PLAIN))

    assert log.version == "2.1.0"
    assert len(log.runs[0].results or ()) == len(report.diagnostics)


def test_sarif_results_point_at_their_rules() -> None:
    (run,) = json.loads(findings(MIXED, Format.SARIF, PLAIN))["runs"]

    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["GPU001", "GPU203", "GPU401"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]


def test_sarif_places_are_urls_below_a_base_that_is_declared() -> None:
    report = a_report(a_diagnostic(at("«a»\n", file="policies/a b%é.yaml")))
    (run,) = json.loads(findings(report, Format.SARIF, PLAIN))["runs"]

    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "policies/a%20b%25%C3%A9.yaml", "uriBaseId": "SRCROOT"}
    assert artifact["uriBaseId"] in run["originalUriBaseIds"]


def test_sarif_names_a_file_elsewhere_absolutely() -> None:
    (run,) = json.loads(findings(a_report(FIT), Format.SARIF, Theme(root="/srv/platform/")))["runs"]

    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///srv/platform/policies/team.yaml"}


def test_sarif_leaves_out_what_code_scanning_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.terminal.ci.MOST_RESULTS", 2)
    log = sarif(a_report(LIMIT, FIT, FIT), PLAIN)
    (run,) = json.loads(log)["runs"]

    assert Sarif.model_validate_json(log).runs[0].invocations
    assert [result["ruleId"] for result in run["results"]] == ["GPU203", "GPU203"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["GPU203"]
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said["message"]["text"].startswith("1 of 3 findings are left out, the least severe ones;")


def test_sarif_leaves_out_nothing_unless_it_must() -> None:
    assert "invocations" not in json.loads(sarif(a_report(LIMIT, FIT), PLAIN))["runs"][0]
    assert (MOST_RESULTS, MOST_PLACES) == (25_000, 1_000)


def test_a_sarif_result_has_no_more_places_than_code_scanning_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.terminal.ci.MOST_PLACES", 3)
    many = a_diagnostic(at("«a»\n"), related=tuple(Label(at("«b»\n"), str(number)) for number in range(5)))
    ((result,),) = (run["results"] for run in json.loads(sarif(a_report(many), PLAIN))["runs"])

    assert len(result["locations"]) + len(result["relatedLocations"]) == 3


def test_sarif_names_addresses_that_there_are_and_invents_none() -> None:
    urls = {"Homepage": "https://example.com/", "Documentation": "https://example.com/docs/"}
    (named,) = json.loads(sarif(a_report(FIT), PLAIN, urls))["runs"]
    (nameless,) = json.loads(sarif(a_report(FIT), PLAIN, {}))["runs"]

    assert named["tool"]["driver"]["informationUri"] == "https://example.com/"
    assert named["tool"]["driver"]["rules"][0]["helpUri"] == "https://example.com/docs/rules/GPU203/"
    assert "informationUri" not in nameless["tool"]["driver"]
    assert "helpUri" not in nameless["tool"]["driver"]["rules"][0]


# --- JUnit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_junit_is_xml_that_readers_take(report: Report) -> None:
    xml = JUnitXml.fromstring(junit(report, PLAIN, (DOES_NOT_FIT, ODD_NAME)).encode())

    assert sum(len(suite) for suite in xml) == xml.tests


def test_junit_fails_on_errors_only() -> None:
    root = ET.fromstring(junit(a_report(FIT, LIMIT), PLAIN, ()).encode())

    assert root.get("failures") == "1"
    assert [(case.get("name"), [child.tag for child in case]) for case in root.iter("testcase")] == [
        ("GPU203 layout-does-not-fit: layout `mixed` does not fit on H100-80GB (spec.instances.1g.10gb)", ["failure"]),
        (
            "GPU401 limit-below-guarantee: limit 4 of tenant `research` is below its guarantee 8 (spec.quotas.limit)",
            ["system-out"],
        ),
    ]


def test_junit_shows_what_was_looked_for_and_not_found() -> None:
    root = ET.fromstring(junit(a_report(FIT), PLAIN, (DOES_NOT_FIT, ODD_NAME)).encode())

    rules = root.find("testsuite[@name='rules']")
    assert rules is not None
    assert [case.get("name") for case in rules] == ["GPU120 odd-name"]


def cases(*diagnostics: Diagnostic, theme: Theme = PLAIN) -> list[tuple[str | None, str | None]]:
    """What servers tell cases apart by: class and name."""
    xml = JUnitXml.fromstring(junit(a_report(*diagnostics), theme, ()).encode())
    return [(case.classname, case.name) for suite in xml for case in suite]


def test_junit_has_a_case_of_its_own_for_each_finding() -> None:
    found = cases(FIT, FIT, LIMIT, a_diagnostic(at("«a»\n", file="policies/other.yaml")))

    assert len(set(found)) == 4


def test_a_junit_case_outlives_lines_that_move_and_items_that_are_sorted() -> None:
    before = a_diagnostic(at("a: «4»\n", field=("spec", "quotas", 0)), "limit 4 of `research` is below 8")
    after = a_diagnostic(at("# new\n\na: «4»\n", field=("spec", "quotas", 3)), "limit 4 of `research` is below 8")

    assert cases(before) == cases(after)


def test_fixing_a_finding_ends_its_junit_case_and_no_other() -> None:
    others = [a_diagnostic(at("«a»\n", document=f"MigLayout {name}"), "3x `3g.40gb` do not fit") for name in "xyz"]

    assert set(cases(*others)) - set(cases(others[0], others[2])) == {*cases(others[1])}


def test_junit_names_files_from_where_it_runs() -> None:
    (case,) = ET.fromstring(junit(a_report(FIT), Theme(root="platform/"), ()).encode()).iter("testcase")

    assert case.get("classname") == "platform/policies/team"
    assert case.get("file") == "platform/policies/team.yaml"
    assert case.get("time") == "0"


def test_a_junit_failure_says_what_the_caret_does() -> None:
    (failure,) = ET.fromstring(junit(a_report(FIT), PLAIN, ()).encode()).iter("failure")

    assert failure.get("message") == "layout `mixed` does not fit on H100-80GB: no free placement left"


def test_junit_counts_add_up() -> None:
    root = ET.fromstring(junit(a_report(FIT, FIT, LIMIT, a_diagnostic(whole("x"))), PLAIN, ()).encode())

    assert root.attrib == {"name": "gpuplan", "tests": "4", "failures": "3", "errors": "0"}
    assert [suite.get("tests") for suite in root] == ["2", "1", "1"]


# --- Sources that are no YAML ------------------------------------------------------------------------------------


class Cell:
    """A source that is a table; its routes are a row and the name of a column."""

    title = ""

    def __init__(self, text: str) -> None:
        self._file = SourceFile("demand.csv", text)

    def locate(self, path: Route, *, on_key: bool = False) -> Location:
        row, column = path
        cells = self._file.lines[int(row)].split(",")
        index = self._file.lines[0].split(",").index(str(column))
        start = sum(len(cell) + 1 for cell in cells[:index]) + 1
        line = int(row) + 1
        span = Span(Position(line, start), Position(line, start + len(cells[index])))
        return Location(self._file, span, f"column {column}")


class Printed:
    """A source that another program printed: only the file and the object in it are known."""

    title = ""

    def locate(self, path: Route, *, on_key: bool = False) -> Location:
        return Location(SourceFile("nodes.json", ""), part=field_path(path))


CELL = Origin(Cell("team,pool,units\nscience,shared,8\nvision,shard,4\n"), (2, "pool"))
OTHERS = a_report(
    a_diagnostic(
        CELL,
        "unknown Pool `shard`",
        label="did you mean `shared`",
        related=(Label(Origin(Printed(), ("items", 3)), "this node is of `shared`"),),
    ),
    a_diagnostic(Origin(Printed(), ("items", 5)), "node has no label"),
    a_diagnostic(Origin(Printed(), ("items", 6)), "node has no label"),
)


@pytest.mark.parametrize("format_", Format)
def test_every_format_takes_places_that_are_no_yaml(format_: Format) -> None:
    text = findings(OTHERS, format_, PLAIN)

    assert "demand.csv" in text
    assert "nodes.json" in text


def test_people_read_of_a_cell_its_line_and_column() -> None:
    text = findings(OTHERS, Format.FULL, PLAIN)

    assert " --> demand.csv:3, column pool\n" in text
    assert "3 | vision,shard,4\n  |        ^^^^^ did you mean `shared`\n" in text
    assert " ::: nodes.json, items[3]\n" in text
    assert "<code>demand.csv:3, column pool</code>" in findings(OTHERS, Format.MARKDOWN, PLAIN)


def test_editors_jump_to_a_cell() -> None:
    first, second, *_ = findings(OTHERS, Format.CONCISE, PLAIN).splitlines()

    assert first.startswith("demand.csv:3:8: ")
    assert second.startswith("nodes.json:1:1: ")


def test_programs_get_a_cell_as_their_formats_say() -> None:
    jsonschema.validate(json.loads(findings(OTHERS, Format.JSON, PLAIN)), schema("findings"))
    log = Sarif.model_validate_json(sarif(OTHERS, PLAIN))
    region = json.loads(sarif(OTHERS, PLAIN))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]

    assert log.runs[0].results
    assert region == {"startLine": 3, "startColumn": 8, "endLine": 3, "endColumn": 13}
    assert "file=demand.csv,line=3,endLine=3,col=8,endColumn=13," in findings(OTHERS, Format.GITHUB, PLAIN)
    assert json.loads(findings(OTHERS, Format.GITLAB, PLAIN))[0]["location"]["lines"] == {"begin": 3, "end": 3}
    assert {suite.name for suite in JUnitXml.fromstring(junit(OTHERS, PLAIN, ()).encode())} == {
        "demand.csv",
        "nodes.json",
    }
    assert len({*fingerprints(OTHERS.diagnostics)}) == 3


def test_places_in_one_printed_file_are_several() -> None:
    assert len(tidy((*OTHERS.diagnostics, *OTHERS.diagnostics), ())) == 3
