"""What the back end wrote for a plan."""

from __future__ import annotations

from typing import Any

import yaml

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.planning.plan import Plan

TABLE = "partitions/node-groups.yaml"


def objects(plan: Plan) -> list[dict[str, Any]]:
    return [dict(artifact.body) for artifact in partitions.render(plan) if isinstance(artifact, Manifest)]


def table(plan: Plan) -> Any:
    """The table's content, None where there is no table."""
    files = [artifact for artifact in partitions.render(plan) if isinstance(artifact, File)]
    assert [file.path for file in files] in ([], [TABLE])
    return yaml.safe_load(files[0].data) if files else None
