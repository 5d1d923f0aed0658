"""What is said of a policy is of bounded length, whatever the policy holds."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.compiler.base.diagnostics import (
    LONGEST_TEXT,
    Finding,
    GpuplanError,
    Label,
    Origin,
    SourceFile,
    WholeFile,
    field_path,
    shortened,
)

HERE = Origin(WholeFile(SourceFile("a.yaml", "")))
LONG = "x" * 8_000_000


def test_a_long_value_is_cut_with_a_count() -> None:
    assert shortened(f"no pool `{LONG}` for `a`") == f"no pool `{'x' * 100}...` (8,000,000 characters) for `a`"


def test_a_name_as_long_as_kubernetes_takes_is_whole() -> None:
    text = f"namespace `{'x' * 253}` is unknown"
    assert shortened(text) == text


def test_a_long_text_is_cut_with_a_count() -> None:
    text = shortened(LONG)
    assert len(text) == LONGEST_TEXT
    assert text.endswith("xxx... (8,000,000 characters)")


def test_every_text_of_a_finding_is_cut_and_stays_as_it_is_when_cut_again() -> None:
    finding = Finding(HERE, LONG, LONG, (Label(HERE, LONG),), (LONG,), LONG)
    texts = (finding.message, finding.label, finding.related[0].text, *finding.notes, finding.help)
    assert {len(text) for text in texts} == {LONGEST_TEXT}
    assert replace(finding) == finding


def test_second_places_and_notes_are_cut_with_a_count() -> None:
    finding = Finding(HERE, "m", related=(Label(HERE, "a"),) * 1_000, notes=("n",) * 1_000)
    assert len(finding.related) == 50
    assert finding.notes == (*("n",) * 50, "950 more places")


def test_a_long_field_is_cut_in_a_path() -> None:
    assert field_path(("spec", LONG, 0)) == f"spec.{'x' * 100}...[0]"


def test_trouble_is_cut() -> None:
    error = GpuplanError(f"no cluster `{LONG}`", LONG)
    assert str(error) == error.message == f"no cluster `{'x' * 100}...` (8,000,000 characters)"
    assert len(error.hint) == LONGEST_TEXT


def test_a_place_is_reached_part_by_part_or_along_a_route() -> None:
    assert HERE / "spec" / "quotas" / 0 / "pool" == HERE / "spec" / ("quotas", 0, "pool")
    assert HERE / () == HERE
