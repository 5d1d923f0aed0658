"""Find folders that git would take for repositories, though they are not called `.git`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Origin, SourceFile, WholeFile
from gpuplan.compiler.base.repository import GIT
from gpuplan.compiler.documents.filetree import FileTree, Kind, printable
from gpuplan.compiler.documents.rules import EMBEDDED_REPOSITORY


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
