"""What makes Flux sync a cluster's folders: a Kustomization for each, and a HelmRelease where there is a chart.

They are applied by whoever applies `out/flux/<cluster>/`, most often a Kustomization of the cluster's own repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.delivery.flux import helm, kustomizations
from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Plan
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Install

if TYPE_CHECKING:
    from gpuplan.delivery import Folder


def render(plan: Plan, folders: Sequence[Folder]) -> Iterator[Manifest | File]:
    flux = plan.cluster.flux
    if flux is None:
        return
    cluster = about(plan.cluster)
    for applier, body in kustomizations.objects(plan, flux, folders):
        yield Manifest("", body, about=about(applier.pool) if applier.pool else cluster)
    if plan.cluster.gpu_operator.spec.install is Install.HELM:
        yield Manifest("", helm.repository(plan, flux), about=cluster)
        yield Manifest("", helm.release(plan, flux), about=cluster)
