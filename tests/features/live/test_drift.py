"""What runs otherwise than the policies say: each difference with its line, its owner and what the next sync does."""

from __future__ import annotations

import pytest

from gpuplan.features.live.drifting import Differs, Drift, NextSync
from tests.features.live.dumps import Body, compared, example, find, synced


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


# --- What is left --------------------------------------------------------------------------------------------------


def tracked(body: Body, application: str, options: str = "") -> Body:
    metadata = body["metadata"]
    marks = {"argocd.argoproj.io/tracking-id": f"{application}:/x:y/z"}
    marks |= {"argocd.argoproj.io/sync-options": options} if options else {}
    return {**body, "metadata": {**metadata, "annotations": marks}}


def an_old_config(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "gpu-operator"}}


OLD_CONFIG = "gpuplan-mig-parted-00000000"


def test_an_old_configuration_that_something_names_is_kept() -> None:
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}}
    naming = {**policy, "spec": {"migManager": {"config": {"name": OLD_CONFIG}}}}

    assert drifts([*synced(example("prod")), an_old_config(OLD_CONFIG), naming]) == ()


def test_an_old_configuration_that_nothing_names_is_left() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "y"}}

    [found] = drifts([*synced(example("prod")), an_old_config(OLD_CONFIG), pod])

    assert (found.differs, found.title) == (Differs.LEFT, f"ConfigMap gpu-operator/{OLD_CONFIG}")
    assert found.next_sync is NextSync.NOTHING
    assert found.note


def test_an_old_configuration_may_be_in_use_where_nothing_shows_it() -> None:
    assert drifts([*synced(example("prod")), an_old_config(OLD_CONFIG)]) == ()


@pytest.mark.parametrize(
    ("options", "next_sync"),
    [("", NextSync.PRUNES), ("Prune=confirm,Delete=confirm", NextSync.ASKS), ("Prune=false", NextSync.NOTHING)],
)
def test_what_becomes_of_what_is_left_it_says_itself(options: str, next_sync: NextSync) -> None:
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old", "namespace": "research"}}

    [found] = drifts([*synced(example("prod")), tracked(old, "gpu-namespace-prod-research", options)])

    assert found.next_sync is next_sync


def test_what_another_application_applied_is_not_ours() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old", "namespace": "research"}}

    assert drifts([*synced(example("prod")), tracked(other, "web")]) == ()


def test_what_somebody_owns_goes_with_its_owner() -> None:
    old = an_old_config("gpuplan-something")
    old["metadata"]["ownerReferences"] = [{"kind": "x"}]

    assert drifts([*synced(example("prod")), old]) == ()


# --- What cannot be compared ---------------------------------------------------------------------------------------


def test_an_older_version_that_kueue_converts_is_compared() -> None:
    bodies = synced(example("prod"))
    queue = find(bodies, "ClusterQueue", "research")
    queue["apiVersion"] = "kueue.x-k8s.io/v1beta1"
    queue["spec"]["cohort"] = queue["spec"].pop("cohortName")
    assert compared(bodies).drifts == ()

    queue["spec"]["cohort"] = "other"
    assert [(drift.title, drift.path) for drift in compared(bodies).drifts] == [
        ("ClusterQueue research", "spec.cohortName")
    ]


def test_another_version_of_a_kind_is_not_compared() -> None:
    bodies = synced(example("prod"))
    queue = find(bodies, "ClusterQueue", "research")
    queue["apiVersion"] = "kueue.x-k8s.io/v1"
    queue["spec"] = {}

    found = compared(bodies)

    assert found.drifts == ()
    assert [(item.number, item.why) for item in found.unjudged] == [
        (1, "the dump has version v1, and gpuplan writes v1beta2")
    ]


def test_what_syncs_may_be_in_another_cluster() -> None:
    bodies = [body for body in synced(example("prod")) if not body["apiVersion"].startswith("argoproj.io/")]
    other = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x", "namespace": "y"}}

    found = compared([*bodies, other])

    assert (found.drifts, found.unjudged) == ((), ())


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    bodies = [body for body in synced(example("prod")) if body["kind"] == "ResourceQuota"]
    of_research = [body for body in bodies if body["metadata"]["namespace"] == "research"]

    found = compared(of_research)

    assert found.drifts == ()
    assert ("ResourceQuota", len(bodies) - 1) in [(item.kind, item.number) for item in found.unjudged]
