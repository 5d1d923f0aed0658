"""A platform in memory, rendered: every object of every cluster, with its leaves and the places that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from gpuplan.compiler.base.diagnostics import Diagnostic, Path, has_errors
from gpuplan.compiler.checks.generated import PATCH_CHECKS
from gpuplan.compiler.manifests import File, Identity, Manifest
from gpuplan.compiler.manifests.provenance import How, Link
from gpuplan.compiler.pipeline import judge_plan
from gpuplan.compiler.pipeline.between_clusters import check_together
from gpuplan.compiler.pipeline.generated import judge_asked
from gpuplan.compiler.pipeline.loading import Repository, load_tree
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.parse import document_of
from gpuplan.features.changes.retaining import judge_retained
from gpuplan.features.tracing.engine import Leaf, Traced, trace_artifact, written_for
from tests.laws.tracing.policies import Place, Policies

Key = tuple[str, Identity | str]
"""The cluster's folder of a tool, and the object or the file in it."""


class Invalid(Exception):  # noqa: N818 - what the policies are
    """The policies have errors."""


class Source(NamedTuple):
    """A place that a leaf comes from."""

    how: How
    place: Place


class Object:
    """One artifact; its leaves are only looked for where somebody asks."""

    def __init__(self, key: Key, plan: Plan, path: str, artifact: Manifest | File) -> None:
        self.key = key
        self._plan = plan
        self._path = path
        self.artifact = artifact

    @property
    def content(self) -> object:
        return self.artifact.body if isinstance(self.artifact, Manifest) else self.artifact.data

    @cached_property
    def traced(self) -> Traced:
        return trace_artifact(self._plan, self._path, self.artifact)

    @cached_property
    def leaves(self) -> Mapping[Path, Leaf]:
        return {(route := self._route(leaf)): leaf._replace(path=route) for leaf in self.traced.leaves}

    def _route(self, leaf: Leaf) -> Path:
        """An item of a list of files is where its name says: kustomize has no other order."""
        is_list = isinstance(self.artifact, File) and self.artifact.path.endswith("kustomization.yaml")
        return (*leaf.path[:-1], str(leaf.value)) if is_list and isinstance(leaf.path[-1], int) else leaf.path

    @cached_property
    def whole(self) -> frozenset[Source]:
        return _sources(self.traced.whole)

    def own(self, leaf: Leaf) -> frozenset[Source]:
        return _sources(leaf.own)

    def sources(self, leaf: Leaf) -> frozenset[Source]:
        return self.whole | self.own(leaf)

    def shape(self, path: Path) -> str:
        """What leaves at such a place have in common: the kind of object and the route without numbers."""
        kind = self.key[1].kind if isinstance(self.key[1], Identity) else self.key[1]
        return f"{kind} {spelt(tuple('*' if isinstance(part, int) else part for part in path))}"

    def __str__(self) -> str:
        folder, what = self.key
        if isinstance(what, str):
            return f"{folder}:{what}"
        return f"{folder}:{what.kind}/{what.namespace + '/' if what.namespace else ''}{what.name}"


class Change(NamedTuple):
    """A leaf that two trees have differently: in the new one where it is only there, else in the old one."""

    object: Object
    leaf: Leaf
    is_new: bool

    @property
    def shape(self) -> str:
        return self.object.shape(self.leaf.path)

    @property
    def title(self) -> str:
        return f"{'+' if self.is_new else ''}{self.object} {spelt(self.leaf.path)}"


class Rendered:
    """All that is written of some clusters."""

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        self.plans = plans

    @cached_property
    def objects(self) -> Mapping[Key, Object]:
        found: dict[Key, Object] = {}
        for plan in self.plans:
            for path, artifact, _ in written_for(plan):
                start = path.index(f"{plan.cluster.name}/") + len(plan.cluster.name)
                what = artifact.identity if isinstance(artifact, Manifest) else path[start + 1 :]
                key = path[:start], what
                while key in found:
                    key = f"{key[0]}+", what
                found[key] = Object(key, plan, path, artifact)
        return found

    def changes_to(self, new: Rendered) -> Iterator[Change]:
        """Every leaf that differs."""
        for key in {**self.objects, **new.objects}:
            old, other = self.objects.get(key), new.objects.get(key)
            if old and other and old.content == other.content:
                continue
            before = old.leaves if old else {}
            after = other.leaves if other else {}
            for path, leaf in before.items():
                assert old is not None
                if path not in after or after[path].value != leaf.value:
                    yield Change(old, leaf, is_new=False)
            for path, leaf in after.items():
                assert other is not None
                if path not in before:
                    yield Change(other, leaf, is_new=True)


def render(policies: Policies, clusters: frozenset[str] = frozenset()) -> Rendered:
    """Render valid policies, for the clusters named or for all; `Invalid` for others."""
    repository = load_tree(policies.tree, policies.clusters, tuple(clusters))
    if has_errors(findings_of(repository)):
        raise Invalid
    return Rendered(repository.plans)


_OF_PATCHES = frozenset(check.rule.code for check in PATCH_CHECKS)
"""Another key makes a patch another one, which no object may have."""


def findings_of(repository: Repository) -> Iterator[Diagnostic]:
    """What is said of policies before anything is rendered."""
    yield from repository.diagnostics
    for plan in repository.plans:
        yield from judge_plan(plan)
        if any(workload.pod_patch for workload in plan.workloads):
            yield from (found for found in judge_asked(plan, ()) if found.code in _OF_PATCHES)
        if plan.retained:
            yield from judge_retained(plan)
    yield from check_together(repository.plans)


def _sources(links: Iterable[Link]) -> frozenset[Source]:
    """Those in policies: no policy changes a fact of the catalog."""
    return frozenset(source_of(link) for link in links if link.how is not How.FACT)


def source_of(link: Link) -> Source:
    """The place of a link as the file has it; each document is a line below the one that starts it."""
    document = document_of(link.at)
    assert document is not None
    layer = document.find_layer(link.at.path)
    assert layer is not None, link.at.path
    return Source(link.how, Place(layer.file.path, layer.line // 2, link.at.path))


def spelt(path: Path) -> str:
    return ".".join(map(str, path)) or "."
