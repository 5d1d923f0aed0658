"""`gpuplan check`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from gpuplan.terminal.files import contents
from gpuplan.terminal.options import (
    Output,
    crds_option,
    findings_option,
    is_acceptable,
    strictness_option,
    write_findings,
)
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import completing, option, verb


def _gpus(_: click.Context) -> Iterable[str]:
    from gpuplan.compiler.catalog import load

    return load().ids()


@verb("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="MODEL",
    section="Input",
    shell_complete=completing(_gpus),
    help="Judge partitions on this model, as `gpuplan catalog` calls it; may be repeated [default: whichever fits].",
)
@option(
    "--kubernetes",
    default="",
    metavar="VERSION",
    section="Input",
    help="Judge objects by the schemas of this minor version, such as 1.34 [default: the newest that is known].",
)
@option(
    "--operator",
    default="",
    metavar="VERSION",
    section="Input",
    help="Judge values of the GPU Operator's chart by this release, such as v26.7.0 [default: the one that is named"
    " beside them, else any that is known].",
)
@crds_option
@findings_option
@strictness_option
def command(
    terminal: Terminal,
    files: tuple[str, ...],
    gpus: tuple[str, ...],
    kubernetes: str,
    operator: str,
    crds: Path | None,
    outputs: tuple[Output, ...],
    *,
    warnings_as_errors: bool,
) -> int:
    """Judge files of others as they are, without a platform.

    Files of the MIG manager and of the device plugin, alone, in ConfigMaps or in values of the GPU Operator's chart,
    ClusterPolicies, quotas, LimitRanges, queues of Kueue and KAI-Scheduler, NodeFeatureRules and workloads: by the
    rules by which `gpuplan validate` judges those beside a platform. Folders are read whole, and `-` is stdin. Whether
    `out/` is current is another question: `gpuplan build --check`.

    \b
      gpuplan check mig-parted.yaml --gpu A100-80GB
      gpuplan check manifests/
      kubectl get clusterpolicies,resourcequotas -A -o yaml | gpuplan check -
    """
    from gpuplan.features.files.checking import check_files

    found = dict(contents(files))
    report = check_files(found, gpus=gpus, kubernetes=kubernetes, operator=operator, crds=crds)
    write_findings(terminal, report, outputs)
    return 0 if is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1
