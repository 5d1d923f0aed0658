"""A kind that is added to the data of kinds alone is applied, synced, compared and let be as it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.manifests.kinds import Care, Immutable, Kind, Removal, known_kinds
from gpuplan.compiler.manifests.kinds.data import kubernetes
from gpuplan.features.changes.kinds import Pair, class_of, locked_fields
from tests.compiler.delivery.argocd.rendered import a_cluster, folder, namespace, the_project
from tests.subjects import A_CLUSTER

FENCE = Kind(
    group="example.com",
    kind="Fence",
    source="example.com/fences: strategy.go",
    is_namespaced=True,
    is_custom=False,
    care=Care(wave=7, prune=Removal.CONFIRM),
    added=ChangeClass.ADMISSION,
    changed=ChangeClass.ADMISSION,
    removed=ChangeClass.ADMISSION,
    fields={"spec.unhealthyPodEvictionPolicy": ChangeClass.METADATA},
    immutable=(Immutable("spec.selector"),),
    outlives_policy=True,
)
IDENTITY = Identity("example.com", "Fence", "", "chat")
ENTRY = {"group": "example.com", "kind": "Fence"}


def a_fence(**spec: object) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Fence", "metadata": {"name": "chat"}, "spec": spec}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The data with one kind more."""
    monkeypatch.setattr(kubernetes, "KINDS", (*kubernetes.KINDS, FENCE))
    known_kinds.cache_clear()
    yield
    known_kinds.cache_clear()


def test_without_it_no_such_object_is_made() -> None:
    with pytest.raises(ValueError, match=r"no kind Fence\.example\.com"):
        Manifest("workloads/chat", a_fence(), about=A_CLUSTER, trace=None)


@pytest.mark.usefixtures("planted")
def test_it_is_applied_in_its_wave_and_asked_about() -> None:
    plan = a_cluster(operator="install: external, version: v26.7.0")
    body = annotate(
        Manifest("workloads/other", a_fence(minAvailable=1), about=A_CLUSTER, trace=None), plan.cluster
    ).body

    assert body["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-options": "Prune=confirm",
        "argocd.argoproj.io/sync-wave": "7",
    }


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("before", "after", "change_class"),
    [
        (None, a_fence(minAvailable=1), ChangeClass.ADMISSION),
        (a_fence(minAvailable=1), None, ChangeClass.ADMISSION),
        (a_fence(minAvailable=1), a_fence(minAvailable=2), ChangeClass.ADMISSION),
        (a_fence(), a_fence(unhealthyPodEvictionPolicy="AlwaysAllow"), ChangeClass.METADATA),
        (a_fence(selector={"a": "b"}), a_fence(selector={"a": "c"}), ChangeClass.RECREATE),
    ],
)
def test_a_change_has_the_class_that_it_says(
    before: dict[str, object] | None, after: dict[str, object] | None, change_class: ChangeClass
) -> None:
    assert class_of(Pair("workloads/chat", IDENTITY, before, after)) is change_class


@pytest.mark.usefixtures("planted")
def test_its_immutable_field_is_found() -> None:
    assert locked_fields(IDENTITY, a_fence(selector={"a": "b"}), a_fence()) == (("spec", "selector"),)


@pytest.mark.usefixtures("planted")
def test_it_stays_allowed_when_the_last_one_is_gone() -> None:
    plan = a_cluster(operator="install: external, version: v26.7.0")
    assert ENTRY in the_project(plan, folder("namespaces/b", namespace("b")))["spec"]["namespaceResourceWhitelist"]


@pytest.mark.usefixtures("planted")
def test_it_is_in_a_namespace_even_where_it_names_none() -> None:
    plan = a_cluster(operator="install: external, version: v26.7.0")
    spec = the_project(plan, folder("workloads/chat", IDENTITY))["spec"]

    assert ENTRY in spec["namespaceResourceWhitelist"]
    assert ENTRY not in spec["clusterResourceWhitelist"]
