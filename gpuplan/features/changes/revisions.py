"""Platforms as they were at Git revisions, read from Git's objects; nothing of them is ever on the disk.

A commit is made by whoever pushes it. Its trees may hold names, modes and links that no checkout could have, and git
hands them on as they are. So every name is looked at before it is used, a link is followed within the commit alone, and
there are limits to what may come of a few objects that name each other many times.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.repository import find_link, find_repository
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.documents import Entry, Kind, Target, find_folders, is_passed_over, is_policy_file
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.pipeline.loading import DEFAULT_BASES, OVERLAYS, Repository, load_tree
from gpuplan.compiler.pipeline.output import compare_committed
from gpuplan.features.changes.git import SHORT, WITH_A_FOLDER, Objects, complaint, git, run, text

LONGEST_NAME: Final = 255
"""Bytes of a name, on Linux and nearly everywhere."""
LONGEST_PATH: Final = 4096
"""Bytes of a path, on Linux, and those of a link."""
MOST_LINKS: Final = 40
"""The number of links that Linux follows from one path."""
MOST_STEPS: Final = 1_000_000
"""The number of entries that are listed, with the folders and links on the way. 10,000 files take a tenth of that."""
MOST_BYTES: Final = 256 * 2**20
"""The number of bytes that are read of all files."""
_LARGEST_TREE: Final = 32 * 2**20


class _Item(NamedTuple):
    """An entry of a tree; a submodule has the kind of a folder, since it is one in a checkout."""

    kind: Kind
    digest: str
    is_submodule: bool = False


class _Place(NamedTuple):
    """An item by its way from the top of the commit, with no link in it."""

    way: tuple[str, ...]
    entry: _Item


_NOWHERE: Final = Target(None)
_OUTSIDE: Final = Target(None, is_inside=False)


class GitTree:
    """A folder of a commit, as a checkout would have it; ``folder`` is empty or ends in ``/``, ``name`` is the user's.

    Trouble as soon as a folder is listed in which something cannot be.
    """

    def __init__(self, root: Path, commit: str, folder: str, name: str) -> None:
        self._objects = Objects(root)
        self._commit = commit
        self._name = name
        self._top = tuple(folder.split("/")[:-1])
        self._known: dict[str, Mapping[str, _Item]] = {}
        self._links: dict[str, str | None] = {}
        self._expected = Counter[str]()
        self._paid = Counter[str]()
        self._steps = self._bytes = 0

    def close(self) -> None:
        self._objects.close()

    def expect(self, folder: str, skip: AbstractSet[str]) -> None:
        """Refuse a folder below which a walk would list too much, and see how often it would read which file."""
        top = self._get(folder)
        inner = self._foresee(top, lambda name: not is_passed_over(name) and not is_policy_file(name), skip)
        paths = Counter({top.entry.digest: 1})
        for digest, folders in inner.items():
            for item in folders.values():
                paths[item.digest] += paths[digest]
            for name, item in self._known[digest].items():
                if item.kind is Kind.FILE and is_policy_file(name) and not is_passed_over(name):
                    self._expected[item.digest] += paths[digest]

    def entries(self, folder: str) -> Sequence[Entry]:
        place = self._get(folder)
        if len(os.fsencode(folder)) > LONGEST_PATH:
            raise self._nests_too_deep(place.way)
        found = self._list(place.way, place.entry)
        self._count_steps(len(found), place.way)
        return [Entry(name, item.kind) for name, item in found.items()]

    def target(self, path: str) -> Target:
        place = self._follow(path)
        if isinstance(place, Target):
            return place
        return Target(place.entry.kind, is_inside=place.way[: len(self._top)] == self._top)

    def read(self, path: str, most: int) -> bytes:
        place = self._get(path)
        data = self._data(place.way, place.entry, "blob", most)
        digest = place.entry.digest
        if self._paid[digest]:
            self._paid[digest] -= 1
        else:
            times = self._expected.pop(digest, 1)
            self._paid[digest] = times - 1
            self._bytes += len(data) * times
        if self._bytes > MOST_BYTES:
            raise self._trouble(f"has more than {MOST_BYTES // 2**20} MiB of policies", place.way)
        return data

    def contents(self, folder: str) -> dict[str, str]:
        """Git's names of what all files and links below a folder hold, by path from there; none where it is not."""
        top = self._follow(folder)
        if isinstance(top, Target) or top.entry.kind is not Kind.FOLDER:
            return {}
        self._foresee(top, lambda _: True)
        found: dict[str, str] = {}
        waiting = [("", top)]
        while waiting:
            above, (way, item) = waiting.pop()
            if len(os.fsencode(above)) > LONGEST_PATH:
                raise self._nests_too_deep(way)
            listed = {} if item.is_submodule else self._list(way, item)
            self._count_steps(len(listed) * (1 + len(above) // LONGEST_NAME), way)  # long ones take memory, too
            for name, inner in listed.items():
                if inner.kind is Kind.FOLDER:
                    waiting.append((f"{above}{name}/", _Place((*way, name), inner)))
                else:
                    found[f"{above}{name}"] = inner.digest
        return found

    def _foresee(
        self, top: _Place, is_walked: Callable[[str], bool], skip: AbstractSet[str] = frozenset()
    ) -> Mapping[str, Mapping[str, _Item]]:
        """The trees below a folder with the trees in them, each once and above those; trouble if their paths are many.

        Git names a tree by what is in it, so that none can be in itself, and how many paths are below it is a sum.
        """
        inner: dict[str, Mapping[str, _Item]] = {}
        below: dict[str, int] = {}
        waiting = [top]
        while waiting:
            way, item = waiting[-1]
            if item.digest not in inner:
                if len(way) > LONGEST_PATH // 2:
                    raise self._nests_too_deep(way)
                passed = skip if way == top.way else frozenset()
                inner[item.digest] = {
                    name: found
                    for name, found in self._list(way, item).items()
                    if found.kind is Kind.FOLDER and not found.is_submodule and is_walked(name) and name not in passed
                }
                waiting += (_Place((*way, name), found) for name, found in inner[item.digest].items())
                continue
            waiting.pop()
            if item.digest not in below:
                folders = inner[item.digest].values()
                below[item.digest] = len(self._known[item.digest]) + sum(below[found.digest] for found in folders)
        if below[top.entry.digest] > MOST_STEPS - self._steps:
            raise self._has_no_end(_way_to_most(top, inner, below))
        return {digest: inner[digest] for digest in reversed(below)}

    # --- Paths -------------------------------------------------------------------------------------------------

    def _get(self, path: str) -> _Place:
        place = self._follow(path)
        if isinstance(place, Target):
            raise GpuplanError(f"`{path}` does not exist at `{self._name}`", "name another revision")
        return place

    def _follow(self, path: str) -> _Place | Target:
        """Walk a path from the folder, through links and back up; only what is in the commit can be met."""
        way: list[str] = []
        items = [_Item(Kind.FOLDER, f"{self._commit}^{{tree}}")]
        waiting = [*reversed(path.split("/")), *reversed(self._top)]
        links = 0
        while waiting:
            part = waiting.pop()
            self._count_steps(1, way)
            if items[-1].kind is not Kind.FOLDER:
                return _NOWHERE
            if part == ".." and not way:
                return _OUTSIDE
            if part == "..":
                del way[-1], items[-1]
            elif part not in ("", "."):
                item = self._list(way, items[-1]).get(part)
                if item is None:
                    return _NOWHERE
                way.append(part)
                items.append(item)
                if item.kind is Kind.LINK:
                    links += 1
                    text = self._link(way, item) if links <= MOST_LINKS else None
                    if text is None or text.startswith("/"):
                        return _NOWHERE if text is None else _OUTSIDE
                    del way[-1], items[-1]
                    waiting += reversed(text.split("/"))
        return _Place(tuple(way), items[-1])

    def _count_steps(self, count: int, way: Sequence[str]) -> None:
        self._steps += count
        if self._steps > MOST_STEPS:
            raise self._has_no_end(way)

    def _link(self, way: Sequence[str], entry: _Item) -> str | None:
        """Return the target of a link, or None if no file system could have the link."""
        if entry.digest not in self._links:
            data = self._data(way, entry, "blob", LONGEST_PATH)
            is_possible = 0 < len(data) < LONGEST_PATH and b"\0" not in data
            self._links[entry.digest] = os.fsdecode(data) if is_possible else None
        return self._links[entry.digest]

    # --- Objects -----------------------------------------------------------------------------------------------

    def _list(self, way: Sequence[str], entry: _Item) -> Mapping[str, _Item]:
        if entry.is_submodule:
            raise GpuplanError(
                f"`{_shown(way)}` is a submodule at `{self._name}`, and only what is in the commit itself is read",
                "check that revision out, with its submodules, in a folder of its own: `--against ./DIR`",
            )
        if entry.digest not in self._known:
            found: dict[str, _Item] = {}
            for mode, raw, digest in self._split(way, self._data(way, entry, "tree", _LARGEST_TREE)):
                name = os.fsdecode(raw)
                if not raw:
                    raise self._trouble("has an entry without a name", way)
                if raw in (b".", b"..") or raw.lower() == b".git" or b"/" in raw or len(raw) > LONGEST_NAME:
                    raise self._trouble("has an entry whose name no checkout could have", (*way, name))
                item = _read_mode(int(mode, 8), digest.hex())
                if item is None:
                    raise self._trouble(f"has an entry of mode {mode.decode()}, which Git does not know", (*way, name))
                if name in found:
                    raise self._trouble("has two entries of one name", (*way, name))
                found[name] = item
            self._known[entry.digest] = found
        return self._known[entry.digest]

    def _split(self, way: Sequence[str], data: bytes) -> Sequence[tuple[bytes, bytes, bytes]]:
        """The modes, names and digests of a tree."""
        entry = re.compile(rb"([0-7]{1,7}) ([^\0]*)\0(.{%d})" % (len(self._commit) // 2), re.DOTALL)
        found = list(entry.finditer(data))
        if sum(len(match[0]) for match in found) != len(data):
            raise self._trouble("has a folder that is no list of entries", way)
        return [(match[1], match[2], match[3]) for match in found]

    def _data(self, way: Sequence[str], entry: _Item, kind: str, most: int) -> bytes:
        found = self._objects.find(entry.digest, most)
        if found is None:
            path = _shown(way)
            message = f"git cannot read `{path}`: its content is not in this clone"
            raise GpuplanError(message, self._objects.way_to_missing())
        if found.kind != kind:
            raise self._trouble(f"has a {found.kind} where a {kind} belongs", way)
        if kind == "tree" and found.size > most:
            raise self._trouble(f"has a folder whose list is larger than {most // 2**20} MiB", way)
        return found.data

    def _has_no_end(self, way: Sequence[str]) -> GpuplanError:
        return self._trouble("has folders and links without end", way)

    def _nests_too_deep(self, way: Sequence[str]) -> GpuplanError:
        return self._trouble("has folders that nest deeper than any checkout could have", way)

    def _trouble(self, fault: str, way: Sequence[str]) -> GpuplanError:
        return GpuplanError(
            f"commit {self._commit[:SHORT]} {fault}: `{_shown(way)}`",
            "`git fsck` says more; no `git commit` makes such a thing, so do not merge what comes with it",
        )


def _way_to_most(top: _Place, inner: Mapping[str, Mapping[str, _Item]], below: Mapping[str, int]) -> tuple[str, ...]:
    """The way to the innermost of the first folders below which there are too many paths."""
    way, item = top
    while many := [name for name, found in inner[item.digest].items() if below[found.digest] > MOST_STEPS]:
        way, item = (*way, many[0]), inner[item.digest][many[0]]
    return way


_TYPE: Final = 0o170000
_KINDS: Final[Mapping[int, Kind]] = {0o100000: Kind.FILE, 0o040000: Kind.FOLDER, 0o120000: Kind.LINK}
_SUBMODULE: Final = 0o160000


def _read_mode(mode: int, digest: str) -> _Item | None:
    """As git reads modes: their type counts, and which permissions come with it is no matter."""
    if mode & _TYPE == _SUBMODULE:
        return _Item(Kind.FOLDER, digest, is_submodule=True)
    kind = _KINDS.get(mode & _TYPE)
    return None if kind is None else _Item(kind, digest)


def _shown(way: Sequence[str]) -> str:
    """A path on one line, shortened, with escapes for what would do something else than show."""
    path = os.fsencode("/".join(way)).decode("utf-8", "backslashreplace") or "."
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in path)
    return text if len(text) <= 120 else f"{text[:58]}...{text[-58:]}"


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
        if listed and listed.startswith(_SUBMODULE_MODE):
            message = f"`{root}` is in the submodule `{way}`, and `{name}` would be one of its own revisions"
            raise GpuplanError(message, f"run it there: `cd {root}`")
    found = find_revision(root, name) if name and not name.startswith("-") else None
    if found is None:
        raise GpuplanError(f"there is no revision `{name}` here", _way_to_revision(root, name))
    return found


_SUBMODULE_MODE: Final = b"160000 "


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
    if fetching := way_to_fetch(root, name):
        remote = f"{name.partition('/')[0]}/"
        there = [known for known in _references(root) if known.startswith(remote) and known != f"{remote}HEAD"]
        others = [known for known in (find_near(root, name), *there) if known]
        other = f"; or name {listing(others, 3, last='or')}" if others else ""
        return f"type `{fetching}`, then the same again{other}"
    if _is_shallow(root):
        return _DEEPEN
    if os.path.isfile(root / name):  # noqa: PTH113 - of a name that may be none of a file
        return "it is a file: name a revision or a folder, such as `--against HEAD`"
    near, known = find_near(root, name), _references(root)
    if near:
        return f"did you mean `{near}`?"
    earlier = int(git(root, "rev-list", "--count", "--first-parent", "HEAD") or 1) - 1
    before = f"commits before, up to `HEAD~{earlier}`" if earlier else "no commit before"
    return f"there are {listing(known)}, and {before}; `gpuplan diff` compares the files with the last commit"


_BRANCH: Final = re.compile(r"(?!HEAD$|[0-9a-f]{7,40}$)[A-Za-z][-\w./]*")


def way_to_fetch(root: Path, name: str) -> str:
    """Return the command that fetches a branch, of a remote or by the remote's name for it, into a clone that lacks it.

    It is empty for what is no branch, and for a name alone in a clone of all branches.

    `git clone --depth` implies `--single-branch`: a fetch without a refspec then brings that branch alone
    (https://git-scm.com/docs/git-clone).
    """
    named = re.split(r"[~^:]|@{", name)[0]
    remotes, (remote, _, branch) = text(git(root, "remote") or b"").splitlines(), named.partition("/")
    target, is_shallow = f"refs/remotes/{named}", _is_shallow(root)
    if remote not in remotes and len(remotes) == 1 and _BRANCH.fullmatch(named) and find_near(root, name) is None:
        of_one = b"*" not in (git(root, "config", "--get-all", f"remote.{remotes[0]}.fetch") or b"")
        remote, branch, target = remotes[0], named if of_one or is_shallow else "", f"refs/heads/{named}"
    if not branch or remote not in remotes:
        return ""
    deeper = "--unshallow " if is_shallow else ""
    return f"git fetch {deeper}{remote} {quote(f'+refs/heads/{branch}:{target}')}"


def find_near(root: Path, name: str) -> str | None:
    """Return the branch or tag that a missing revision was most likely meant to be: `main` for `origin/main`, or so."""
    known, last = _references(root), name.rpartition("/")[2]
    if same := next((branch for branch in known if branch == last or branch.partition("/")[2] == name), None):
        return same
    usual = (branch for branch in known if branch in _USUAL) if last in _USUAL else iter(())
    return misspelling(name, known) or next(usual, None)


_USUAL: Final = ("main", "master", "trunk")


def _references(root: Path) -> list[str]:
    listed = git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    return ["HEAD", *text(listed or b"").splitlines()]


def _is_shallow(root: Path) -> bool:
    return git(root, "rev-parse", "--is-shallow-repository") == b"true\n"


class Head(NamedTuple):
    """The commit that files are at, its committer's day, and whether policies differ from it."""

    commit: str
    day: str
    is_changed: bool

    @classmethod
    def find(cls, root: Path, bases: Iterable[str] = ()) -> Head | None:
        """Return the commit that overlays and these bases are at, or None without Git or without a commit."""
        folders = sorted({OVERLAYS, *(bases or DEFAULT_BASES)})
        try:
            revision = find_revision(root, "HEAD")
            if revision is None:
                return None
            dated = text(git(root, "rev-list", "--max-count=1", "--date=short", "--format=%cd", revision.commit))
            with _tree(root, revision) as tree:
                blobs = {f"{top}/{path}": name for top in folders for path, name in tree.contents(top).items()}
        except GpuplanError:
            return None
        found = (path for top in folders for path in (root / top).rglob("*") if path.is_symlink() or path.is_file())
        # Git stores of a link where it leads.
        files = {
            os.path.relpath(path, root): os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            for path in found
            if is_policy_file(path.name)
        }
        has_all = files.keys() == {path for path in blobs if is_policy_file(path)}
        is_same = has_all and not compare_committed(blobs, files).differing
        return cls(revision.commit, dated.split()[-1], not is_same)


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
    line: str = ""
    """The line of `.gitignore` for the whole folder; empty if another pattern, or another file, ignores them."""


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
    line = _line_for(repository.top / repository.prefix)
    return Unadded(tuple(path for path in new if path not in ignored), tuple(ignored.intersection(new)), line)


def _line_for(path: Path) -> str:
    """Return the line of the `.gitignore` beside a folder that is for this folder; empty without one."""
    with suppress(OSError):
        lines = (path.parent / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in lines if line.strip().strip("/*") == path.name), "")
    return ""


def _listed(folder: Path, prefix: str, *options: str) -> frozenset[str]:
    """Return paths from a folder, of which ``prefix`` is the way from the top of its repository."""
    listed = git(folder, "ls-files", "-z", *options, "--", prefix or ".")
    return frozenset(path.removeprefix(prefix) for path in os.fsdecode(listed or b"").split("\0"))
