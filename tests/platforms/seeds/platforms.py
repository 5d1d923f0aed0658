"""The platforms of public documents, built once for all tests that look at them."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.pipeline import Build, build, validate

SEEDS = Path(__file__).parent
CLUSTERS = sorted((path.parents[2].name, path.parent.name) for path in SEEDS.glob("*/overlays/*/cluster.yaml"))
NAMES = sorted({name for name, _ in CLUSTERS})

Body = dict[str, Any]


@cache
def built(name: str, cluster: str) -> Build:
    """The cluster's output, held to the definitions that come along, and to those that GPUPLAN_CRDS names."""
    crds = os.environ.get("GPUPLAN_CRDS")
    return build(SEEDS / name, (cluster,), crds=Path(crds) if crds else None, kustomize="off")


def an_object(name: str, cluster: str, path: str) -> Body:
    """An object or a file by its path in the cluster's folder, where `*` stands for the hash in a name."""
    pattern = re.compile(re.escape(f"{cluster}/{path}").replace(r"\*", "[0-9a-f]+"))
    [found] = [text for file, text in built(name, cluster).tree.items() if pattern.fullmatch(file)]
    body: Body = yaml.safe_load(found)
    return body


def container(owner: Body) -> Body:
    [found] = owner["spec"]["template"]["spec"]["containers"]
    body: Body = found
    return body


def with_change(name: str, cluster: str, change: str, folder: Path) -> Path:
    """The platform in a folder of its own, where the cluster's overlay has more documents."""
    root = folder / name
    shutil.copytree(SEEDS / name, root)
    (root / "overlays" / cluster / "change.yaml").write_text(change, encoding="utf-8")
    return root


def findings(name: str, cluster: str, change: str, folder: Path) -> list[Diagnostic]:
    """What is found then."""
    return list(validate(with_change(name, cluster, change, folder), (cluster,), kustomize="off").diagnostics)


def document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n"
