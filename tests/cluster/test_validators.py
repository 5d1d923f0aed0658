"""The programs that people put before a merge take what is committed: kustomize, kubeconform, promtool."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.example import REPOSITORY, show
from tests.cluster.programs import need_go, program
from tests.cluster.validators import is_taken_by_promtool, kubeconform, kustomize
from tests.compiler.backends.crds import crds

Record = Callable[[str, object, object], None]

OUT = REPOSITORY / "out"
CLUSTERS = ("dev", "openshift", "prod")
UNDEFINED = {"NodeFeatureDiscovery", "OperatorGroup", "Subscription"}
"""Kinds of OLM and of the operator that it installs Node Feature Discovery with, which GPUPLAN_CRDS has not."""

each_cluster = pytest.mark.parametrize("cluster", CLUSTERS)


@pytest.fixture(autouse=True, scope="module")
def _programs() -> None:
    need_go()


@each_cluster
def test_kustomize_and_kubectl_build_the_same(cluster: str, record: Record) -> None:
    """kubectl is of the cluster's own release, with the kustomize that came with it."""
    kubectl = program(f"kubernetes-{show(cluster)['kubernetes']}", "kubectl")
    folders = _folders(cluster)
    others = [folder for folder in folders if _kubectl_kustomize(kubectl, folder) != kustomize(folder)]
    record(f"{cluster}: of {len(folders)} folders, those that kubectl builds otherwise than kustomize", [], others)


@each_cluster
def test_kubeconform_takes_every_object(cluster: str, record: Record, tmp_path: Path) -> None:
    objects = [*kustomize(OUT / cluster), *kustomize(OUT / "argocd" / cluster)]
    valid, refused = kubeconform(objects, show(cluster)["kubernetes"], crds(), tmp_path)
    unknown = [
        refusal for refusal in refused if refusal.kind in UNDEFINED and "could not find schema" in refusal.reason
    ]
    record(
        f"{cluster}: of {len(objects)} objects, those that kubeconform refuses",
        [],
        [refusal for refusal in refused if refusal not in unknown],
    )
    assert valid + len(unknown) == len(objects)


def test_kubeconform_is_strict(tmp_path: Path) -> None:
    """A field more, in an object of Kubernetes and in a custom resource, is refused in both."""
    quota: dict[str, Any] = _find("ResourceQuota")
    queue: dict[str, Any] = _find("ClusterQueue")
    quota["spec"]["surplus"] = 1
    queue["spec"]["resourceGroups"][0]["surplus"] = 1
    valid, refused = kubeconform([quota, queue], "1.34", crds(), tmp_path)
    assert valid == 0
    assert {refusal.kind for refusal in refused} == {"ResourceQuota", "ClusterQueue"}
    assert all("surplus" in refusal.reason for refusal in refused)


@pytest.mark.parametrize("cluster", ["openshift", "prod"])
def test_promtool_takes_every_rule(cluster: str, record: Record) -> None:
    rules = _rules(cluster)
    refused = [path.name for path in rules if not is_taken_by_promtool(path)]
    record(f"{cluster}: of {len(rules)} files with rules, those that promtool refuses", [], refused)


@pytest.mark.parametrize(("right", "wrong"), [("expr:", "exp:"), ("max by", "max bye"), ("groups:", "group:")])
def test_promtool_refuses_what_is_wrong(right: str, wrong: str, tmp_path: Path) -> None:
    text = (OUT / "prod" / "monitoring" / "rules" / "gpuplan-alerts.yaml").read_text(encoding="utf-8")
    assert right in text
    rules = tmp_path / "rules.yaml"
    rules.write_text(text.replace(right, wrong), encoding="utf-8")
    assert not is_taken_by_promtool(rules)


def _rules(cluster: str) -> list[Path]:
    found = sorted((OUT / cluster / "monitoring" / "rules").glob("*.yaml"))
    return [path for path in found if path.stem != "kustomization"]


def _folders(cluster: str) -> list[Path]:
    roots = (OUT / cluster, OUT / "argocd" / cluster)
    return sorted(path.parent for root in roots for path in root.rglob("kustomization.yaml"))


def _kubectl_kustomize(kubectl: Path, folder: Path) -> list[dict[str, Any]]:
    text = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True).stdout
    return [body for body in yaml.load_all(text, Loader=yaml.CSafeLoader) if body]


def _find(kind: str) -> dict[str, Any]:
    return next(body for body in kustomize(OUT / "prod") if body["kind"] == kind)
