"""Platforms as they were at Git revisions, read without touching the work tree or the index.

Blobs are read one by one, not with `git archive`, which leaves out what `.gitattributes` says `export-ignore` of: a
policy that is missing there would look like one that was removed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from posixpath import dirname, join, normpath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from gpuplan.diagnostics import GpuplanError
from gpuplan.documents import find_folders
from gpuplan.outtree import INVENTORY
from gpuplan.pipeline.loading import OVERLAYS, Repository, load
from gpuplan.wording import misspelling

SHORT: Final = 12
"""Characters by which people tell commits apart."""
LONGEST_READ: Final = 300
"""Seconds for one run of git, which may have to fetch in a partial clone."""

_LINK: Final = "120000"
_SUBMODULE: Final = "160000"
_WITH_A_FOLDER: Final = "compare with a folder instead: `--against ./DIR`"


class Revision(NamedTuple):
    """A commit, and what it was asked for by; ``folder`` is the platform's in it, empty or ending in ``/``."""

    name: str
    commit: str
    folder: str


def find_revision(root: Path, name: str) -> Revision | None:
    """The commit of this name in the Git repository around a folder; None when there is none."""
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return None if commit is None else Revision(name, _text(commit), _folder(root))


def get_revision(root: Path, name: str) -> Revision:
    """The commit of this name; trouble when there is none."""
    if not is_in_git(root):
        raise GpuplanError(f"`{name}` is looked for in Git, and `{root}` is in no Git repository", _WITH_A_FOLDER)
    found = find_revision(root, name) if _may_be_revision(name) else None
    if found is None:
        raise GpuplanError(f"there is no revision `{name}` here", _way_to_revision(root, name))
    return found


def get_merge_base(root: Path, first: str, second: str) -> Revision:
    """The commit from which two revisions part, as ``first...second`` means it in `git diff`."""
    one, other = get_revision(root, first), get_revision(root, second)
    base = _git(root, "merge-base", one.commit, other.commit)
    if base is None:
        raise GpuplanError(
            f"`{first}` and `{second}` have no commit in common here",
            _DEEPEN if _is_shallow(root) else f"compare them as they are: `{first}..{second}`",
        )
    commit = _text(base)
    return Revision(commit[:SHORT], commit, one.folder)


def is_in_git(root: Path) -> bool:
    """Whether a folder is in the work tree of a Git repository; trouble when git says neither."""
    done = _run(root, "rev-parse", "--is-inside-work-tree")
    if done.returncode and b"not a git repository" not in done.stderr:
        raise GpuplanError(f"git cannot read the repository of `{root}`: it says {_said(done)}", _WITH_A_FOLDER)
    return done.stdout.strip() == b"true"


def read_revision(
    root: Path, revision: Revision, clusters: Sequence[str] = (), *, may_be_empty: bool = False
) -> Repository:
    """The platform as the revision has it, of the clusters named only those that it has.

    Trouble where it has no platform at all, unless it ``may_be_empty``.
    """
    with _laid_out(root, revision) as (folder, submodules):
        known = find_folders(folder, OVERLAYS)
        if not known:
            _expect_no_submodule(revision, submodules)
            if not may_be_empty:
                raise _no_cluster(revision)
            return _NOTHING
        chosen = [name for name in clusters if name in known]
        repository = load(folder, chosen) if chosen or not clusters else _NOTHING
    for needed in repository.folders:
        if lost := next((path for path in submodules if f"{path}/".startswith(f"{needed}/")), None):
            raise _is_submodule(revision, lost)
    return repository


_NOTHING: Final = Repository((), (), (), (), (), (), 0, is_whole=False)


def _expect_no_submodule(revision: Revision, submodules: Sequence[str]) -> None:
    """Trouble where the platform may be in a submodule."""
    for path in submodules:
        if f"{OVERLAYS}/".startswith(f"{path}/") or path.startswith(f"{OVERLAYS}/"):
            raise _is_submodule(revision, path)


def _no_cluster(revision: Revision) -> GpuplanError:
    where = f"{revision.folder}{OVERLAYS}/"
    return GpuplanError(
        f"no cluster found at `{revision.name}`: there is no folder below `{where}` in that commit",
        "name a revision that has the platform",
    )


def _is_submodule(revision: Revision, path: str) -> GpuplanError:
    return GpuplanError(
        f"`{revision.folder}{path}` is a submodule at `{revision.name}`, and only what is in the commit itself is read",
        "check that revision out, with its submodules, in a folder of its own: `--against ./DIR`",
    )


# --- The files of a commit ---------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """Something in a commit's tree; ``path`` is relative to the platform's folder."""

    mode: str
    digest: str
    path: str


