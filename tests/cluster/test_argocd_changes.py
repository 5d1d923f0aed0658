"""`gpuplan diff` against what Argo CD did: commits of many kinds, one after the other, each reverted; `make proof`.

What is compared is which Applications a commit moves, which of them wait for whom, and what a revert leaves behind.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.cli.runs import run
from tests.cluster.argo_cd import MODULE
from tests.cluster.edits import COMMITS, Commit
from tests.cluster.example import REPOSITORY
from tests.cluster.gpu_operator import RELEASE
from tests.cluster.lab import Lab, syncing
from tests.cluster.processes import until
from tests.cluster.programs import need_go, release
from tests.cluster.proof import only_in_proof
from tests.cluster.watching import Seen, Watch, live, why

pytestmark = only_in_proof

PAGE: Final = REPOSITORY / "docs/proof/argocd-changes.md"
PARENT: Final = "gpuplan-dev"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    need_go()
    with syncing(tmp_path_factory.mktemp("lab"), "dev", plays_operator=True) as lab:
        lab.adopt()
        lab.finish()
        yield lab


@dataclass(frozen=True, slots=True)
class Said:
    """What `gpuplan diff` says of a step; names are those of Applications, or of sets of them."""

    change_class: str
    synced: frozenset[str]
    by_hand: frozenset[str]
    waits: dict[str, list[str]]
    refused: frozenset[str]
    """Those that change nothing, since an object cannot be changed."""
    left: dict[str, list[str]]
    """Applications whose folder is gone, and namespaces that each has."""
    undo: tuple[str, ...]
    findings: tuple[str, ...]


GROUPS: Final = ("pruned", "ended", "refused", "left")
"""What an Application may wait for: a confirmation, Jobs, a deletion, and what is left of a folder that went."""


def said(lab: Lab, *arguments: str) -> Said:
    printed = run("diff", *arguments, "--output-format", "json", cwd=lab.root)
    found = json.loads(printed.out)
    clusters = found["clusters"]
    changes = [change for cluster in clusters for change in cluster["changes"]]
    objects = [body for cluster in clusters for body in cluster["objects"]]
    appliers = [applier for change in changes for applier in change["applied_by"]]
    named = {(name, applier["approval"]) for applier in appliers for name in _applications(lab, applier)}
    folders = {folder for change in changes for folder in change["folders"]} | {body["folder"] for body in objects}
    named |= {(PARENT, "automatic") for folder in folders if folder == "argocd"}
    named |= {applier for body in objects for applier in _appliers(lab, body["folder"])}
    waits = [wait for cluster in clusters for wait in cluster["waits"]]
    return Said(
        found["class"],
        frozenset(name for name, approval in named if approval == "automatic"),
        frozenset(name for name, approval in named if approval == "manual"),
        {wait["application"]: [item["name"] for group in GROUPS for item in wait[group]] for wait in waits},
        frozenset(wait["application"] for wait in waits if wait["refused"]),
        {
            wait["application"]: [item["name"] for item in wait["left"] if item["kind"] == "Namespace"]
            for wait in waits
            if wait["left"]
        },
        tuple(dict.fromkeys(change["undo"] for change in changes)),
        tuple(finding["code"] for finding in found["findings"]),
    )


def _applications(lab: Lab, applier: Mapping[str, Any]) -> list[str]:
    """All that an ApplicationSet makes, where it stands for them."""
    if applier["kind"] != "ApplicationSet":
        return [applier["name"]]
    found = lab.argocd.applications()
    owners = {
        name: [owner["name"] for owner in body["metadata"].get("ownerReferences", ())] for name, body in found.items()
    }
    return [name for name, sets in owners.items() if applier["name"] in sets]


def _appliers(lab: Lab, folder: str) -> Iterator[tuple[str, str]]:
    """Whose source a cluster's folder is, and who starts its syncs."""
    for name, body in lab.argocd.applications().items():
        spec = body["spec"]
        if f"out/{lab.cluster}/{folder}" in [
            source.get("path") for source in spec.get("sources", [spec.get("source")])
        ]:
            yield name, "automatic" if "automated" in spec["syncPolicy"] else "manual"


