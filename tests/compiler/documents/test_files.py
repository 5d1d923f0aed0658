"""Folders are read in the order of their names, and nothing on the disk makes reading hang or fail unexplained."""

from __future__ import annotations

import inspect
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.documents import find_folders, has_folder, read_folder, read_manifests, read_text, repair
from gpuplan.compiler.documents.files import Read
from tests.compiler.documents.reading import describe


def write(root: Path, path: str, text: str | bytes) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return target


def paths(read: Read) -> list[str]:
    documents, diagnostics = read
    assert describe(diagnostics) == []
    return [document.file.path for document in documents]


def findings(read: Read) -> list[tuple[str, str, str]]:
    """File, code and message of each finding; reading has to have gone on to the file that is fine."""
    documents, diagnostics = read
    assert [document.file.path for document in documents] == ["policies/zz.yaml"]
    return [(item.finding.at.locate().file.path, item.code, item.finding.message) for item in diagnostics]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "repository/policies/zz.yaml", "a: 1\n")
    return tmp_path / "repository"


def test_files_are_read_in_the_order_of_their_names_whatever_their_folders(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/b/c.yaml", "c.YAML", "B.yaml", "a.yaml"):
        write(tmp_path, f"policies/{name}", "a: 1\n")
    assert paths(read_folder(tmp_path, "policies")) == [
        "policies/B.yaml",
        "policies/a/b/c.yaml",
        "policies/a/z.yml",
        "policies/a.yaml",
        "policies/b.yaml",
        "policies/c.YAML",
    ]


def test_hidden_and_other_files_are_passed_over(root: Path) -> None:
    for name in (".hidden.yaml", ".git/a.yaml", "README.md", "notes.yaml.orig", "yaml"):
        write(root, f"policies/{name}", "a: 1\n")
    assert paths(read_folder(root, "policies")) == ["policies/zz.yaml"]


def test_folders_to_skip_are_skipped_only_directly_below(root: Path) -> None:
    write(root, "policies/kustomize/a.yaml", "a: 1\n")
    write(root, "policies/more/kustomize/a.yaml", "a: 1\n")
    read = read_folder(root, "policies", skip=frozenset({"kustomize"}))
    assert paths(read) == ["policies/more/kustomize/a.yaml", "policies/zz.yaml"]


@pytest.mark.parametrize("folder", ["policies", "policies/", "./policies"])
def test_labels_do_not_depend_on_how_the_folder_is_spelt(root: Path, folder: str) -> None:
    assert paths(read_folder(root, folder)) == ["policies/zz.yaml"]


def test_the_root_itself_can_be_read(root: Path) -> None:
    assert paths(read_folder(root / "policies", ".")) == ["zz.yaml"]


@pytest.mark.parametrize("folder", ["missing", "policies/zz.yaml", "x" * 5000, "../repository/policies", "/"])
def test_a_folder_that_is_not_there_or_not_inside_is_trouble(root: Path, folder: str) -> None:
    with pytest.raises(GpuplanError, match=r"does not exist|is outside of"):
        read_folder(root, folder)


def test_a_linked_folder_that_leaves_the_repository_is_trouble(root: Path) -> None:
    (root / "elsewhere").symlink_to(root.parent)
    with pytest.raises(GpuplanError, match="is a link out of the repository"):
        read_folder(root, "elsewhere")


def test_a_repository_behind_a_link_is_read(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    (root / "policies/again.yaml").symlink_to("zz.yaml")
    assert paths(read_folder(link, "policies")) == ["policies/again.yaml", "policies/zz.yaml"]


def test_an_unreadable_file_is_trouble(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(GpuplanError) as trouble:
        read_folder(root, "policies")
    assert trouble.value.message == "cannot read `policies/zz.yaml`: permission denied"


def test_an_unreadable_folder_is_trouble(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(GpuplanError, match="cannot read `policies`: permission denied"):
        read_folder(root, "policies")


def test_a_folder_that_is_named_like_a_file_is_found(root: Path) -> None:
    write(root, "policies/pools.yaml/inner.yaml", "a: 1\n")
    assert findings(read_folder(root, "policies")) == [
        ("policies/pools.yaml", "GPU004", "`policies/pools.yaml` is a folder, not a file")
    ]


def test_a_pipe_is_found_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "policies/pipe.yaml")
    (root / "policies/linked.yaml").symlink_to("pipe.yaml")
    assert findings(read_folder(root, "policies")) == [
        ("policies/linked.yaml", "GPU004", "`policies/linked.yaml` is a pipe, a socket or a device, not a file"),
        ("policies/pipe.yaml", "GPU004", "`policies/pipe.yaml` is a pipe, a socket or a device, not a file"),
    ]


def test_a_socket_is_found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "policies")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.yaml")
        (finding,) = findings(read_folder(root, "policies"))
    assert finding[:2] == ("policies/s.yaml", "GPU004")


def test_a_link_to_a_file_inside_the_repository_is_read_under_its_own_name(root: Path) -> None:
    write(root, "shared/pool.yaml", "a: 2\n")
    (root / "policies/pool.yaml").symlink_to("../shared/pool.yaml")
    assert paths(read_folder(root, "policies")) == ["policies/pool.yaml", "policies/zz.yaml"]


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("a.yaml", "../../outside.yaml", "link `policies/a.yaml` leaves the repository"),
        ("a.yaml", "/dev/zero", "link `policies/a.yaml` leaves the repository"),
        ("a.yaml", "missing.yaml", "link `policies/a.yaml` points nowhere or to itself"),
        ("a.yaml", "a.yaml", "link `policies/a.yaml` points nowhere or to itself"),
        ("a.yaml", "..", "link `policies/a.yaml` points to a folder"),
        ("a", ".", "link `policies/a` points to a folder"),
        ("a", "../..", "link `policies/a` points to a folder"),
    ],
)
def test_other_links_are_found(root: Path, name: str, target: str, message: str) -> None:
    write(root.parent, "outside.yaml", "a: 1\n")
    (root / "policies" / name).symlink_to(target)
    assert findings(read_folder(root, "policies")) == [(f"policies/{name}", "GPU005", message)]


