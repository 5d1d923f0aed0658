"""What the definitions of custom kinds say of objects: those of gpuplan, and those that GPUPLAN_CRDS names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.manifests import Manifest, check_schemas
from gpuplan.compiler.manifests.crds import served
from gpuplan.compiler.manifests.kinds import get_kind


def crds() -> Path:
    """The folder; the test is skipped where there is none."""
    folder = os.environ.get("GPUPLAN_CRDS")
    if not folder:
        pytest.skip("GPUPLAN_CRDS names no folder of CustomResourceDefinitions")
    return Path(folder)


def problems(manifests: list[Manifest]) -> list[str]:
    """What the objects break of the newest definitions; a kind without one would be no test."""
    custom = [item.gvk for item in manifests if get_kind(item.gvk.group, item.kind).is_custom]
    newest = {item.project: item.releases[0] for item in (served(gvk.group, gvk.kind)[0] for gvk in custom)}
    return [problem.text for problem in check_schemas(manifests, "1.34", releases=newest)]


def schema(file: str) -> dict[str, Any]:
    """The schema of the only version of a definition."""
    (version,) = yaml.load((crds() / file).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def drift(value: Mapping[str, Any], definition: Mapping[str, Any], route: str = "") -> Iterator[str]:
    """Fields that the API server would fill in: those with a default, absent from an object that is there."""
    for name, field in definition.get("properties", {}).items():
        if name not in value:
            if "default" in field:
                yield f"{route}.{name}"
        elif isinstance(value[name], Mapping):
            yield from drift(value[name], field, f"{route}.{name}")
        elif isinstance(value[name], list):
            for item in value[name]:
                if isinstance(item, Mapping):
                    yield from drift(item, field.get("items", {}), f"{route}.{name}[]")
