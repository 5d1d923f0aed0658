"""What policies do: the fields of all that is written, and all that is said of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import yaml

from gpuplan.compiler.base.diagnostics import Diagnostic, has_errors
from gpuplan.compiler.manifests import File, Manifest, check_schemas
from gpuplan.compiler.pipeline.definitions import releases
from gpuplan.compiler.pipeline.loading import Repository, load_tree
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import written_for
from tests.laws.tracing.policies import Policies
from tests.laws.tracing.rendered import findings_of

_DIGEST: Final = re.compile(r"-[0-9a-f]{8,10}(?![0-9a-z])")
"""A digest at the end of a name, which says that something else has changed."""


_OF_DELIVERY: Final = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "gpuplan.dev/")


class Effects(NamedTuple):
    """``said`` are the findings, without their places; ``written`` each artifact's fields, by its path."""

    is_valid: bool
    said: frozenset[str]
    repository: Repository

    @property
    def written(self) -> Mapping[str, object]:
        found = (item for plan in self.repository.plans for item in written_for(plan))
        return {_plain(path): fields_of_artifact(artifact) for path, artifact, _ in found}

    @property
    def unfit(self) -> frozenset[str]:
        """What the definitions of these releases do not take."""
        found = (
            (problem.manifest.identity, problem.text)
            for plan in self.repository.plans
            for problem in check_schemas(_manifests(plan), plan.cluster.spec.kubernetes, None, releases(plan))
        )
        return frozenset(_plain(f"{identity}: {text}") for identity, text in found)


def effects_of(policies: Policies, clusters: Iterable[str] = ()) -> Effects:
    """Of the clusters named, or of all; nothing is rendered before somebody looks."""
    repository = load_tree(policies.tree, policies.clusters, tuple(clusters))
    found = list(findings_of(repository))
    return Effects(not has_errors(found), frozenset(map(_words, found)), repository)


def differ(one: Effects, other: Effects) -> bool:
    """What is cheap to compare comes first."""
    return one.said != other.said or one.written != other.written or one.unfit != other.unfit


def _manifests(plan: Plan) -> list[Manifest]:
    return [artifact for _, artifact, _ in written_for(plan) if isinstance(artifact, Manifest)]


def _words(found: Diagnostic) -> str:
    finding = found.finding
    related = [label.text for label in finding.related]
    parts = (found.code, found.severity, finding.message, finding.label, *related, *finding.notes, finding.help)
    return _plain(" | ".join(map(str, parts)))


def fields_of_artifact(artifact: Manifest | File) -> object:
    """What controllers act on: no comments, no annotations for whoever applies the object, no digests in names."""
    if isinstance(artifact, Manifest):
        metadata = dict(artifact.body["metadata"])
        kept = {key: text for key, text in metadata.get("annotations", {}).items() if not key.startswith(_OF_DELIVERY)}
        return _without_digests({**artifact.body, "metadata": {**metadata, "annotations": kept}})
    text = artifact.data.decode()
    if artifact.path.endswith((".yaml", ".json")):
        return _without_digests(list(yaml.load_all(text, Loader=yaml.CSafeLoader)))
    return _plain(text)


def _without_digests(value: object) -> object:
    return json.loads(_plain(json.dumps(value, sort_keys=True, default=str)))


def _plain(text: str) -> str:
    return _DIGEST.sub("-#", text)