@pytest.mark.parametrize("target", ["missing", "../../outside.txt"])
def test_links_that_no_policy_could_hide_behind_are_passed_over(root: Path, target: str) -> None:
    write(root.parent, "outside.txt", "")
    (root / "policies/README.md").symlink_to(target)
    assert paths(read_folder(root, "policies")) == ["policies/zz.yaml"]


def test_a_name_that_is_not_utf8_is_shown_with_escapes(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/policies/caf\xe9.yaml")).write_text("a: [\n")
    ((path, code, _),) = findings(read_folder(root, "policies"))
    assert (path, code) == ("policies/caf\\xe9.yaml", "GPU001")


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"a: caf\xe9\n", "1:7", "byte 0xE9 is not UTF-8"),
        ("é: 1\nb: ".encode() + b"\xff\n", "2:4", "byte 0xFF is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "1:1", "file is UTF-16, not UTF-8"),
        (b"\xfe\xff" + "a: 1\n".encode("utf-16-be"), "1:1", "file is UTF-16, not UTF-8"),
        (b"a: 1\r\nb: \x00\r\n", "2:4", "character U+0000 cannot stand in a policy"),
        (b"a: 1\n\x1b[2Jb: 1\n", "2:1", "character U+001B cannot stand in a policy"),
        (b"a: \x7f\n", "1:4", "character U+007F cannot stand in a policy"),
        ("a: 1\u2028b: 2\n".encode(), "1:5", "character U+2028 (line separator) cannot stand in a policy"),
        ("a: 1\x85b: 2\n".encode(), "1:5", "character U+0085 cannot stand in a policy"),
        ("a: 1\n\ufeffb: 2\n".encode(), "2:1", "character U+FEFF (zero width no-break space) cannot stand in a policy"),
    ],
)
def test_what_is_not_plain_utf8_text_is_found_at_its_place(root: Path, data: bytes, place: str, message: str) -> None:
    write(root, "policies/a.yaml", data)
    documents, diagnostics = read_folder(root, "policies")
    assert [document.file.path for document in documents] == ["policies/zz.yaml"]
    assert describe(diagnostics) == [f"{place} GPU002 {message}"]


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_text(root: Path) -> None:
    write(root, "policies/a.yaml", b"\xef\xbb\xbfa: 1\n")
    (document, _), diagnostics = read_folder(root, "policies")
    assert document.file.text == "a: 1\n"
    assert diagnostics == ()


