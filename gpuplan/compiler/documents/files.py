"""Policies from files, and the folders that git would take for repositories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from shlex import quote

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, GpuplanError, Origin, Rule, SourceFile, WholeFile
from gpuplan.compiler.base.repository import GIT
from gpuplan.compiler.documents.document import Document
from gpuplan.compiler.documents.filetree import (
    DiskTree,
    Entry,
    FileTree,
    Kind,
    is_passed_over,
    is_policy_file,
    printable,
)
from gpuplan.compiler.documents.parse import MAX_DOCUMENTS, parse
from gpuplan.compiler.documents.repair import Trials
from gpuplan.compiler.documents.rules import EMBEDDED_REPOSITORY, NOT_A_FILE, REFUSED_LINK, TOO_LARGE
from gpuplan.compiler.documents.text import MAX_BYTES, decode

Read = tuple[tuple[Document, ...], tuple[Diagnostic, ...]]
"""The documents that can be read, with the findings about the rest."""
Root = Path | FileTree
"""A folder of the disk, or another tree of files."""


def read_folder(root: Root, folder: str, *, skip: frozenset[str] = frozenset()) -> Read:
    """The policies of all `*.yaml` and `*.yml` files below a folder of the repository, in the order of their names.

    Hidden names are passed over, and so are the names of ``skip`` directly below the folder.
    """
    return _read(_tree(root), folder, skip, strict=True)


def read_manifests(root: Root, folder: str) -> Read:
    """Hand-written Kubernetes objects, in whatever YAML their tools read; only what is no YAML at all is reported."""
    return _read(_tree(root), folder, frozenset(), strict=False)


def read_text(path: str, text: str, *, strict: bool = True) -> Read:
    """The policies of a text that is not on the disk, such as standard input; objects, as above, without ``strict``."""
    return parse(SourceFile(path, text.removeprefix("\ufeff")), strict=strict)


def read_bytes(path: str, data: bytes) -> Read:
    """Objects of a file that was read already, in whatever YAML their tools read."""
    file, refusal = decode(path, data)
    return parse(file, strict=False) if refusal is None else ((), (refusal,))


def has_folder(root: Root, folder: str) -> bool:
    """Whether the repository has this folder; one outside of it is none of its folders.

    A link out of the repository counts, where it could be a folder: to read that is trouble.
    """
    if not _is_below(folder):
        return False
    kind, is_inside = _tree(root).target(folder)
    return kind is Kind.FOLDER or (kind is None and not is_inside)


def find_folders(root: Root, folder: str) -> tuple[str, ...]:
    """The names of the folders directly below a folder, hidden ones left out; none when it does not exist."""
    tree = _tree(root)
    if tree.target(folder).kind is not Kind.FOLDER:
        return ()
    top = _top(tree, folder)
    return tuple(sorted(entry.name for entry in _shown(tree, top) if _is_folder(tree, _join(top, entry.name), entry)))


def _tree(root: Root) -> FileTree:
    return DiskTree(root) if isinstance(root, Path) else root


def _read(tree: FileTree, folder: str, skip: frozenset[str], *, strict: bool) -> Read:
    documents: list[Document] = []
    diagnostics: list[Diagnostic] = []
    trials = Trials()
    for found in _walk(tree, folder, skip):
        if isinstance(found, Diagnostic):
            diagnostics.append(found)
            continue
        file, refusal = decode(printable(found), tree.read(found, MAX_BYTES + 1))
        read, problems = parse(file, strict=strict, trials=trials) if refusal is None else ((), (refusal,))
        documents += read
        diagnostics += problems
        if len(documents) > MAX_DOCUMENTS:
            message = f"folder `{printable(folder)}` has more than {MAX_DOCUMENTS:,} documents"
            return (), (_refuse(TOO_LARGE, folder, message, "divide it into several platforms"),)
    return tuple(documents), tuple(diagnostics)


def _walk(tree: FileTree, folder: str, skip: frozenset[str]) -> Iterator[str | Diagnostic]:
    """The paths of the files to read, depth first, in the order of their names."""
    top = _top(tree, folder)
    tree.expect(top, skip)
    pending = _children(tree, top, skip)
    while pending:
        entry, path = pending.pop()
        if entry.kind is Kind.LINK:
            yield from _linked(tree, path, is_policy=is_policy_file(entry.name))
        elif is_policy_file(entry.name):
            yield _plain(path, entry.kind)
        elif entry.kind is Kind.FOLDER:
            pending += _children(tree, path)


def _children(tree: FileTree, folder: str, skip: frozenset[str] = frozenset()) -> list[tuple[Entry, str]]:
    """Last name first, as a stack wants it."""
    entries = [entry for entry in _shown(tree, folder) if entry.name not in skip]
    entries.sort(key=lambda entry: entry.name, reverse=True)
    return [(entry, _join(folder, entry.name)) for entry in entries]


def _shown(tree: FileTree, folder: str) -> Iterator[Entry]:
    return (entry for entry in tree.entries(folder) if not is_passed_over(entry.name))


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def _is_folder(tree: FileTree, path: str, entry: Entry) -> bool:
    kind = tree.target(path).kind if entry.kind is Kind.LINK else entry.kind
    return kind is Kind.FOLDER


def _plain(path: str, kind: Kind) -> str | Diagnostic:
    if kind is Kind.FILE:
        return path
    what = "a folder" if kind is Kind.FOLDER else "a pipe, a socket or a device"
    return _refuse(NOT_A_FILE, path, f"`{printable(path)}` is {what}, not a file", "rename or remove it")


def _linked(tree: FileTree, path: str, *, is_policy: bool) -> Iterator[str | Diagnostic]:
    """Links to files inside the repository are read; links that hide policies elsewhere are findings."""
    link = f"link `{printable(path)}`"
    kind, is_inside = tree.target(path)
    if kind is Kind.FOLDER:
        help_text = "name the folder in `bases` of the `Cluster`, or copy it here"
        yield _refuse(REFUSED_LINK, path, f"{link} points to a folder", help_text)
    elif not is_policy:
        return
    elif not is_inside:
        yield _refuse(REFUSED_LINK, path, f"{link} leaves the repository", "copy the file into the repository")
    elif kind is None:
        shown = quote(printable(path))
        help_text = f"bring the file back: `git checkout HEAD -- {shown}`, or remove the link: `rm {shown}`"
        yield _refuse(REFUSED_LINK, path, f"{link} points nowhere or to itself", help_text)
    else:
        yield _plain(path, kind)


def _refuse(rule: Rule, path: str, message: str, help_text: str) -> Diagnostic:
    return rule.report(Finding(Origin(WholeFile(SourceFile(printable(path), ""))), message, help=help_text))


def _top(tree: FileTree, folder: str) -> str:
    """The folder's path, plainly spelt; it has to be inside the repository."""
    if not _is_below(folder):
        raise GpuplanError(f"folder `{folder}` is outside of the repository", "name a folder below its root")
    kind, is_inside = tree.target(folder)
    if not is_inside and kind in (Kind.FOLDER, None):
        raise GpuplanError(f"folder `{folder}` is a link out of the repository", "copy the folder into the repository")
    if kind is not Kind.FOLDER:
        raise GpuplanError(f"folder `{folder}` does not exist", "create it, or name another one")
    return PurePosixPath(folder).as_posix()


