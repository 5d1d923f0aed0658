"""The command `check`, with its options and its help; the module beside does its work."""

from __future__ import annotations

import click

from gpuplan.terminal.options import crds_option, findings_option, gpu_models, strictness_option
from gpuplan.terminal.verbs import completing, option, verb


@verb("checking")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="MODEL",
    section="Input",
    shell_complete=completing(gpu_models),
    help="Check partitions on this GPU model, by its name in `gpuplan catalog`; may be repeated "
    "[default: any model that fits].",
)
@option(
    "--kubernetes",
    default="",
    metavar="VERSION",
    section="Input",
    help="Check objects by the schemas of this minor version, such as 1.34 [default: the newest known version].",
)
@option(
    "--operator",
    default="",
    metavar="VERSION",
    section="Input",
    help="Check values of the GPU Operator's chart by this release, such as v26.7.0 [default: the release named "
    "beside them, else any known release].",
)
@crds_option
@findings_option
@strictness_option
def check() -> None:
    """Judge files of others as they are, without a platform.

    gpuplan applies the rules of `gpuplan validate` to files of the MIG manager and of the device plugin, alone, in
    ConfigMaps or in values of the GPU Operator's chart. It also checks ClusterPolicies, quotas, LimitRanges, queues of
    Kueue and KAI-Scheduler, NodeFeatureRules and workloads. FILE may be a folder, or `-` for stdin. To check whether
    `out/` is current, use `gpuplan build --check`.

    \b
      gpuplan check mig-parted.yaml --gpu A100-80GB
      gpuplan check manifests/
      kubectl get clusterpolicies,resourcequotas -A -o yaml | gpuplan check -
    """
