"""The example platform in `out/`: what its Applications apply is all there is, and nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml

from gpuplan.compiler.manifests import Identity
from tests.compiler.delivery.argocd.platform import REPOSITORY, Delivered, delivered, identity, is_permitted
from tests.kustomizing import kustomize

CLUSTERS = pytest.mark.parametrize("cluster", ["dev", "openshift", "prod"])


def deliver(cluster: str) -> Delivered:
    """What Argo CD would find in the repository now."""
    out = REPOSITORY / "out"
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.yaml")}
    return delivered(files, cluster)


def built(folder: str) -> list[Identity]:
    """What kustomize makes of a folder."""
    return [identity(body) for body in yaml.safe_load_all(kustomize(REPOSITORY / folder)) if body]


@CLUSTERS
def test_no_object_is_in_two_applications_and_none_in_none(cluster: str) -> None:
    applications = deliver(cluster).applications.values()
    applied = Counter(item for app in applications for path in app.paths for item in built(path))
    assert [item for item, count in applied.items() if count > 1] == []
    assert set(applied) == set(built(f"out/{cluster}"))


def test_the_hubs_root_applies_nothing_to_another_argo_cd() -> None:
    """OpenShift GitOps runs in its own cluster, which is not the one that the hub calls `kubernetes.default.svc`."""
    bodies = [body for body in yaml.safe_load_all(kustomize(REPOSITORY / "out/argocd")) if body]
    assert {body["metadata"]["namespace"] for body in bodies} == {"argocd"}
    applications = [body for body in bodies if body["kind"] == "Application"]
    assert {tuple(body["spec"]["destination"]) for body in applications} == {("name", "namespace")}
    assert {item.namespace for item in built("out/argocd/openshift")} == {"openshift-gitops"}


@CLUSTERS
def test_no_application_is_empty(cluster: str) -> None:
    assert [name for name, found in deliver(cluster).applications.items() if not found.objects] == []


@CLUSTERS
def test_the_project_allows_all_that_is_applied(cluster: str) -> None:
    found = deliver(cluster)
    applied = [item for app in found.applications.values() for item in app.objects]
    refused = [item for item in applied if not is_permitted(found.project, item)]
    assert refused == []


@CLUSTERS
def test_every_application_is_in_the_clusters_project_and_reads_what_it_allows(cluster: str) -> None:
    found = deliver(cluster)
    allowed = set(found.project["spec"]["sourceRepos"])
    namespaces = {entry["namespace"] for entry in found.project["spec"]["destinations"]}
    for app in found.applications.values():
        spec = app.body["spec"]
        assert spec["project"] == found.project["metadata"]["name"]
        assert {source["repoURL"] for source in spec.get("sources", [spec.get("source")])} <= allowed
        assert spec["destination"]["namespace"] in namespaces
