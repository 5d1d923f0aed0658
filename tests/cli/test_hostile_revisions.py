"""A commit may hold anything, since whoever pushes it makes it; to read it writes nothing and reads nothing else."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError, SourceFile
from gpuplan.compiler.documents import files
from gpuplan.compiler.pipeline import validate
from gpuplan.features.changes import revisions as git_tree
from gpuplan.features.changes.revisions import Revision, read_revision
from tests.cli.platforms import TENANT, a_platform, write
from tests.cli.runs import Run, run
from tests.git import TreeEntry, a_commit, a_repository, a_tree, an_object, commit, entries_of, git

FILE, FOLDER, LINK, SUBMODULE = b"100644", b"40000", b"120000", b"160000"
COMMANDS = {
    "diff": ("diff", "main...evil"),
    "diff-against": ("diff", "--against", "evil"),
    "validate": ("validate", "--against", "evil", "--kustomize", "off"),
    "retain": ("retain", "--against", "evil"),
    "rollout": ("rollout", "research", "--to", "small", "--write"),
}
LAYOUT = """\
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {name: small}
spec: {gpu: A100-80GB, instances: {1g.10gb: 7}}
"""
SPARE = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: spare}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, namePattern: "spare-[0-9]+"}
  sharing: {mig: {layout: small}}
"""


