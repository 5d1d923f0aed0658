"""A new gpuplan does not surprise: `diff --against` the `out/` of an earlier one says only what is listed.

`allowed.yaml` is the list. Nothing in it that disturbs may come of the upgrade alone: it has one line of policy that
keeps the old, which is tried here, or the reason why there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from gpuplan.compiler.base.disturbance import ChangeClass
from tests.cli.runs import REPOSITORY, run, scrub
from tests.laws.upgrades import releases

# Pods of the operator that nothing with GPUs waits for.
WATCHERS = frozenset({"nvidia-dcgm", "nvidia-dcgm-exporter", "nvidia-node-status-exporter"})


@dataclass(frozen=True)
class Row:
    """A line of the list."""

    since: tuple[str, ...]
    clusters: tuple[str, ...]
    kind: str
    name: str
    change_class: str
    why: str
    keeps: tuple[str, str, Any] | None
    nothing_keeps: str

    @property
    def releases(self) -> tuple[str, ...]:
        return tuple(name for name in RELEASES if any(fnmatchcase(name, since) for since in self.since))

    def allows(self, release: str, found: Found) -> bool:
        here = release in self.releases and found.cluster in self.clusters
        return here and found.named == (self.kind, self.change_class) and fnmatchcase(found.name, self.name)

    def keeping(self, cluster: str) -> tuple[str, str, str] | None:
        """The one line, as its file, its field and its value in JSON."""
        if self.keeps is None:
            return None
        file, field, value = self.keeps
        return file.format(cluster=cluster), field, json.dumps(value)


@dataclass(frozen=True)
class Found:
    """An object that differs."""

    cluster: str
    kind: str
    name: str
    change_class: str
    daemon_sets: frozenset[str]

    @property
    def named(self) -> tuple[str, str]:
        return self.kind, self.change_class

    @property
    def disturbs(self) -> bool:
        watching = bool(self.daemon_sets) and self.daemon_sets <= WATCHERS
        return ChangeClass(self.change_class) > ChangeClass.METADATA and not (
            watching and self.change_class == "plugin-restart"
        )


def _rows() -> tuple[Row, ...]:
    listed = yaml.safe_load((Path(__file__).parent / "allowed.yaml").read_text(encoding="utf-8"))
    return tuple(_row(**fields) for fields in listed)


def _row(since: list[str], clusters: list[str], kind: str, name: str, why: str, **more: Any) -> Row:
    keeps = (more["keeps"]["file"], more["keeps"]["field"], more["keeps"]["value"]) if "keeps" in more else None
    return Row(tuple(since), tuple(clusters), kind, name, more["class"], why, keeps, more.get("nothing_keeps", ""))


ROWS = _rows()
RELEASES = releases.names()


@cache
def _upgraded(release: str, kept: tuple[str, str, str] | None = None) -> tuple[Found, ...]:
    """What differs between the release's `out/` and what its policies give now, one line added to them."""
    texts = releases.tree(release)
    with TemporaryDirectory() as folder:
        for path, text in _with(texts, kept).items():
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        done = run("-C", folder, "diff", "--against", f"{folder}/out", "-o", "json")
    assert done.code in {0, 1}, done.err
    return tuple(_found(json.loads(done.out)))


def _with(texts: Mapping[str, str], kept: tuple[str, str, str] | None) -> Mapping[str, str]:
    if kept is None:
        return texts
    path, field, value = kept
    documents = list(yaml.safe_load_all(texts[path]))
    part = documents[0]
    *above, last = field.split(".")
    for key in above:
        part = part.setdefault(key, {})
    part[last] = yaml.safe_load(value)
    return {**texts, path: yaml.safe_dump_all(documents)}


def _found(said: Mapping[str, Any]) -> Iterator[Found]:
    assert said["not_compared"] == []
    assert said["findings"] == []
    for cluster in said["clusters"]:
        assert cluster["changes"] == [], "an `out/` has no policies to compare"
        for found in cluster["objects"]:
            sets = frozenset(found.get("daemonSets", ()))
            yield Found(cluster["name"], found["kind"], found["name"], found["class"], sets)


