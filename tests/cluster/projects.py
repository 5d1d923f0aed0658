"""Asks Argo CD's own types whether an AppProject permits what its Applications sync."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.programs import program
from tests.cluster.validators import kustomize


def read(repository: Path, cluster: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The AppProject of a cluster, and its Applications with what each delivers."""
    objects = kustomize(repository / "out" / "argocd" / cluster)
    [project] = [body for body in objects if body["kind"] == "AppProject"]
    return project, [delivery for body in objects for delivery in _deliveries(body, repository)]


def _deliveries(body: Mapping[str, Any], repository: Path) -> Iterator[dict[str, Any]]:
    spec = body.get("spec", {})
    if body["kind"] == "Application":
        sources = spec.get("sources") or [spec["source"]]
        folders = [repository / source["path"] for source in sources if "path" in source]
        yield {"application": body, "objects": [item for folder in folders for item in kustomize(folder)]}
    elif body["kind"] == "ApplicationSet":
        patterns = [entry["path"] for generator in spec["generators"] for entry in generator["git"]["directories"]]
        for folder in sorted(path for pattern in patterns for path in repository.glob(pattern) if path.is_dir()):
            path = folder.relative_to(repository).as_posix()
            yield {"applicationSet": body, "directory": path, "objects": kustomize(folder)}


def judge(
    project: Mapping[str, Any], deliveries: list[dict[str, Any]], moments: Any = (), **more: Any
) -> dict[str, Any]:
    request = {"project": project, "deliveries": deliveries, "moments": list(moments), **more}
    result = subprocess.run(
        [program("argocd", "argocd")], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer
