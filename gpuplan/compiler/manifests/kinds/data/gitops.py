"""Kinds of Argo CD and Flux, which sync everything else."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Judgement, Kind

KINDS: Final = (
    Kind(
        group="argoproj.io",
        kind="AppProject",
        why="Argo CD applies what a project allows, and nothing else; see docs/explanation/what-is-written.md",
        source="argoproj/argo-cd: pkg/apis/application/v1alpha1/types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="argoproj.io",
        kind="Application",
        why="there is one Application for each disturbance; see docs/explanation/split-applications.md",
        source="argoproj/argo-cd: pkg/apis/application/v1alpha1/types.go; controller/appcontroller.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=ChangeClass.METADATA,
        removed=Judgement.SYNCED_OBJECTS,
        fields={"spec.destination": ChangeClass.DESTRUCTIVE, "spec.sources": Judgement.CHARTS},
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="argoproj.io",
        kind="ApplicationSet",
        why="each namespace gets an Application of its own; see docs/explanation/split-applications.md",
        source="argoproj/argo-cd: pkg/apis/application/v1alpha1/applicationset_types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=ChangeClass.METADATA,
        immutable=(),
        outlives_policy=False,
    ),
    # With `prune` it takes along what it wrote.
    Kind(
        group="kustomize.toolkit.fluxcd.io",
        kind="Kustomization",
        why="Flux syncs each folder by itself, in order; see docs/how-to/deliver-with-flux.md",
        source="fluxcd/kustomize-controller: api/v1/kustomization_types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.SYNCED_OBJECTS,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="helm.toolkit.fluxcd.io",
        kind="HelmRelease",
        why="Flux installs the charts that the cluster asks for; see docs/how-to/deliver-with-flux.md",
        source="fluxcd/helm-controller: api/v2/helmrelease_types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
    Kind(
        group="source.toolkit.fluxcd.io",
        kind="HelmRepository",
        why="Flux finds a chart that it installs by this; see docs/how-to/deliver-with-flux.md",
        source="fluxcd/source-controller: api/v1/helmrepository_types.go",
        is_namespaced=True,
        is_custom=True,
        added=Judgement.BY_FOLDER,
        changed=Judgement.BY_FOLDER,
        removed=Judgement.BY_FOLDER,
        immutable=(),
        outlives_policy=False,
    ),
)
