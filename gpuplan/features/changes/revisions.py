"""Platforms as they were at Git revisions, read without touching the work tree or the index."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import find_link, find_repository
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import misspelling
from gpuplan.compiler.documents import find_folders
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.pipeline.loading import OVERLAYS, Repository, load_tree
from gpuplan.features.changes.git import SHORT, WITH_A_FOLDER, complaint, git, run, text
from gpuplan.features.changes.git_tree import GitTree


class Revision(NamedTuple):
    """A commit, and what it was asked for by; ``folder`` is the platform's in it, empty or ending in ``/``."""

    name: str
    commit: str
    folder: str


def find_revision(root: Path, name: str) -> Revision | None:
    """The commit of this name in the Git repository around a folder; None when there is none."""
    commit = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    repository = find_repository(root)
    folder = repository.prefix if repository else ""
    return None if commit is None else Revision(name, text(commit), folder)


def get_revision(root: Path, name: str) -> Revision:
    """The commit of this name; trouble when there is none."""
    if not is_in_git(root):
        raise GpuplanError(f"`{name}` is looked for in Git, and `{root}` is in no Git repository", WITH_A_FOLDER)
    link = find_link(root)
    if link:
        leads = os.path.relpath(os.path.realpath(root))
        message = f"`{os.path.relpath(link.path)}` is a link, which may lead elsewhere at `{name}`"
        raise GpuplanError(message, f"name where it leads: `-C {leads}`")
    here, there = find_repository(Path()), find_repository(root)
    if here and there and here.top != there.top and there.top.is_relative_to(here.top):
        way = there.top.relative_to(here.top).as_posix()
        listed = git(here.top, "ls-files", "--stage", "--", way)
        if listed and listed.startswith(_SUBMODULE):
            message = f"`{root}` is in the submodule `{way}`, and `{name}` would be one of its own revisions"
            raise GpuplanError(message, f"run it there: `cd {root}`")
    found = find_revision(root, name) if name and not name.startswith("-") else None
    if found is None:
        raise GpuplanError(f"there is no revision `{name}` here", _way_to_revision(root, name))
    return found


_SUBMODULE: Final = b"160000 "


def get_merge_base(root: Path, first: str, second: str) -> Revision:
    """The commit from which two revisions part, as ``first...second`` means it in `git diff`."""
    one, other = get_revision(root, first), get_revision(root, second)
    base = git(root, "merge-base", one.commit, other.commit)
    if base is None:
        raise GpuplanError(
            f"`{first}` and `{second}` have no commit in common here",
            _DEEPEN if _is_shallow(root) else f"compare them as they are: `{first}..{second}`",
        )
    commit = text(base)
    return Revision(commit[:SHORT], commit, one.folder)


def is_in_git(root: Path) -> bool:
    """Whether a folder is in the work tree of a Git repository; trouble when git says neither."""
    done = run(root, "rev-parse", "--is-inside-work-tree")
    if done.returncode and b"not a git repository" not in done.stderr:
        raise GpuplanError(f"git cannot read the repository of `{root}`: it says {complaint(done)}", WITH_A_FOLDER)
    return done.stdout.strip() == b"true"


def read_revision(root: Path, revision: Revision, clusters: Sequence[str] = ()) -> Repository:
    """The platform as the revision has it, of the clusters named only those that it has; there may be none."""
    with _tree(root, revision) as tree:
        return load_tree(tree, find_folders(tree, OVERLAYS), clusters)


def _tree(root: Path, revision: Revision) -> closing[GitTree]:
    return closing(GitTree(root, revision.commit, revision.folder, revision.name))


# --- Names -------------------------------------------------------------------------------------------------------

_DEEPEN: Final = "this clone is shallow: run `git fetch --unshallow`, or check out with `fetch-depth: 0` in CI"


def _way_to_revision(root: Path, name: str) -> str:
    if git(root, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return "commit once: there is no commit yet"
    if _is_shallow(root):
        return _DEEPEN
    near = misspelling(name, ("HEAD", *text(git(root, "for-each-ref", "--format=%(refname:short)")).splitlines()))
    return f"did you mean `{near}`?" if near else "`git branch --all` and `git tag` list what there is"


def _is_shallow(root: Path) -> bool:
    return git(root, "rev-parse", "--is-shallow-repository") == b"true\n"


# --- What gpuplan wrote ------------------------------------------------------------------------------------------


def find_written(root: Path, revision: Revision, out: str) -> dict[str, str] | None:
    """Git's names of the contents below an output folder of a commit, by path; None where gpuplan wrote nothing there.

    ``out`` is relative to the platform's folder.
    """
    with _tree(root, revision) as tree:
        found = tree.contents(out)
    return found if INVENTORY in found else None


class Unadded(NamedTuple):
    """Files that Git does not track: those that it would add, and those that it ignores."""

    new: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def find_unadded(folder: Path, files: Iterable[str]) -> Unadded | None:
    """Return the files of a folder that Git does not track, or None without a Git repository or without git."""
    repository = find_repository(folder)
    if repository is None:
        return None
    try:
        tracked = _listed(folder, repository.prefix)
        new = [path for path in files if path not in tracked]
        if not new:
            return Unadded()
        ignored = _listed(folder, repository.prefix, "--others", "--ignored", "--exclude-standard")
    except GpuplanError:
        return None
    return Unadded(tuple(path for path in new if path not in ignored), tuple(path for path in new if path in ignored))


def _listed(folder: Path, prefix: str, *options: str) -> frozenset[str]:
    """Return paths from a folder, of which ``prefix`` is the way from the top of its repository."""
    listed = git(folder, "ls-files", "-z", *options, "--", prefix or ".")
    return frozenset(path.removeprefix(prefix) for path in os.fsdecode(listed or b"").split("\0"))