@pytest.fixture(autouse=True)
def scrubbed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    scrub(monkeypatch)


def _unlisted(release: str, found: tuple[Found, ...], rows: tuple[Row, ...] = ROWS) -> list[Found]:
    return [each for each in found if not any(row.allows(release, each) for row in rows)]


@pytest.mark.parametrize("release", RELEASES)
def test_an_upgrade_changes_what_is_listed_and_says_its_class(release: str) -> None:
    assert _unlisted(release, _upgraded(release)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_what_disturbs_has_a_line_that_keeps_the_old_or_a_reason(release: str) -> None:
    disturbing = [found for found in _upgraded(release) if found.disturbs]
    rows = [row for row in ROWS if any(row.allows(release, found) for found in disturbing)]
    assert [row for row in rows if not (row.why and (row.keeps or row.nothing_keeps))] == []


def test_no_row_of_the_list_is_stale() -> None:
    """A row may be of what is left where one line keeps the rest."""
    unused = [
        (row.kind, row.name, release, cluster)
        for row in ROWS
        for release in row.releases
        for cluster in row.clusters
        if not any(row.allows(release, each) and each.cluster == cluster for each in _ever(release, cluster))
    ]
    assert unused == []


def _ever(release: str, cluster: str) -> Iterator[Found]:
    """With the policies as they are, and with each line that keeps something."""
    yield from _upgraded(release)
    for row in ROWS:
        if cluster in row.clusters and (line := row.keeping(cluster)):
            yield from _upgraded(release, line)


# Lists of a kustomization that an upgrade changes though what they name is still there.
RELISTED = {
    "out/argocd/kustomization.yaml: openshift": "a cluster with an Argo CD of its own is not for that of the others"
}


def _listed(texts: Mapping[str, str]) -> set[str]:
    return {
        f"{path}: {entry}"
        for path, text in texts.items()
        if path.endswith("/kustomization.yaml") and path.startswith("out/")
        for entry in yaml.safe_load(text).get("resources", ())
    }


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_left_out_of_a_list_or_put_in_but_with_its_file(release: str, tmp_path: Path) -> None:
    before = releases.tree(release)
    for path, text in before.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert run("-C", str(tmp_path), "build").code == 0
    after = {str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml")}
    changed = _listed(before) ^ _listed(after)
    assert {each for each in changed if _is_there(before, each) and _is_there(after, each)} == set(RELISTED)


def _is_there(texts: Mapping[str, str], listed: str) -> bool:
    path, _, entry = listed.partition(": ")
    named = f"{Path(path).parent.as_posix()}/{entry}"
    return any(other == named or other.startswith(f"{named}/") for other in texts)


KEPT = [(row, release, cluster) for row in ROWS if row.keeps for release in row.releases for cluster in row.clusters]


@pytest.mark.parametrize(("row", "release", "cluster"), KEPT)
def test_one_line_of_policy_keeps_the_old(row: Row, release: str, cluster: str) -> None:
    """What is left is of other rows."""
    found = tuple(each for each in _upgraded(release, row.keeping(cluster)) if each.cluster == cluster)
    assert _unlisted(release, found, tuple(each for each in ROWS if each is not row)) == []


def test_the_changelog_says_how_to_keep_the_old() -> None:
    unreleased = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## 0.1.0")[0]
    lines = {f"{row.keeps[1].rpartition('.')[2]}: {row.keeps[2]}" for row in ROWS if row.keeps}
    assert {line for line in lines if line not in unreleased} == set()


def test_a_release_is_read_back_as_it_was_written() -> None:
    newest = releases.tree(RELEASES[-1])
    changed = {path: text for path, text in newest.items() if not path.startswith("out/dev/")} | {"out/new": "a\n"}
    text = releases.written(changed, RELEASES[-1])
    assert releases.read(text) == changed
    assert len(text) < len(releases.written(newest)) / 10