def _is_below(folder: str) -> bool:
    pure = PurePosixPath(folder)
    return not pure.is_absolute() and ".." not in pure.parts


# --- Embedded repositories -------------------------------------------------------------------------------------------


def find_embedded(tree: FileTree, folders: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield a finding for each folder that git takes for a repository: the root, these, and all below these.

    What is called `.git` is passed over: git checks out none, so a clone or a submodule is the user's own.
    """
    pending = [folder for folder in folders if tree.target(folder) == (Kind.FOLDER, True)]
    seen: set[str] = set()
    if _is_repository({entry.name.lower() for entry in tree.entries(".")}):
        yield _finding(".")
    while pending:
        folder = pending.pop()
        if folder in seen:
            continue
        seen.add(folder)
        entries = tree.entries(folder)
        if _is_repository({entry.name.lower() for entry in entries}):
            yield _finding(folder)
        pending += (f"{folder}/{entry.name}" for entry in entries if entry.kind is Kind.FOLDER and entry.name != GIT)


def _is_repository(names: Collection[str]) -> bool:
    """Whether git may stop at a folder with these names, in lower case: where case does not count, `Head` is a HEAD.

    `is_git_directory` of git's setup.c: a HEAD, refs and objects, or the way to a folder that has the latter two. A
    whole `.git` beside these is found first. Exports leave an empty one, which is not.
    """
    return "head" in names and ("commondir" in names or {"objects", "refs"}.issubset(names))


def _finding(folder: str) -> Diagnostic:
    finding = Finding(
        Origin(WholeFile(SourceFile(printable(folder), ""))),
        f"folder `{printable(folder)}` is what git takes for a repository of its own",
        notes=(
            "git run in it obeys its `config`, which may name commands, and shows what it says instead of the commit",
        ),
        help="delete its `HEAD`, `config`, `objects` and `refs`, and ask who added them",
    )
    return EMBEDDED_REPOSITORY.report(finding)
