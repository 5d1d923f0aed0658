"""`gpuplan check`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from gpuplan.cli.commands import completing, option, verb
from gpuplan.cli.lists import read_list
from gpuplan.cli.options import (
    Output,
    crds_option,
    findings_option,
    is_acceptable,
    strictness_option,
    write_findings,
)
from gpuplan.cli.terminal import Terminal

_ENDINGS: Final = (".yaml", ".yml", ".json")
_WAY: Final = "kubectl get ... -o yaml"


def _gpus(_: click.Context) -> Iterable[str]:
    from gpuplan.catalog import load

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
@crds_option
@findings_option
@strictness_option
def command(
    terminal: Terminal,
    files: tuple[str, ...],
    gpus: tuple[str, ...],
    kubernetes: str,
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
    from gpuplan.pipeline.checking import check_files

    found = dict(_contents(files))
    report = check_files(found, gpus=gpus, kubernetes=kubernetes, crds=crds)
    write_findings(terminal, report, outputs)
    return 0 if is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1


def _contents(names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """What is in the files, by the names that findings have; a folder's in the order of their paths.

    Of a folder only regular files count: somebody else may have put a link or a pipe there.
    """
    for name in names:
        if name != "-" and os.path.isdir(name):  # noqa: PTH112 - as the user typed it
            # Servers of CI know `a.yaml`, and not `./a.yaml`.
            yield from ((path.removeprefix("./"), read_list(path, _WAY, is_judged=True)) for path in _below(name))
        else:
            yield "stdin" if name == "-" else name, read_list(name, _WAY, is_judged=True)


def _below(folder: str) -> Iterator[str]:
    """YAML and JSON of a folder, but for what is hidden."""
    found: list[str] = []
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += (
            os.path.join(here, name)  # noqa: PTH118 - as the user typed the first part
            for name in files
            if name.endswith(_ENDINGS) and not name.startswith(".") and _is_regular(os.path.join(here, name))  # noqa: PTH118
        )
    if not found:
        from gpuplan.diagnostics import GpuplanError

        raise GpuplanError(f"there is no file below `{folder}` that ends in {', '.join(_ENDINGS)}", "name another one")
    yield from sorted(found)


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)
