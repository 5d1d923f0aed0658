"""The folder of a pool that is gone is delivered for as long as it holds what its nodes keep; a person starts it."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.cli.runs import run
from tests.plans import CLUSTER

ARGOCD = "  argocd: {repoURL: https://git.example.com/platform.git}\n"
FLUX = "  flux: {}\n"
DOCUMENTS = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: right}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [b, c]}
  sharing: {exclusive: {}}
  disruption: {approval: automatic}
---
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: moved}
spec:
  nodes:
    pool: left
    names: [b]
    labels: {gpuplan.dev/pool: left, nvidia.com/mig.config: all-disabled}
  until: it is there
"""


def _build(root: Path, tool: str) -> None:
    overlay = root / "overlays" / "test"
    overlay.mkdir(parents=True)
    (overlay / "test.yaml").write_text(CLUSTER + tool + DOCUMENTS, encoding="utf-8")
    assert run("build", cwd=root).code == 0


def test_with_argo_cd(tmp_path: Path) -> None:
    _build(tmp_path, ARGOCD)
    found = yaml.safe_load((tmp_path / "out/argocd/test/application-gpu-partitions-test-left.yaml").read_text())
    assert found["spec"]["source"]["path"] == "out/test/partitions/left"
    assert "automated" not in found["spec"]["syncPolicy"]


def test_with_flux(tmp_path: Path) -> None:
    _build(tmp_path, FLUX)
    [path] = (tmp_path / "out/flux/test").glob("kustomization-*-partitions-test-left.yaml")
    found = yaml.safe_load(path.read_text())
    assert found["spec"]["path"] == "./out/test/partitions/left"
    assert found["spec"]["suspend"] is True


def test_a_folder_lists_what_keeps_nodes_before_the_rule_of_the_pool(tmp_path: Path) -> None:
    """`kubectl apply -k` goes through the files in this order."""
    _build(tmp_path, "")
    found = yaml.safe_load((tmp_path / "out/test/partitions/left/kustomization.yaml").read_text())
    assert found["resources"] == ["nodefeaturerule-gpuplan-kept-moved.yaml", "nodefeaturerule-gpuplan-pool-left.yaml"]
    assert "left" in yaml.safe_load((tmp_path / "out/test/partitions/kustomization.yaml").read_text())["resources"]