@contextmanager
def _laid_out(root: Path, revision: Revision) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """A temporary folder with the platform's YAML files and links, and the paths of the submodules in it."""
    entries = _entries(root, revision)
    links = [entry for entry in entries if entry.mode == _LINK]
    targets = dict(zip(links, (os.fsdecode(data) for data in _blobs(root, links)), strict=True))
    linked = {normpath(join(dirname(link.path), target)) for link, target in targets.items()}
    wanted = [entry for entry in entries if entry.mode.startswith("100") and _is_read(entry.path, linked)]
    submodules = tuple(entry.path for entry in entries if entry.mode == _SUBMODULE)
    with TemporaryDirectory(prefix="gpuplan-") as temporary:
        top = Path(os.path.realpath(temporary))
        for folder in {*submodules, *(dirname(entry.path) for entry in entries)}:
            (top / folder).mkdir(parents=True, exist_ok=True)
        for entry, data in zip(wanted, _blobs(root, wanted), strict=True):
            (top / entry.path).write_bytes(data)
        for link, target in targets.items():  # last, so that nothing is written through one
            (top / link.path).symlink_to(target)
        yield top, submodules


def _is_read(path: str, linked: set[str]) -> bool:
    return path.lower().endswith((".yaml", ".yml")) or path in linked


def _entries(root: Path, revision: Revision) -> list[_Entry]:
    """What a commit has in the platform's folder, but for hidden files and for what gpuplan wrote."""
    below = ("--", revision.folder) if revision.folder else ()
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", revision.commit, *below) or b""
    found: list[_Entry] = []
    for line in filter(None, listed.split(b"\0")):
        about, _, path = line.partition(b"\t")
        mode, _, digest = about.decode().split(" ")
        found.append(_Entry(mode, digest, os.fsdecode(path).removeprefix(revision.folder)))
    outputs = tuple(entry.path.removesuffix(INVENTORY) for entry in found if entry.path.endswith(f"/{INVENTORY}"))
    return [entry for entry in found if not entry.path.startswith(outputs) and not _is_hidden(entry.path)]


def _is_hidden(path: str) -> bool:
    """A tree that was made by hand may name `..`, which starts with a dot too."""
    return path.startswith(".") or "/." in path


def _blobs(root: Path, entries: Sequence[_Entry]) -> Iterator[bytes]:
    if not entries:
        return
    asked = "".join(f"{entry.digest}\n" for entry in entries).encode()
    answer = _git(root, "cat-file", "--batch", stdin=asked) or b""
    at = 0
    for entry in entries:
        head, _, rest = answer[at : at + 128].partition(b"\n")
        words = head.split(b" ")
        if len(words) != 3 or not rest:
            raise GpuplanError(f"git cannot read `{entry.path}`: its content is not in this clone", "run `git fsck`")
        start = at + len(head) + 1
        at = start + int(words[2]) + 1
        yield answer[start : at - 1]


# --- Git ---------------------------------------------------------------------------------------------------------

_DEEPEN: Final = "this clone is shallow: run `git fetch --unshallow`, or check out with `fetch-depth: 0` in CI"


_OF_A_HOOK: Final = frozenset(("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"))


def _may_be_revision(name: str) -> bool:
    return bool(name) and not name.startswith("-")


def _way_to_revision(root: Path, name: str) -> str:
    if _git(root, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return "commit once: there is no commit yet"
    if _is_shallow(root):
        return _DEEPEN
    near = misspelling(name, ("HEAD", *_lines(_git(root, "for-each-ref", "--format=%(refname:short)"))))
    return f"did you mean `{near}`?" if near else "`git branch --all` and `git tag` list what there is"


def _is_shallow(root: Path) -> bool:
    return _git(root, "rev-parse", "--is-shallow-repository") == b"true\n"


def _folder(root: Path) -> str:
    return _text(_git(root, "rev-parse", "--show-prefix"))


def _text(printed: bytes | None) -> str:
    return os.fsdecode(printed or b"").removesuffix("\n")


def _lines(printed: bytes | None) -> Iterable[str]:
    return _text(printed).splitlines()


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """What git prints; None when it says no (exit code 1, or no such object), trouble when it fails otherwise."""
    done = _run(root, *arguments, stdin=stdin)
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 1 or "--verify" in arguments:
        return None
    raise GpuplanError(f"`git {arguments[0]}` fails: it says {_said(done)}", _WITH_A_FOLDER)


def _run(root: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with no question to the user and nothing written that could wait until later.

    Inside of a hook git says which repository it is, from where it runs; here the folder says so.
    """
    known = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    settings = {"LC_ALL": "C", "GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(  # noqa: S603 - nothing of the arguments is an option but ours
            ["git", *arguments],  # noqa: S607 - whichever is on the path
            cwd=root,
            env={**known, **settings},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=LONGEST_READ,
        )
    except FileNotFoundError as error:
        raise GpuplanError("there is no git on the path to read revisions with", _install(root)) from error
    except subprocess.TimeoutExpired as error:
        raise GpuplanError(
            f"`git {arguments[0]}` says nothing within {LONGEST_READ} seconds", _WITH_A_FOLDER
        ) from error


def _install(root: Path) -> str:
    return f"install git, or {_WITH_A_FOLDER}" if root.is_dir() else f"`{root}` is no folder"


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(done.stderr.decode(errors="replace").split()) or f"nothing, and ends with {done.returncode}"
