"""Definitions of custom kinds as projects release them: from their Go modules, each pinned by its digest."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.api import Api
from tests.cluster.processes import until


@dataclass(frozen=True, slots=True)
class Project:
    """A project's module, the digest that Go's checksum database has of it, and where its definitions are."""

    module: str
    digest: str
    definitions: str
    kinds: tuple[str, ...]


WRITTEN: Final = (
    Project(
        "github.com/kedacore/keda/v2@v2.21.0",
        "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        "config/crd/bases",
        ("ScaledObject",),
    ),
    Project(
        "github.com/kserve/kserve@v0.17.0",
        "h1:IaynaBFzVQz1Xyrw5n3ncqzd5Y7L1RkO+YWvVwwtMQE=",
        "config/crd/full",
        ("InferenceService",),
    ),
    Project(
        "sigs.k8s.io/gateway-api@v1.6.0",
        "h1:735YBRj5NXFrOGX0GoSjwzUIzbz8kiEOfADsqHFmHgE=",
        "config/crd/standard",
        ("HTTPRoute",),
    ),
)
"""Those of whose kinds gpuplan writes objects."""

FLUX: Final = (
    Project(
        "github.com/fluxcd/kustomize-controller@v1.9.6",
        "h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE=",
        "config/crd/bases",
        ("Kustomization",),
    ),
    Project(
        "github.com/fluxcd/source-controller@v1.9.6",
        "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=",
        "config/crd/bases",
        ("HelmRepository",),
    ),
)

OLM: Final = Project(
    "github.com/operator-framework/api@v0.45.0",
    "h1:hkROwtsLH3oszp4IW+WsXEFSDgveSahHI7DKStOtrUI=",
    "crds",
    ("OperatorGroup", "Subscription"),
)

PROJECTS: Final = (
    *WRITTEN,
    Project(
        "github.com/ray-project/kuberay/ray-operator@v1.6.2",
        "h1:XUckRswLMyk71D00L62d2Vanh0fVkNqu56+IF/rr+O0=",
        "config/crd/bases",
        ("RayCluster",),
    ),
)
"""Those whose controllers are not run here. JobSet's, LeaderWorkerSet's and Trainer's come with their controllers."""

_SETTINGS: Final = {"GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def serve_released(api: Api, projects: Iterable[Project]) -> None:
    """Serve the kinds of these projects."""
    definitions = [found for project in projects for found in _definitions(project)]
    for definition in definitions:
        api.apply(definition, manager="definitions", force=True)
    until(lambda: all(map(_is_served(api), definitions)), "released kinds are served", seconds=60)


def _is_served(api: Api) -> Any:
    return lambda definition: all(
        api.find_kind(f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"])
        for version in definition["spec"]["versions"]
        if version["served"]
    )


def _definitions(project: Project) -> Iterator[dict[str, Any]]:
    left = set(project.kinds)
    for path in sorted((_source(project) / project.definitions).glob("*.yaml")):
        for body in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if body and body["kind"] == "CustomResourceDefinition" and body["spec"]["names"]["kind"] in left:
                left.remove(body["spec"]["names"]["kind"])
                yield {**body, "metadata": {**body["metadata"], "creationTimestamp": None}}
    assert not left, f"{project.module} does not define {sorted(left)}"


@functools.cache
def _source(project: Project) -> Path:
    """The folder that the module's release is unpacked in; it is the same that it was when it was pinned."""
    with tempfile.TemporaryDirectory() as nowhere:
        ended = subprocess.run(
            ["go", "mod", "download", "-json", project.module],
            cwd=nowhere,
            env=os.environ | _SETTINGS,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout)
    assert found["Sum"] == project.digest, f"{project.module} is not what it was"
    return Path(found["Dir"])