class Place(NamedTuple):
    """A platform that somebody works in, and beside it what a hostile commit could be after."""

    root: Path
    victim: Path
    temporary: Path

    def contents(self) -> Mapping[str, bytes]:
        """All that there is but Git's own: files with what they hold, links with where they lead."""
        paths = (
            Path(folder, name) for top in self for folder, *names in os.walk(top) for name in (*names[0], *names[1])
        )
        return {os.fspath(path): _content(path) for path in paths if not path.is_relative_to(self.root / ".git")}


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"-> " + os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A platform whose pool has listed its nodes, so that it can be rolled out; nothing is guaranteed."""
    root = a_platform(a_repository(tmp_path / "platform"))
    pool = (root / "policies/pool.yaml").read_text().replace('namePattern: "research-[0-9]+"', "names: [gpu-1, gpu-2]")
    write(root / "policies/pool.yaml", pool)
    write(root / "policies/layout.yaml", LAYOUT)
    write(root / "policies/tenant.yaml", TENANT.replace("guaranteed: 16", "guaranteed: 0, limit: none"))
    write(tmp_path / "victim/profile.yaml", "original\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    commit(root)
    return Place(root, tmp_path / "victim", tmp_path / "temporary")


def read_hostile(place: Place, tree: str, command: str) -> Run:
    """Make the tree a commit, and run the command that reads it; all that is on the disk has to stay as it is."""
    evil = a_commit(place.root, tree, "evil", git(place.root, "rev-parse", "main"))
    if command == "rollout":  # it compares with the last commit
        git(place.root, "update-ref", "refs/heads/main", evil)
    before = place.contents()
    done = run(*COMMANDS[command], cwd=place.root)
    (place.root / "overlays/dev/rollout-research.yaml").unlink(missing_ok=True)
    assert place.contents() == before
    assert "bug in gpuplan" not in done.err
    return done


def with_policies(root: Path, *entries: TreeEntry) -> str:
    """The tree of the last commit, with more entries in its folder `policies/`."""
    policies = a_tree(root, [*entries_of(root, "main:policies"), *entries])
    kept = [entry for entry in entries_of(root, "main") if entry.name != b"policies"]
    return a_tree(root, [*kept, TreeEntry(FOLDER, b"policies", policies)])


# --- What no checkout could have ---------------------------------------------------------------------------------

Hostile = Callable[[Place], list[TreeEntry]]
"""What to add to `policies/`."""
POISON = b"apiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {name: poison}\nspec: {value: 1}\n"


def a_file(place: Place, name: bytes, mode: bytes = FILE) -> TreeEntry:
    return TreeEntry(mode, name, an_object(place.root, "blob", POISON))


def a_folder(place: Place, name: bytes, *entries: TreeEntry, mode: bytes = FOLDER) -> TreeEntry:
    return TreeEntry(mode, name, a_tree(place.root, entries or [a_file(place, b"profile.yaml")]))


def a_link(place: Place, name: bytes, target: bytes) -> TreeEntry:
    return TreeEntry(LINK, name, an_object(place.root, "blob", target))


def profile(place: Place) -> bytes:
    return os.fsencode(place.victim / "profile.yaml")


NAME = "has an entry whose name no checkout could have: `policies/"
TWICE = "has two entries of one name: `policies/"
IMPOSSIBLE: Mapping[str, tuple[str, Hostile]] = {
    "absolute": (NAME, lambda place: [a_file(place, profile(place))]),
    "absolute-and-linked": (
        NAME,
        lambda place: [a_file(place, profile(place)[:-5]), a_link(place, b"zz", profile(place)[:-5])],
    ),
    "absolute-link": (NAME, lambda place: [a_link(place, profile(place)[:-5] + b"-link", b"/etc/passwd")]),
    "absolute-folder": (NAME, lambda place: [a_folder(place, os.fsencode(place.victim))]),
    "upwards": (NAME + "../../victim/profile.yaml`", lambda place: [a_file(place, b"../../victim/profile.yaml")]),
    "two-dots": (NAME + "..`", lambda place: [a_folder(place, b"..", a_folder(place, b".."))]),
    "one-dot": (NAME + ".`", lambda place: [a_folder(place, b".")]),
    "with-a-slash": (NAME + "sub/x.yaml`", lambda place: [a_file(place, b"sub/x.yaml")]),
    "git": (NAME + ".git`", lambda place: [a_folder(place, b".git", a_file(place, b"config"))]),
    "git-in-capitals": (NAME + ".GiT`", lambda place: [a_folder(place, b".GiT")]),
    "endless-name": (NAME + "xxxx", lambda place: [a_file(place, b"x" * 100_000)]),
    "steering-name": (NAME + "\\x1b[2J/\\n`", lambda place: [a_file(place, b"\x1b[2J/\n")]),
    "no-name": ("has an entry without a name: `policies`", lambda place: [a_file(place, b"")]),
    "two-files": (TWICE + "pool.yaml`", lambda place: [a_file(place, b"pool.yaml")]),
    "file-and-folder": (TWICE + "x`", lambda place: [a_file(place, b"x"), a_folder(place, b"x")]),
    "folder-and-link": (TWICE + "x`", lambda place: [a_folder(place, b"x"), a_link(place, b"x", profile(place))]),
    "unknown-mode": (
        "has an entry of mode 010644, which Git does not know: `policies/x.yaml`",
        lambda place: [a_file(place, b"x.yaml", b"010644")],
    ),
    "folder-for-a-file": (
        "has a tree where a blob belongs: `policies/x.yaml`",
        lambda place: [a_folder(place, b"x.yaml", mode=FILE)],
    ),
    "file-for-a-folder": ("has a blob where a tree belongs: `policies/x`", lambda place: [a_file(place, b"x", FOLDER)]),
    "folder-for-a-link": (
        "has a tree where a blob belongs: `policies/x.yaml`",
        lambda place: [a_folder(place, b"x.yaml", mode=LINK)],
    ),
    "no-tree": (
        "has a folder that is no list of entries: `policies/x`",
        lambda place: [TreeEntry(FOLDER, b"x", an_object(place.root, "tree", b"100644 a"))],
    ),
    "nothing": (
        "git cannot read `policies/x.yaml`: its content is not in this clone",
        lambda place: [TreeEntry(FILE, b"x.yaml", "1" * 40)],
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_checkout_could_have_is_trouble_that_names_it(place: Place, name: str, command: str) -> None:
    message, hostile = IMPOSSIBLE[name]

    done = read_hostile(place, with_policies(place.root, *hostile(place)), command)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "git fsck" in done.err


# --- What a checkout could have ----------------------------------------------------------------------------------

LEAVES = ("GPU005", "link `policies/x.yaml` leaves the repository")
NOWHERE = ("GPU005", "link `policies/x.yaml` points nowhere or to itself")
TO_A_FOLDER = ("GPU005", "link `policies/x.yaml` points to a folder")
NO_FILE = ("GPU004", "`policies/x.yaml` is a folder, not a file")
POSSIBLE: Mapping[str, tuple[tuple[str, str] | None, Hostile]] = {
    "backslashes": (None, lambda place: [a_file(place, b"x\\..\\..\\..\\victim\\x.yaml")]),
    "drive": (None, lambda place: [a_file(place, b"C:x.yaml")]),
    "odd-mode": (None, lambda place: [a_file(place, b"x.yaml", b"100664")]),
    "program": (None, lambda place: [a_file(place, b"x.yaml", b"100755")]),
    "any-mode": (None, lambda place: [a_file(place, b"x.yaml", b"107777")]),
    "odd-folder": (None, lambda place: [a_folder(place, b"x", mode=b"040000")]),
    "link-inside": (None, lambda place: [a_link(place, b"x.yaml", b"./y"), a_file(place, b"y")]),
    "link-out-and-in": (None, lambda place: [a_link(place, b"x.yaml", b"../policies/y"), a_file(place, b"y")]),
    "folder-of-policy-name": (NO_FILE, lambda place: [a_folder(place, b"x.yaml")]),
    "submodule-of-policy-name": (NO_FILE, lambda place: [TreeEntry(SUBMODULE, b"x.yaml", "1" * 40)]),
    "absolute-link": (LEAVES, lambda place: [a_link(place, b"x.yaml", profile(place))]),
    "absolute-link-inside": (
        LEAVES,
        lambda place: [a_link(place, b"x.yaml", os.fsencode(place.root / "policies/pool.yaml"))],
    ),
    "link-upwards": (LEAVES, lambda place: [a_link(place, b"x.yaml", b"../../victim/profile.yaml")]),
    "link-far-upwards": (LEAVES, lambda place: [a_link(place, b"x.yaml", b"../" * 50 + b"etc/passwd")]),
    "link-through-a-link": (
        LEAVES,
        lambda place: [a_link(place, b"x.yaml", b"out/profile.yaml"), a_link(place, b"out", b"../../victim")],
    ),
    "link-to-a-folder": (TO_A_FOLDER, lambda place: [a_link(place, b"x.yaml", b"../overlays")]),
    "link-to-nothing": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"gone.yaml")]),
    "link-through-a-file": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"pool.yaml/../pool.yaml")]),
    "link-to-a-file-as-a-folder": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"pool.yaml/")]),
    "link-to-itself": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"x.yaml")]),
    "link-in-a-circle": (
        NOWHERE,
        lambda place: [a_link(place, b"x.yaml", b"y/z"), a_link(place, b"y", b"y2"), a_link(place, b"y2", b"y")],
    ),
    "long-way-of-links": (
        NOWHERE,
        lambda place: [
            a_link(place, b"x.yaml", b"l1"),
            *(a_link(place, b"l%d" % index, b"l%d" % (index + 1)) for index in range(1, 60)),
            a_file(place, b"l60"),
        ],
    ),
    "empty-link": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"")]),
    "link-with-nul": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"pool.yaml\0../../x")]),
    "endless-link": (NOWHERE, lambda place: [a_link(place, b"x.yaml", b"./" * 5_000_000 + b"pool.yaml")]),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_a_checkout_could_have_is_read_or_found(place: Place, name: str) -> None:
    finding, hostile = POSSIBLE[name]
    tree = with_policies(place.root, *hostile(place))
    evil = Revision("evil", a_commit(place.root, tree, "evil"), "")

    repository = read_revision(place.root, evil)

    found = [(item.code, item.finding.message) for item in repository.diagnostics]
    assert found == ([finding] if finding else [])
    [plan] = repository.plans
    assert ("poison" in [item.name for item in plan.priority_classes]) == (finding is None)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["absolute-link", "link-with-nul", "empty-link", "long-way-of-links", "backslashes"])
def test_and_leaves_the_disk_alone(place: Place, name: str, command: str) -> None:
    done = read_hostile(place, with_policies(place.root, *POSSIBLE[name][1](place)), command)

    assert os.fspath(place.victim) not in done.out + done.err


def test_names_that_differ_by_case_are_two_files(place: Place) -> None:
    tree = with_policies(place.root, a_file(place, b"X.yaml"), a_file(place, b"x.YAML"))

    done = run("diff", f"main..{a_commit(place.root, tree, 'evil')}", cwd=place.root)

    assert done.code == 1
    assert "GPU016" in done.err


def test_what_looks_like_output_hides_no_policies(place: Place) -> None:
    inventory = a_folder(place, b".gpuplan", a_file(place, b"inventory"))
    evil = a_commit(place.root, with_policies(place.root, inventory), "evil")

    done = run("diff", f"main..{evil}", cwd=place.root)

    assert (done.code, done.out.splitlines()[0]) == (0, "none: nothing that is applied differs")


# --- What would never end ----------------------------------------------------------------------------------------


def test_a_tree_of_trees_without_end_is_trouble(place: Place) -> None:
    tree = a_folder(place, b"0", a_file(place, b"a.txt"))
    for _ in range(20):
        tree = a_folder(place, b"0", *(tree._replace(name=b"%d" % index) for index in range(20)))

    done = read_hostile(place, with_policies(place.root, tree), "validate")

    assert done.code == 2
    assert "has folders and links without end: `policies/0/0/0" in done.err


def test_a_tree_of_trees_without_end_that_looks_like_output_is_trouble(place: Place) -> None:
    tree = a_folder(place, b"0", a_file(place, b"a.txt"))
    for _ in range(20):
        tree = a_folder(place, b"0", *(tree._replace(name=b"%d" % index) for index in range(20)))
    top = a_tree(place.root, [*entries_of(place.root, "main"), tree._replace(name=b"out")])

    done = run("diff", f"main..{a_commit(place.root, top, 'evil')}", cwd=place.root)

    assert done.code == 2
    assert "has folders and links without end: `out/0/0/0" in done.err


def test_folders_that_nest_in_trees_of_their_own_are_trouble(place: Place) -> None:
    tree = a_folder(place, b"a")
    for _ in range(2100):
        tree = a_folder(place, b"a", tree)

    done = read_hostile(place, with_policies(place.root, tree), "validate")

    assert done.code == 2
    assert "has folders that nest deeper than any checkout could have: `policies/a/a" in done.err


def test_folders_that_nest_without_end_are_trouble(place: Place) -> None:
    tree = a_folder(place, b"a" * 200)
    for _ in range(30):
        tree = a_folder(place, b"a" * 200, tree)

    done = read_hostile(place, with_policies(place.root, tree), "validate")

    assert done.code == 2
    assert "has folders that nest deeper than any checkout could have: `policies/aaa" in done.err


def test_links_that_lead_around_without_end_are_trouble(place: Place) -> None:
    ways = [a_link(place, b"l%d" % index, b"./" * 2000 + b"l%d" % (index + 1)) for index in range(30)]
    starts = [a_link(place, b"x%d.yaml" % index, b"l0") for index in range(1000)]

    done = read_hostile(place, with_policies(place.root, *ways, *starts), "validate")

    assert done.code == 2
    assert "has folders and links without end: `policies" in done.err


def test_a_large_file_is_found_and_read_no_further_than_to_its_limit(place: Place) -> None:
    large = TreeEntry(FILE, b"x.yaml", an_object(place.root, "blob", b"#" * (64 * 2**20)))
    evil = Revision("evil", a_commit(place.root, with_policies(place.root, large, a_file(place, b"y.yaml")), "e"), "")

    repository = read_revision(place.root, evil)

    assert [(item.code, item.finding.message) for item in repository.diagnostics] == [
        ("GPU003", "file is larger than 8 MiB")
    ]
    assert "poison" in [item.name for item in repository.plans[0].priority_classes]


def test_one_large_file_under_many_names_is_trouble(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(file: SourceFile, **_: object) -> files.Read:
        parsed.append(file.path)
        return (), ()

    monkeypatch.setattr(files, "parse", parse)
    large = TreeEntry(FILE, b"x.yaml", an_object(place.root, "blob", b"#" * (8 * 2**20)))
    folders = [a_folder(place, b"x%02d" % index, large) for index in range(33)]
    evil = Revision("evil", a_commit(place.root, with_policies(place.root, *folders), "evil"), "")

    with pytest.raises(GpuplanError, match=r"has more than 256 MiB of policies: `policies/x00/x\.yaml`"):
        read_revision(place.root, evil)

    assert "policies/tenant.yaml" in parsed
    assert "policies/x00/x.yaml" not in parsed


@pytest.mark.parametrize("number", [10, 11])
def test_what_is_read_is_counted_by_file_and_by_link(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(git_tree, "MOST_BYTES", 2**20)
    one = TreeEntry(FILE, b"x.yaml", an_object(place.root, "blob", b"#" * 100_000))
    links = [a_link(place, b"y%02d.yaml" % index, b"x.yaml") for index in range(number - 2)]
    tree = with_policies(place.root, one, one._replace(name=b"z.yaml"), *links)
    evil = Revision("evil", a_commit(place.root, tree, "evil"), "")

    with pytest.raises(GpuplanError, match="has more than 1 MiB of policies") if number > 10 else nullcontext():
        read_revision(place.root, evil)


def test_many_paths_that_are_passed_over_are_no_trouble(place: Place) -> None:
    tree = a_folder(place, b"0", a_file(place, b"a.txt"))
    for _ in range(20):
        tree = a_folder(place, b"0", *(tree._replace(name=b"%d" % index) for index in range(20)))
    evil = a_commit(place.root, with_policies(place.root, tree._replace(name=b".hidden")), "evil")

    assert [plan.cluster.name for plan in read_revision(place.root, Revision("evil", evil, "")).plans] == ["dev"]


# --- Links that a branch has left in the work tree ---------------------------------------------------------------


def test_a_step_is_written_through_no_link(place: Place) -> None:
    (place.root / "overlays/dev/.rollout-research.yaml.new").symlink_to(place.victim / "profile.yaml")
    (place.root / "overlays/dev/.rollout-research.yaml").symlink_to(place.victim / "profile.yaml")

    done = run("rollout", "research", "--to", "small", "--write", cwd=place.root)

    assert (done.code, done.err) == (0, "wrote overlays/dev/rollout-research.yaml: step 1 of 4\n")
    assert not (place.root / "overlays/dev/rollout-research.yaml").is_symlink()
    assert (place.victim / "profile.yaml").read_text() == "original\n"


@pytest.mark.parametrize("target", ["../../../victim", "../../../victim/gone"])
def test_what_is_retained_is_written_through_no_link(place: Place, target: str) -> None:
    write(place.root / "policies/spare.yaml", SPARE)
    commit(place.root)
    write(place.root / "policies/layout.yaml", LAYOUT.replace("1g.10gb: 7", "3g.40gb: 2"))
    (place.root / "overlays/dev/retained").symlink_to(target)
    before = place.contents()

    done = run("retain", "--write", cwd=place.root)

    assert done.code in (1, 2)
    assert ("GPU005" in done.err) or ("`overlays/dev/retained` is a link or a file, not a folder" in done.err)
    assert place.contents() == before


def test_what_is_retained_goes_through_no_unfinished_file(place: Place) -> None:
    write(place.root / "policies/spare.yaml", SPARE)
    commit(place.root)
    write(place.root / "policies/layout.yaml", LAYOUT.replace("1g.10gb: 7", "3g.40gb: 2"))
    [missing] = [line for line in run("retain", cwd=place.root).out.splitlines() if line.startswith("# overlays/")]
    path = place.root / missing.removeprefix("# ")
    path.parent.mkdir()
    path.with_name(f".{path.name}.new").symlink_to(place.victim / "profile.yaml")

    assert run("retain", "--write", cwd=place.root).code == 0

    assert path.is_file()
    assert not path.is_symlink()
    assert (place.victim / "profile.yaml").read_text() == "original\n"


# --- By chance ---------------------------------------------------------------------------------------------------

NAMES = (
    *(b"x.yaml", b"x", b"pool.yaml", b"POOL.YAML", b"kustomization.yaml", b"cluster.yaml", b".hidden", b"\xff.yaml"),
    *(b"", b".", b"..", b".git", b".GIT", b"a/b.yaml", b"../x.yaml", b"..\\x.yaml", b"\x1b]0;x.yaml", b"x" * 300),
    *(b"policies", b"overlays", b"dev", b"kustomize", b"gpu-operator", b"retained", b".gpuplan", b"inventory"),
)
TARGETS = (
    *(b"", b"/", b"/etc/passwd", b".", b"..", b"../..", b"x.yaml", b"x", b"pool.yaml", b"../policies/pool.yaml"),
    *(b"a\0b", b"../../victim/profile.yaml", b"../../../victim", b"\xff.yaml", b"x/" * 3000, b"/dev/zero"),
)
MODES = (FILE, FILE, FILE, FOLDER, FOLDER, LINK, LINK, SUBMODULE, b"100755", b"0", b"777", b"120777", b"040000")


def by_chance(place: Place, chance: random.Random, depth: int = 0) -> list[TreeEntry]:
    """Entries of some of those names, of which most are what their mode says."""
    names = [*NAMES, profile(place), os.fsencode(place.root / "policies/pool.yaml"), os.fsencode(place.temporary / "x")]
    texts = (POISON, b"{", b"\xff", b"kind: Cluster\n")
    entries = []
    for name in chance.sample(names, chance.randrange(1, 4)) * chance.choice((1, 1, 1, 2)):
        mode = chance.choice(MODES)
        kind = FILE if chance.random() < 0.05 else mode
        if kind in (FOLDER, b"040000") and depth < 3:
            digest = a_tree(place.root, by_chance(place, chance, depth + 1))
        else:
            contents = (*TARGETS, profile(place)) if kind in (LINK, b"120777") else texts
            digest = an_object(place.root, "blob", chance.choice(contents))
        entries.append(TreeEntry(mode, name, digest))
    return entries


def planted(root: Path, folders: Sequence[str], entries: Sequence[TreeEntry], above: str = "main:") -> str:
    """The tree of the last commit, with entries added to one of its folders."""
    there = entries_of(root, above) if above in PLACES[:4] else []
    if not folders:
        return a_tree(root, [*there, *entries])
    name = folders[0].encode()
    inner = planted(root, folders[1:], entries, f"{above}/{folders[0]}".replace(":/", ":"))
    return a_tree(root, [*(entry for entry in there if entry.name != name), TreeEntry(FOLDER, name, inner)])


PLACES = ("main:", "main:policies", "main:overlays", "main:overlays/dev", "main:overlays/dev/kustomize/gpu-operator")


@pytest.mark.parametrize("seed", range(8))
def test_twenty_five_trees_by_chance_change_nothing_on_the_disk(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    trees = []
    for _ in range(25):
        folders = chance.choice(PLACES).removeprefix("main:").split("/")
        trees.append(planted(place.root, [*filter(None, folders)], by_chance(place, chance)))
    commits = [a_commit(place.root, tree, "evil") for tree in trees]
    before = place.contents()

    for evil in commits:
        with suppress(GpuplanError):
            validate(place.root, kustomize="off", against=evil)

    assert place.contents() == before
