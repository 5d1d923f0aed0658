"""Repositories that show what the example clusters do not, built into a temporary folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cli.runs import run
from tests.cluster.example import REPOSITORY

VARIANT = "variant"
"""The name of the only cluster of such a repository."""

_CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v26.7.0}}
  {delivery}
  {settings}
"""
ARGOCD = f"argocd: {{repoURL: https://git.example.com/platform/gpu.git, destination: {{name: {VARIANT}}}}}"
FLUX = "flux: {}"


def make_variant(
    root: Path,
    settings: str,
    changes: str = "",
    *,
    delivery: str = ARGOCD,
    policies: Path | None = REPOSITORY / "policies",
) -> Path:
    """A built repository: the example's policies or others, a cluster with these settings, and what it changes."""
    if policies is not None:
        shutil.copytree(policies, root / "policies")
    overlay = root / "overlays" / VARIANT
    overlay.mkdir(parents=True)
    cluster = _CLUSTER.format(name=VARIANT, delivery=delivery, settings=settings)
    (overlay / "cluster.yaml").write_text(cluster, encoding="utf-8")
    (overlay / "policies.yaml").write_text(changes, encoding="utf-8")
    rebuild(root)
    return root


def rebuild(root: Path) -> None:
    built = run("build", cwd=root)
    assert built.code == 0, built.err
