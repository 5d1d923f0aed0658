"""Charts as Helm renders them: Kueue's comes with its module, others lie in mirrors of their repositories."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api import Object
from tests.cluster.programs import program, source

MIRRORS = os.environ.get("GPUPLAN_SOURCES", "")
KUEUE = "kubernetes-sigs/kueue"
KAI = "kai-scheduler/KAI-Scheduler"
OPERATOR = "NVIDIA/gpu-operator"
HELM_CONTROLLER = "fluxcd/helm-controller"
_FOLDERS = {
    KUEUE: "charts/kueue",
    KAI: "deployments/kai-scheduler",
    OPERATOR: "deployments/gpu-operator",
    HELM_CONTROLLER: "config/crd/bases",
}


def of_the_module() -> Path:
    """Kueue's, of the release that the tests' controller is."""
    return source("kueue", "sigs.k8s.io/kueue") / _FOLDERS[KUEUE]


def of_a_mirror(repository: str, release: str, scratch: Path) -> Path:
    """A chart at a tag, or definitions; the test is skipped where there are no mirrors."""
    if not MIRRORS:
        pytest.skip("GPUPLAN_SOURCES names no folder of mirrors: OWNER+NAME/repo")
    git_dir = Path(MIRRORS) / repository.replace("/", "+") / "repo"
    command = ["git", f"--git-dir={git_dir}", "archive", release, _FOLDERS[repository]]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(scratch, filter="data")
    return scratch / _FOLDERS[repository]


def rendered(chart: Path, name: str, namespace: str, values: Mapping[str, Any]) -> tuple[Object, ...]:
    """All objects of a release of that name, CustomResourceDefinitions and hooks among them."""
    request = {"chart": str(chart), "release": name, "namespace": namespace, "kubernetes": "v1.34.0", "values": values}
    ended = subprocess.run(
        [program("helm", "helm")], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return tuple(json.loads(ended.stdout))


def the(kind: str, name: str, objects: tuple[Object, ...]) -> Any:
    [found] = [body for body in objects if (body["kind"], body["metadata"]["name"]) == (kind, name)]
    return found
