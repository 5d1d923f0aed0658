"""What a build did, in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpuplan.cli.views.changes import colored_diff, every_change, summary
from gpuplan.compiler.outtree.comparing import ChangeSet, compare
from gpuplan.compiler.outtree.writing import apply
from gpuplan.terminal.text import PLAIN, Theme


def changes(root: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> ChangeSet:
    apply_all(root, before)
    return compare(root, after)


def apply_all(root: Path, tree: Mapping[str, bytes]) -> None:
    (root / ".gpuplan").mkdir(parents=True, exist_ok=True)
    apply(root, compare(root, tree))


def test_nothing_changed(tmp_path: Path) -> None:
    assert summary(changes(tmp_path, {"a": b"1\n"}, {"a": b"1\n"}), "out") == "out/ is current (1 file)\n"


def test_what_changed_is_counted_and_listed(tmp_path: Path) -> None:
    found = changes(
        tmp_path, {"a": b"1\n", "b": b"1\n", "c": b"1\n"}, {"a": b"1\n", "b": b"2\n", "d": b"1\n", "e": b"1\n"}
    )

    assert summary(found, "out") == "2 created, 1 changed, 1 deleted in out/ (4 files)\n"
    assert every_change(found, "out").splitlines() == [
        "changed     out/b",
        "deleted     out/c",
        "created     out/d",
        "created     out/e",
    ]


def test_what_was_forced_is_named(tmp_path: Path) -> None:
    apply_all(tmp_path, {"a": b"1\n", "b": b"1\n"})
    (tmp_path / "a").write_bytes(b"by hand\n")
    (tmp_path / "b").write_bytes(b"by hand\n")

    assert summary(compare(tmp_path, {"a": b"2\n"}), "out") == "1 deleted, 1 overwritten in out/ (1 file)\n"


def test_a_diff_is_coloured_line_by_line() -> None:
    lines = ["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", " same"]

    assert colored_diff(lines, PLAIN) == "".join(f"{line}\n" for line in lines)
    assert colored_diff(lines, Theme(color=True)).splitlines()[3:] == [
        "\x1b[31m-old\x1b[0m",
        "\x1b[32m+new\x1b[0m",
        " same",
    ]


def test_a_diff_steers_neither_terminals_nor_ci_servers() -> None:
    lines = ["+a: \x1b[31m", "-##[set-output name=a]b", "   ::error::x"]

    assert colored_diff(lines, PLAIN) == "+a: ␛[31m\n-#\u266f[set-output name=a]b\n   \ua789:error::x\n"
