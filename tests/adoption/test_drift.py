"""What runs otherwise than the policies say: each difference with its line, its owner and what the next sync does."""

from __future__ import annotations

import pytest

from gpuplan.pipeline.drifting import Differs, Drift, NextSync
from tests.adoption.dumps import Body, compared, example, find, synced


def drifts(bodies: list[Body], cluster: str = "prod") -> tuple[Drift, ...]:
    return compared(bodies, cluster).drifts


def test_after_a_sync_nothing_differs() -> None:
    for cluster in ("dev", "openshift", "prod"):
        found = compared(synced(example(cluster)), cluster)

        assert found.drifts == ()
        assert found.unjudged == ()
        assert found.number > 40


def test_a_field_that_differs_is_told_with_its_line() -> None:
    bodies = synced(example("prod"))
    quota = find(bodies, "ResourceQuota", "gpuplan", "research")
    quota["spec"]["hard"]["requests.nvidia.com/mig-1g.10gb"] = "77"

    [found] = drifts(bodies)

    assert found.differs is Differs.FIELD
    assert found.title == "ResourceQuota research/gpuplan"
    assert found.path == 'spec.hard["requests.nvidia.com/mig-1g.10gb"]'
    assert found.live == "77"
    assert found.file == "out/prod/namespaces/research/resourcequota-gpuplan.yaml"
    assert any(source.file == "policies/tenants/science.yaml" for source in found.sources)
    assert found.next_sync is NextSync.OVERWRITES
    assert found.applier is not None
    assert found.applier.name == "gpu-namespace-prod-research"


def test_amounts_are_compared_by_value() -> None:
    bodies = synced(example("prod"))
    quota = find(bodies, "ResourceQuota", "gpuplan", "research")
    hard = quota["spec"]["hard"]
    for key, value in hard.items():
        hard[key] = f"{value}000m" if value.isdigit() and value != "0" else value

    assert drifts(bodies) == ()


def test_an_object_that_a_list_lacks_is_missing() -> None:
    bodies = [body for body in synced(example("prod")) if body["metadata"].get("namespace") != "agents"]
    bodies += [body for body in synced(example("prod")) if body["kind"] == "RoleBinding"]

    found = drifts(bodies)

    assert {(item.differs, item.next_sync) for item in found} == {(Differs.MISSING, NextSync.CREATES)}
    assert "LocalQueue agents/default" in {item.title for item in found}


def test_a_kind_that_is_not_in_the_dump_is_not_missing() -> None:
    bodies = [body for body in synced(example("prod")) if body["kind"] != "ClusterQueue"]

    found = compared(bodies)

    assert found.drifts == ()
    assert [(item.kind, item.number) for item in found.unjudged] == [("ClusterQueue.kueue.x-k8s.io", 9)]


def test_what_an_application_of_ours_applied_and_nothing_writes_is_left() -> None:
    bodies = synced(example("prod"))
    tracked = "gpu-namespace-prod-research:/ResourceQuota:research/old"
    old = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "old",
            "namespace": "research",
            "annotations": {"argocd.argoproj.io/tracking-id": tracked},
        },
    }

    [found] = drifts([*bodies, old])

    assert (found.differs, found.title) == (Differs.LEFT, "ResourceQuota research/old")
    assert found.next_sync is NextSync.PRUNES
    assert found.applier is not None


def test_an_object_of_somebody_else_is_not_told() -> None:
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "research"}}

    assert drifts([*synced(example("prod")), foreign]) == ()


def test_the_owner_of_a_field_is_told() -> None:
    bodies = synced(example("prod"))
    binding = find(bodies, "RoleBinding", "gpuplan-edit", "research")
    binding["roleRef"]["name"] = "admin"
    binding["metadata"]["managedFields"] = [
        {
            "manager": "kubectl-edit",
            "operation": "Update",
            "time": "2026-11-24T01:00:00Z",
            "fieldsV1": {"f:roleRef": {"f:name": {}}},
        }
    ]

    [found] = drifts(bodies)

    assert found.owner is not None
    assert (found.owner.manager, found.owner.time) == ("kubectl-edit", "2026-11-24T01:00:00Z")
    assert found.next_sync is NextSync.FAILS


@pytest.mark.parametrize("value", ["", None])
def test_what_is_empty_may_be_absent(value: object) -> None:
    bodies = synced(example("prod"))
    find(bodies, "Namespace", "research")["metadata"]["annotations"] |= {"of-somebody": value}

    assert drifts(bodies) == ()