def disagreements(said: Said, seen: Seen) -> list[str]:
    """Where the two differ; a sync that waits for a Job that soon ends is not seen at the end.

    The parent prunes nothing, so that it stays as it is where Applications only leave.
    """
    if PARENT in seen.waiting and PARENT in said.synced:
        seen.waiting.remove(PARENT)
        said = replace(said, synced=said.synced - ({PARENT} - {*seen.synced}))
    found = [f"{name} was synced, unsaid" for name in sorted({*seen.synced} - said.synced)]
    found += [f"{name} was not synced" for name in sorted(said.synced - {*seen.synced} - said.refused)]
    found += [f"{name} waits for a person, unsaid" for name in sorted({*seen.waiting} - said.by_hand)]
    found += [f"{name} waits for nobody" for name in sorted(said.by_hand - {*seen.waiting})]
    found += [f"{name} waits, unsaid: {text}" for name, text in seen.waits.items() if name not in said.waits]
    found += [f"{name} is blind, unsaid: {text}" for name, text in seen.blind.items() if name not in said.waits]
    return found


def do(lab: Lab, said: Said, seen: Seen) -> None:
    """What `gpuplan diff` says that a person types; what is refused is reverted in any case."""
    for name in seen.waits:
        lab.argocd.confirm(name)
    for name in seen.waiting:
        lab.argocd.sync(name)
    for name in said.left:
        for namespace in said.left[name]:
            lab.api.delete(f"/api/v1/namespaces/{namespace}")
        lab.argocd.delete(name)
        lab.argocd.confirm(name)


@pytest.mark.parametrize("commit", COMMITS, ids=lambda commit: commit.title)
def test_what_diff_says_is_what_happens(lab: Lab, commit: Commit) -> None:
    before = live(lab)
    wrong = []
    with Watch(lab) as watch:
        commit.make(lab.root)
        there = said(lab)
        lab.push(commit.title)
        watch.begin()
        seen = watch.settled()
        wrong += disagreements(there, seen)
        watch.begin()
        do(lab, there, seen)
        watch.settled()
        lab.repository.bring_back("policies", "overlays")
        back = said(lab)
        lab.push(f"Revert: {commit.title}")
        watch.begin()
        undone = watch.settled()
        wrong += [f"back: {text}" for text in disagreements(replace(back, refused=there.refused), undone)]
        watch.begin()
        do(lab, back, undone)
        watch.settled()
    after = live(lab)
    left = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    print(commit.title, there, seen, back, undone, f"left: {left}", sep="\n  ", flush=True)
    assert wrong == [], why(lab)
    ROWS.append(row(commit, there, seen, undone, left))


ROWS: Final[list[str]] = []
TITLE: Final = """\
# What a commit does, as Argo CD does it

`make proof` commits these to the example platform, one after the other, beside Argo CD {release}, an API server of
Kubernetes 1.34 and the chart of the GPU Operator {operator}, whose operator is played and ready at once; then it takes
each back. `gpuplan diff` says before which Applications sync by themselves, which a person starts, and which wait; in
each row what was said is what happened, on the way there and on the way back. Applications are in the order in which
their syncs began. "As it was" says that all objects were compared but for Jobs, which run anew; a ConfigMap that a pod
or a node may still name is kept, and a Service that was deleted has another address.

| commit | class | synced | waits | taken back |
|---|---|---|---|---|
"""