def test_half_a_surrogate_pair_is_found() -> None:
    _, diagnostics = read_text("-", "a: \ud800\n")
    assert describe(diagnostics) == ["1:4 GPU002 character U+D800 cannot stand in a policy"]


def test_edits_are_tried_on_so_much_of_a_folder_and_no_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "MAX_TRIED", 50)
    for name in ("x1", "x2", "x3"):
        write(root, f"policies/{name}.yaml", "kind: Pool\nspec: [a\n")

    helps = [item.finding.help for item in read_folder(root, "policies")[1]]

    assert helps == ["write `spec: [a]`", "write `spec: [a]`", "close the list"]


def test_a_file_that_is_too_large_is_found_and_not_read_to_its_end(root: Path) -> None:
    with (root / "policies/a.yaml").open("wb") as stream:
        stream.truncate(2**40)
    assert findings(read_folder(root, "policies")) == [("policies/a.yaml", "GPU003", "file is larger than 8 MiB")]


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 1, 300_000])
def test_a_file_of_any_size_is_read_whole(root: Path, size: int) -> None:
    text = "a: " + "x" * (size - 4) + "\n"
    write(root, "policies/a.yaml", text)
    documents, _ = read_folder(root, "policies")
    assert documents[0].file.text == text


def test_folders_nest_deeper_than_functions_may(tmp_path: Path) -> None:
    file = write(tmp_path, f"policies{'/a' * 400}/z.yaml", "a: 1\n")
    with few_frames_left(200):
        read = read_folder(tmp_path, "policies")
    assert paths(read) == [file.relative_to(tmp_path).as_posix()]


@contextmanager
def few_frames_left(count: int) -> Iterator[None]:
    """Lower Python's limit rather than nest folders up to it: pytest has to be able to remove them again."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def test_manifests_may_be_any_yaml(root: Path) -> None:
    write(root, "kustomize/patch.yaml", "- op: add\n---\nkind: List\nitems: &x [yes, 012, !y z]\nmore: *x\n")
    documents, diagnostics = read_manifests(root, "kustomize")
    assert [document.data for document in documents] == [
        [{"op": "add"}],
        {"kind": "List", "items": ["yes", 12, "z"], "more": ["yes", 12, "z"]},
    ]
    assert describe(diagnostics) == []


def test_manifests_that_are_no_yaml_are_found(root: Path) -> None:
    write(root, "kustomize/patch.yaml", "a: [\n")
    _, diagnostics = read_manifests(root, "kustomize")
    assert [diagnostic.code for diagnostic in diagnostics] == ["GPU001"]


def test_folders_are_found_in_the_order_of_their_names(root: Path) -> None:
    for name in ("prod", "dev", ".hidden"):
        (root / "overlays" / name).mkdir(parents=True)
    write(root, "overlays/README.md", "")
    assert find_folders(root, "overlays") == ("dev", "prod")
    assert find_folders(root, "missing") == ()


def test_a_repository_has_only_folders_inside_of_it(root: Path) -> None:
    assert has_folder(root, "policies")
    assert not has_folder(root, "missing")
    assert not has_folder(root, "policies/zz.yaml")
    assert not has_folder(root, "../repository")
    assert not has_folder(root, str(root / "policies"))
    assert not has_folder(root, "x" * 5000)
    assert not has_folder(root, "nul\0")


def test_files_of_a_folder_have_no_more_documents_than_one_may_have(root: Path) -> None:
    """However few bytes of a commit they are: one content may have many names."""
    for index in range(13):
        write(root, f"policies/{index}.yaml", "---\na: 1\n" * 8_000)

    documents, diagnostics = read_folder(root, "policies")

    assert documents == ()
    assert [item.finding.message for item in diagnostics] == ["folder `policies` has more than 100,000 documents"]
