"""The command `check`, with its options and its help; the module beside does its work."""

from __future__ import annotations

import click

from gpuplan.terminal.options import (
    crds_option,
    findings_option,
    gpu_option,
    kubernetes_option,
    operator_option,
    strictness_option,
)
from gpuplan.terminal.verbs import verb


@verb("checking")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@gpu_option
@kubernetes_option
@operator_option
@crds_option
@findings_option
@strictness_option
def check() -> None:
    """Check manifests and MIG files without a platform.

    `gpuplan validate FILE` does the same. gpuplan checks these files by the rules of `gpuplan validate`: files of the
    MIG manager and of the device plugin (alone, in ConfigMaps, in values of charts, and where Argo CD, Flux or k3s
    install these), ClusterPolicies, quotas, LimitRanges, queues of Kueue and KAI-Scheduler, claims, NodeFeatureRules
    and workloads of any kind. The last line says what was judged. gpuplan reads folders whole, and `-` is stdin.
    `gpuplan build --check` tells whether `out/` is current.

    \b
      gpuplan check mig-parted.yaml --gpu A100-80GB
      gpuplan check manifests/
      kubectl get clusterpolicies,resourcequotas -A -o yaml | gpuplan check -
    """