def row(commit: Commit, said: Said, seen: Seen, undone: Seen, left: Sequence[str]) -> str:
    names = {*seen.waits, *seen.blind, *seen.waiting, *said.refused}
    waits = [f"`{name}`: {_wait(said, seen, name)}" for name in sorted(names)]
    back = [f"waits: `{name}`: {_wait(said, undone, name)}" for name in sorted({*undone.waits, *undone.blind})]
    back.append("as it was" if not left else f"differs: {', '.join(left)}")
    cells = (
        commit.title,
        said.change_class,
        ", ".join(f"`{name}`" for name in dict.fromkeys(seen.synced)),
        "; ".join(waits),
        "; ".join(back),
    )
    return f"| {' | '.join(cells)} |"


def _wait(said: Said, seen: Seen, name: str) -> str:
    if name in said.refused:
        return "an object cannot be changed"
    if name in seen.blind:
        return "its folder is gone"
    return "a person" if name in seen.waiting else seen.waits[name]


def test_the_page_is_written() -> None:
    if len(ROWS) == len(COMMITS):
        title = TITLE.format(release=release("argo-cd", MODULE), operator=RELEASE)
        PAGE.write_text(title + "\n".join([*ROWS, ""]), encoding="utf-8")


def test_what_is_killed_amid_a_sync_comes_to_the_same_end(lab: Lab) -> None:
    """Thirty times: a commit, and one or two of Argo CD's programs killed at a drawn moment of its sync."""
    random = Random(31)
    quiet = [commit for commit in COMMITS if commit.title in QUIET]
    assert len(quiet) == len(QUIET)
    first = live(lab)
    for number in range(15):
        for back in (False, True):
            commit = quiet[number % len(quiet)]
            if back:
                lab.repository.bring_back("policies", "overlays")
            else:
                commit.make(lab.root)
            names = said(lab).synced
            revision = lab.push(f"{'Revert' if back else 'Make'}: {commit.title}")
            time.sleep(random.uniform(0, 5))
            for name in random.sample(sorted(lab.argocd.programs), random.choice((1, 2))):
                lab.argocd.restart(name)
            until(partial(are_at, lab, names, revision), "it is synced", seconds=180)
            lab.argocd.settle(lab.scaled())
    last = live(lab)  # and what Argo CD keeps of files that pods mount
    assert {name: last.get(name) for name in first} == first


EARLIER: Final = os.environ.get("GPUPLAN_TEST_EARLIER", "1bec0685")
"""The commit that an upgrade comes from: by default the first whose `out/` Argo CD syncs to its end."""


def test_an_upgrade_does_what_diff_says(tmp_path: Path) -> None:
    """The policies stay, and what another gpuplan built of them is built anew."""
    need_go()
    archive = subprocess.run(["git", "archive", EARLIER, "gpuplan"], cwd=REPOSITORY, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path / "earlier", filter="data")
    (tmp_path / "lab").mkdir()
    with syncing(tmp_path / "lab", "dev", built_by=partial(_built_by, tmp_path / "earlier")) as lab:
        lab.adopt()
        lab.finish()
        there = said(lab, "--against", "./out")
        with Watch(lab) as watch:
            lab.push("Build with another gpuplan")
            watch.begin()
            seen = watch.settled()
        print(there, seen, sep="\n  ")
        assert disagreements(there, seen) == [], why(lab)
        assert there.synced


def _built_by(package: Path, tree: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    subprocess.run([sys.executable, "-m", "gpuplan", "build", "--quiet"], cwd=tree, env=environment, check=True)


QUIET: Final = (
    "another description of a priority class",
    "a smaller quota",
    "one more member",
    "another image of a service",
    "another configuration of a service",
    "fewer pods of a service",
    "a value of the operator",
)
"""Commits that ask nobody for anything."""


def are_at(lab: Lab, names: Iterable[str], revision: str) -> bool:
    """Whether these Applications have synced a commit."""
    found = lab.argocd.applications()
    ends = (found[name].get("status", {}).get("operationState", {}) for name in names)
    return all(end.get("phase") == "Succeeded" and revision in _revisions(end) for end in ends)


def _revisions(operation: Mapping[str, Any]) -> Sequence[str]:
    result = operation.get("syncResult", {})
    return result.get("revisions") or [result.get("revision", "")]
