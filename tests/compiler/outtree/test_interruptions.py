"""Whatever ends a build, and whatever the policies say by then: the next build ends as if nothing had happened."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.outtree import writing
from gpuplan.compiler.outtree.comparing import Action, FileChange, Reason, compare
from gpuplan.compiler.outtree.disk import IGNORE
from gpuplan.compiler.outtree.inventory import INVENTORY
from tests.compiler.outtree.building import Files, build, folders, put, read_all
from tests.compiler.outtree.faulty_os import BLOCK, FaultyOs, Killed

BIG = b"x" * (BLOCK + 1)
OLD = {
    "dev/same": b"1\n",
    "dev/changed": b"1\n",
    "dev/gone/a": b"1\n",
    "dev/big": BIG,
    "dev/file": b"1\n",
    "dev/folder/a": b"1\n",
}
NEW = {
    "dev/same": b"1\n",
    "dev/changed": b"2\n",
    "dev/new/a": b"2\n",
    "dev/big": BIG + b"2\n",
    "dev/file/a": b"2\n",
    "dev/folder": b"2\n",
}
OTHER = {"dev/same": b"3\n", "dev/changed": b"3\n", "dev/gone/a": b"3\n", "dev/new/b": b"3\n"}
CALLS = 60
"""More than a build from ``OLD`` to ``NEW`` makes."""


@contextmanager
def faulty_disk(*, many_folders: int = 64) -> Iterator[tuple[Path, FaultyOs]]:
    """A folder, and the stand-in for `os` that builds use meanwhile."""
    stand_in = FaultyOs()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "os", stand_in)
        patch.setattr(writing, "_BLOCK", BLOCK)
        patch.setattr(writing, "_MANY_FOLDERS", many_folders)
        yield Path(folder), stand_in


def build_killed(root: Path, desired: Files, faulty: FaultyOs, calls: int, *, force: bool = False) -> bool:
    """Build, but for a kill after so many calls; whether it came to that."""
    faulty.calls_left = calls
    try:
        build(root, desired, force=force)
    except Killed:
        return True
    finally:
        faulty.calls_left = 1 << 30
    return False


def assert_built(root: Path, desired: Files, others: Files) -> None:
    assert read_all(root) == {**desired, **others}
    assert compare(root, desired).is_clean
    assert not {folder for folder in folders(root) if not any((root / folder).iterdir())}


def test_the_number_of_calls_is_enough() -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        assert not build_killed(root, NEW, faulty, CALLS)
        assert faulty.calls_left > 0


@pytest.mark.parametrize("then", [OLD, NEW, OTHER, {}], ids=["back", "same", "other", "nothing"])
@pytest.mark.parametrize("calls", range(CALLS))
def test_a_build_after_one_that_was_killed(calls: int, then: Files) -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        put(root, "dev/theirs", "t")
        build_killed(root, NEW, faulty, calls)
        build(root, then)
        assert_built(root, then, {"dev/theirs": b"t"})


@pytest.mark.parametrize("calls", range(30))
def test_a_build_after_a_first_one_that_was_killed(calls: int) -> None:
    with faulty_disk() as (root, faulty):
        build_killed(root, OLD, faulty, calls)
        build(root, OTHER)
        assert_built(root, OTHER, {})


def added(root: Path) -> set[str]:
    """What `git add out` would commit."""
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=root, check=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True)
    return set(filter(None, listed.stdout.split("\0")))


@pytest.mark.parametrize("calls", range(CALLS))
def test_git_adds_nothing_that_a_killed_build_leaves_but_files_of_ours(calls: int) -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        build_killed(root, NEW, faulty, calls)
        assert added(root) <= OLD.keys() | NEW.keys() | {INVENTORY, IGNORE}


@pytest.mark.parametrize("calls", range(30))
def test_git_adds_nothing_that_a_killed_first_build_leaves_but_files_of_ours(calls: int) -> None:
    with faulty_disk() as (root, faulty):
        build_killed(root, OLD, faulty, calls)
        assert added(root) <= OLD.keys() | {INVENTORY, IGNORE}


def test_some_kill_leaves_a_file_that_git_must_not_add() -> None:
    """So that the tests above show something."""
    left = set()
    for calls in range(CALLS):
        with faulty_disk() as (root, faulty):
            build(root, OLD)
            build_killed(root, NEW, faulty, calls)
            left |= {path.name for path in (root / ".gpuplan").iterdir()}
    assert left == {"inventory", ".gitignore", "new"}


@given(st.data())
@settings(max_examples=100)
def test_a_build_after_kills_and_a_power_failure(data: st.DataObject) -> None:
    trees = st.sampled_from([OLD, NEW, OTHER, {}])
    with faulty_disk(many_folders=data.draw(st.sampled_from([1, 64]), "many folders")) as (root, faulty):
        build(root, OLD)
        put(root, "theirs", "t")
        for desired in data.draw(st.lists(trees, min_size=1, max_size=3), "builds"):
            build_killed(root, desired, faulty, data.draw(st.integers(0, CALLS), "killed after"))
        faulty.lose_power(lambda _, contents: contents[data.draw(st.integers(0, len(contents) - 1))])
        then = data.draw(trees, "then")
        build(root, then)
        assert read_all(root) == {**then, "theirs": b"t"}


def test_the_inventory_of_a_killed_build_is_on_the_disk_before_anything_follows_it() -> None:
    def lose_the_inventory_alone(path: Path, contents: list[bytes | None]) -> bytes | None:
        return min(contents, key=lambda data: len(data or b"")) if path.name == "inventory" else path.read_bytes()

    with faulty_disk() as (root, faulty):
        build(root, {})
        assert build_killed(root, OLD, faulty, calls=4)
        assert build_killed(root, OLD, faulty, calls=12)
        assert read_all(root)
        faulty.lose_power(lose_the_inventory_alone)
        build(root, {})
        assert read_all(root) == {}


names = st.sampled_from(["a", "b", "c/x", "c/y", "c/d/x", "e/x"])
contents = st.sampled_from([b"1\n", b"2\n", b"", BIG])
trees = st.dictionaries(names.map("dev/{}".format), contents)
others = st.dictionaries(names.map("{}.theirs".format) | names.map("dev/{}.theirs".format), st.just(b"t\n"))


@given(st.lists(st.tuples(trees, others, st.integers(0, CALLS)), max_size=6))
def test_any_builds_one_after_another_touch_only_what_is_ours(steps: list[tuple[Files, Files, int]]) -> None:
    theirs: dict[str, bytes] = {}
    with faulty_disk() as (root, faulty):
        for desired, appearing, calls in steps:
            for path, text in appearing.items():
                put(root, path, text)
                theirs[path] = text
            if not build_killed(root, desired, faulty, calls):
                assert read_all(root) == {**desired, **theirs}
                assert compare(root, desired).is_clean
        build(root, {})
        assert read_all(root) == theirs


def test_a_file_that_was_cut_short_is_written_again() -> None:
    with faulty_disk() as (root, _):
        build(root, {"dev/x": b"1\n", "dev/y": b"1\n"})
        put(root, "dev/x", b"")
        put(root, "dev/y", bytes(2))
        assert compare(root, {"dev/x": b"1\n"}).changes == (
            FileChange("dev/x", Action.UPDATE, Reason.TORN),
            FileChange("dev/y", Action.DELETE, Reason.UNWANTED),
        )


def test_a_file_that_was_cut_off_within_a_line_is_written_again(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x": b"a: 1\nb: 2\n"})
    put(tmp_path, "dev/x", "a: 1\nb:")
    assert compare(tmp_path, {"dev/x": b"a: 1\nb: 2\n"}).changes == (FileChange("dev/x", Action.UPDATE, Reason.TORN),)


@pytest.mark.parametrize("text", ["a: 1\n", "a: 1\nb: 2", "a: 1", "a: 1\nb: 3\n", "a: 1\nc"])
def test_a_file_from_which_lines_were_removed_is_an_edit(tmp_path: Path, text: str) -> None:
    build(tmp_path, {"dev/x": b"a: 1\nb: 2\n"})
    put(tmp_path, "dev/x", text)
    assert compare(tmp_path, {"dev/x": b"a: 1\nb: 2\n"}).conflicts[0].reason is Reason.EDITED


def test_text_in_an_encoding_with_zero_bytes_is_an_edit(tmp_path: Path) -> None:
    build(tmp_path, {"dev/x": b"a: 1\n"})
    put(tmp_path, "dev/x", "a: 2\n".encode("utf-16"))
    assert compare(tmp_path, {"dev/x": b"a: 1\n"}).conflicts[0].reason is Reason.EDITED


def test_an_edit_after_a_build_that_was_killed_is_still_a_conflict() -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        assert build_killed(root, NEW, faulty, 12)
        put(root, "dev/changed", "mine\n")
        assert [change.path for change in compare(root, NEW).conflicts] == ["dev/changed"]


@pytest.mark.parametrize("space", range(0, 1200, 40))
def test_a_full_disk_is_trouble(space: int) -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        faulty.space_left = space
        with pytest.raises(GpuplanError) as caught:
            build(root, NEW)
        assert caught.value.message.endswith(": no space left on device")
        assert caught.value.hint == "free some space, then run build again"
        faulty.space_left = 1 << 30
        build(root, OTHER)
        assert_built(root, OTHER, {})


@pytest.mark.parametrize("space", range(sum(map(len, OLD.values()))))
def test_a_full_disk_leaves_no_new_file_half_written(space: int) -> None:
    with faulty_disk() as (root, faulty):
        build(root, OLD)
        shutil.rmtree(root / "dev")
        faulty.space_left = space
        with pytest.raises(GpuplanError, match="no space left"):
            build(root, OLD)
        assert read_all(root).items() <= OLD.items()


@pytest.mark.parametrize("calls", range(30))
def test_a_build_of_another_cluster_after_one_that_was_killed_forgets_nothing(calls: int) -> None:
    with faulty_disk() as (root, faulty):
        build(root, {"dev/x": b"1\n", "dev/gone": b"1\n", "prod/x": b"1\n"})
        build_killed(root, {"dev/x": b"2\n", "prod/x": b"2\n"}, faulty, calls)
        build(root, {"prod/x": b"3\n"}, scope=["prod"])
        build(root, {"dev/x": b"4\n", "prod/x": b"4\n"})
        assert_built(root, {"dev/x": b"4\n", "prod/x": b"4\n"}, {})


@pytest.mark.parametrize("calls", range(20))
def test_what_was_forced_once_needs_no_force_again(calls: int) -> None:
    with faulty_disk() as (root, faulty):
        build(root, {"dev/x": b"1\n"})
        before = (root / INVENTORY).read_bytes()
        put(root, "dev/x", "mine\n")
        build_killed(root, {"dev/x": b"2\n"}, faulty, calls, force=True)
        is_announced = (root / INVENTORY).read_bytes() != before
        assert bool(compare(root, {"dev/x": b"3\n"}).conflicts) is not is_announced
