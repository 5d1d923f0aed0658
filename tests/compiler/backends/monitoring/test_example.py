"""What the example's rules say of the example's other objects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

OUT = Path(__file__).resolve().parents[4] / "out"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def applications(cluster: str) -> set[str]:
    """Those that are written, and those that the ApplicationSet makes of folders."""
    written = {read(path)["metadata"]["name"] for path in (OUT / "argocd" / cluster).glob("application-*.yaml")}
    namespaces = [path.name for path in (OUT / cluster / "namespaces").iterdir() if path.is_dir()]
    return written | {f"gpu-namespace-{cluster}-{namespace}" for namespace in namespaces}


@pytest.mark.parametrize("cluster", ["openshift", "prod"])
def test_every_application_of_the_cluster_is_watched(cluster: str) -> None:
    (group,) = read(OUT / cluster / "monitoring" / "rules" / "gpuplan-alerts.yaml")["groups"]
    (expr,) = [rule["expr"] for rule in group["rules"] if rule["alert"] == "GpuPlanOutOfSync"]
    matcher = re.search(r'name=~"([^"]+)"', expr)
    assert matcher is not None
    assert applications(cluster) <= set(matcher[1].split("|"))


@pytest.mark.parametrize("cluster", ["openshift", "prod"])
def test_applications_are_watched_in_the_project_that_they_are_in(cluster: str) -> None:
    (path, *_) = sorted((OUT / "argocd" / cluster).glob("application-gpu-partitions-*.yaml")) or sorted(
        (OUT / "argocd" / cluster).glob("application-*.yaml")
    )
    rules = (OUT / cluster / "monitoring" / "rules" / "gpuplan-alerts.yaml").read_text(encoding="utf-8")
    assert f'project=\\"{read(path)["spec"]["project"]}\\"' in rules
