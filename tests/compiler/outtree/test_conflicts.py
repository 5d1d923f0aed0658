"""Nothing that somebody typed is overwritten or deleted, unless by force."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.compiler.outtree.comparing import Action, ChangeSet, FileChange, Reason, compare
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.outtree.reporting import diff, findings, has_conflict
from tests.compiler.outtree.building import build, put, read_all

EDITED = (FileChange("dev/x.yaml", Action.CONFLICT, Reason.EDITED),)
FOREIGN = (FileChange("dev/x.yaml", Action.CONFLICT, Reason.FOREIGN),)


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    build(tmp_path, {"dev/x.yaml": b"a: 1\n"})
    put(tmp_path, "dev/x.yaml", "a: 3\n")
    return tmp_path


def messages(changes: ChangeSet, *, check: bool = False) -> list[tuple[str, str]]:
    return [(found.code, found.finding.message) for found in findings(changes, check=check)]


def test_an_edited_file_is_a_conflict(edited: Path) -> None:
    assert compare(edited, {"dev/x.yaml": b"a: 1\n"}).changes == EDITED
    assert compare(edited, {"dev/x.yaml": b"a: 2\n"}).changes == EDITED


class TestLineEnds:
    """Git changes them on checkout; that is no edit."""

    @pytest.fixture
    def checked_out(self, tmp_path: Path) -> Path:
        build(tmp_path, {"dev/x.yaml": b"a: 1\nb: 2\n", "dev/y.yaml": b"a: 1\n"})
        for path in ("dev/x.yaml", "dev/y.yaml", INVENTORY):
            (tmp_path / path).write_bytes((tmp_path / path).read_bytes().replace(b"\n", b"\r\n"))
        return tmp_path

    def test_they_are_put_right(self, checked_out: Path) -> None:
        changes = build(checked_out, {"dev/x.yaml": b"a: 1\nb: 2\n", "dev/y.yaml": b"a: 2\n"})
        assert changes.changes == (
            FileChange("dev/x.yaml", Action.UPDATE, Reason.LINE_ENDS),
            FileChange("dev/y.yaml", Action.UPDATE, Reason.CHANGED),
        )
        assert read_all(checked_out) == {"dev/x.yaml": b"a: 1\nb: 2\n", "dev/y.yaml": b"a: 2\n"}
        assert b"\r" not in (checked_out / INVENTORY).read_bytes()

    def test_they_do_not_hide_an_edit(self, checked_out: Path) -> None:
        put(checked_out, "dev/x.yaml", b"a: 1\r\nb: 3\r\n")
        assert compare(checked_out, {"dev/x.yaml": b"a: 1\nb: 2\n"}).conflicts == EDITED

    def test_one_finding_says_so_of_all(self, checked_out: Path) -> None:
        changes = compare(checked_out, {"dev/x.yaml": b"a: 1\nb: 2\n", "dev/y.yaml": b"a: 1\n"})
        (found,) = findings(changes, check=True)
        assert (found.code, found.severity) == ("GPU904", "error")
        assert found.finding.message == (
            "`out/dev/x.yaml` and 1 more files have CRLF line ends, where gpuplan wrote LF"
        )
        assert found.finding.help == ("write `out/** -text` into .gitattributes, run `gpuplan build`, and commit both")

    def test_a_build_only_warns(self, checked_out: Path) -> None:
        (found,) = findings(compare(checked_out, {"dev/x.yaml": b"a: 1\nb: 2\n"}))
        assert (found.code, found.severity) == ("GPU904", "warning")


def test_an_edited_file_is_a_conflict_also_when_it_would_be_deleted(edited: Path) -> None:
    changes = compare(edited, {})
    assert changes.changes == EDITED
    assert [found.finding.notes for found in findings(changes)] == [
        ("it is no longer part of the output, and would be deleted",)
    ]


def test_an_edit_that_says_what_the_policy_says_now_is_none(edited: Path) -> None:
    assert compare(edited, {"dev/x.yaml": b"a: 3\n"}).changes == ()


def test_a_file_of_others_is_a_conflict(tmp_path: Path) -> None:
    put(tmp_path, "dev/x.yaml", "theirs\n")
    assert compare(tmp_path, {"dev/x.yaml": b"a: 1\n"}).changes == FOREIGN


def test_an_empty_file_of_others_is_a_conflict_too(tmp_path: Path) -> None:
    put(tmp_path, "dev/x.yaml", "")
    assert compare(tmp_path, {"dev/x.yaml": b"a: 1\n"}).changes == FOREIGN


def test_nothing_is_written_over_a_conflict(edited: Path) -> None:
    before = (edited / INVENTORY).read_bytes()
    with pytest.raises(ValueError, match=r"dev/x\.yaml was edited by hand"):
        build(edited, {"dev/x.yaml": b"a: 2\n", "dev/y.yaml": b"new\n"})
    assert read_all(edited) == {"dev/x.yaml": b"a: 3\n"}
    assert (edited / INVENTORY).read_bytes() == before


def test_force_overwrites_an_edited_file(edited: Path) -> None:
    build(edited, {"dev/x.yaml": b"a: 2\n"}, force=True)
    assert read_all(edited) == {"dev/x.yaml": b"a: 2\n"}
    assert compare(edited, {"dev/x.yaml": b"a: 2\n"}).is_clean


def test_force_deletes_an_edited_file(edited: Path) -> None:
    build(edited, {}, force=True)
    assert read_all(edited) == {}


def test_force_overwrites_a_file_of_others_that_is_in_the_way_and_no_other(tmp_path: Path) -> None:
    put(tmp_path, "dev/x.yaml", "theirs\n")
    put(tmp_path, "dev/y.yaml", "theirs\n")
    build(tmp_path, {"dev/x.yaml": b"a: 1\n"}, force=True)
    assert read_all(tmp_path) == {"dev/x.yaml": b"a: 1\n", "dev/y.yaml": b"theirs\n"}


def test_conflicts_are_findings_at_the_file_that_is_there(edited: Path) -> None:
    put(edited, "dev/z.yaml", "theirs\n")
    changes = compare(edited, {"dev/x.yaml": b"a: 2\n", "dev/z.yaml": b"b: 1\n"})
    assert messages(changes) == [
        ("GPU901", "`out/dev/x.yaml` was edited by hand since gpuplan wrote it"),
        ("GPU902", "`out/dev/z.yaml` exists, and gpuplan did not write it"),
    ]
    first = next(iter(findings(changes))).finding.at.locate()
    assert (first.file.path, first.file.text, first.span.start.line) == ("out/dev/x.yaml", "a: 3\n", 1)


def test_differences_are_findings_only_when_the_output_is_checked(tmp_path: Path) -> None:
    build(tmp_path, {"dev/old.yaml": b"1", "dev/x.yaml": b"2"})
    changes = compare(tmp_path, {"dev/new.yaml": b"3", "dev/x.yaml": b"4"})
    assert messages(changes) == []
    assert messages(changes, check=True) == [
        ("GPU903", "`out/dev/new.yaml` is not there yet"),
        ("GPU903", "`out/dev/old.yaml` is no longer part of the output"),
        ("GPU903", "`out/dev/x.yaml` is not what the policies say now"),
    ]


def test_a_lost_inventory_is_a_finding_when_the_output_is_checked(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x.yaml": b"1"})
    assert messages(compare(tmp_path, {"dev/x.yaml": b"1"}), check=True) == []
    (tmp_path / INVENTORY).unlink()
    assert messages(compare(tmp_path, {"dev/x.yaml": b"1"}), check=True) == [
        ("GPU903", "`out/.gpuplan/inventory` does not list the files that are there")
    ]


def test_the_diff_shows_each_change_and_what_force_would_undo(edited: Path) -> None:
    put(edited, "dev/binary", b"\xff\n")
    changes = compare(edited, {"dev/x.yaml": b"a: 2\n", "dev/y.yaml": b"new", "dev/binary": b"text\n"})
    assert list(diff(changes)) == [
        "--- a/out/dev/binary",
        "+++ b/out/dev/binary",
        "@@ -1 +1 @@",
        "-\N{REPLACEMENT CHARACTER}",
        "+text",
        "--- a/out/dev/x.yaml",
        "+++ b/out/dev/x.yaml",
        "@@ -1 +1 @@",
        "-a: 3",
        "+a: 2",
        "--- /dev/null",
        "+++ b/out/dev/y.yaml",
        "@@ -0,0 +1 @@",
        "+new",
        "\\ No newline at end of file",
    ]


def test_the_diff_of_a_deletion_ends_in_dev_null(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x.yaml": b"a: 1\nb: 2\n"})
    assert list(diff(compare(tmp_path, {}))) == [
        "--- a/out/dev/x.yaml",
        "+++ /dev/null",
        "@@ -1,2 +0,0 @@",
        "-a: 1",
        "-b: 2",
    ]


@pytest.mark.parametrize(
    ("data", "is_torn"),
    [
        (b"a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> other\n", True),
        (b"<<<<<<< HEAD\r\nb: 1\r\n=======\r\n>>>>>>> other\r\n", True),
        (b"=======\n<<<<<<< HEAD\n>>>>>>> other\n", False),
        (b"a: <<<<<<< HEAD\n=======\n>>>>>>> other\n", False),
        (b"<<<<<<< HEAD\n" * 100_000, False),
    ],
    ids=["a merge", "line ends of Windows", "out of order", "within a line", "many beginnings"],
)
def test_markers_of_a_merge_are_found_in_one_pass(data: bytes, is_torn: bool) -> None:
    assert has_conflict(data) is is_torn
