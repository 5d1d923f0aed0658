"""Kinds of Argo CD and Flux, which sync everything else."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests.kinds.model import Judgement, Kind

KINDS: Final = (
    Kind(
        group="argoproj.io",
        kind="AppProject",
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
