"""What is found about each edit of the example platform as a step, beside what class it has."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.manifests.kinds import known_kinds
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.kinds import locked_fields
from gpuplan.features.changes.step import Step
from tests.every import Laws, every_row
from tests.features.changes.edits import Case
from tests.features.changes.platform import State
from tests.features.changes.test_edits import EDITS, _after, _before

FOUND: Mapping[str, set[str]] = {
    "cut_a_quota_under_use": {"GPU706"},
    "name_fewer_nodes_by_board": {"GPU704"},
    "remove_a_pool_by_board": {"GPU704"},
    "queue_by_kueue": {"GPU705", "GPU758"},
    "swap_a_layout": {"GPU709"},
    "swap_a_layout_under_a_root": {"GPU709"},
    "edit_a_layout_and_retain_the_old_one": {"GPU709"},
    "change_the_value_of_a_class": {"GPU705"},
    "let_a_class_preempt": {"GPU705"},
    "change_a_topology": {"GPU705"},
    "rename_the_cluster_policy": {"GPU713"},
    "claim_devices": {"GPU717"},
    "make_partitions_on_demand": {"GPU701", "GPU709"},
    "make_partitions_by_layout_again": {"GPU709"},
    # On one cluster no pool uses the layout.
    "edit_a_layout": {"GPU700", "GPU709", "GPU736"},
    "edit_a_layout_that_keeps_its_name": {"GPU709", "GPU750"},
    "let_an_entry_have_gpuplans_name": {"GPU700", "GPU736"},
    "keep_a_key": {"GPU702"},
    "keep_a_queue": {"GPU703"},
    "keep_queues_of_kueue": {"GPU703", "GPU705"},
    "rename_a_layout": {"GPU701", "GPU736"},
    "swap_a_layout_and_remove_the_old_one": {"GPU701", "GPU709", "GPU736"},
    "rename_a_pool": {"GPU702", "GPU728", "GPU738"},
    "edit_an_unused_layout": {"GPU736"},
    "remove_an_unused_layout": {"GPU736"},
    "rename_an_unused_layout": {"GPU736"},
    "move_nodes_between_pools_alike": {"GPU728"},
    "move_nodes_between_pools_with_mps": {"GPU728", "GPU756"},
    "split_a_pool": {"GPU728"},
    "merge_pools": {"GPU702", "GPU728"},
    "move_nodes_to_a_pool_that_evicts": {"GPU728"},
    "make_the_spare_pool_whole": {"GPU729"},
    "partition_the_spare_pool": {"GPU729"},
    "partition_shared_gpus": {"GPU729"},
    "publish_partitions_as_gpus_with_another_layout": {"GPU729"},
    "partition_at_once": {"GPU729"},
    "settle": {"GPU729"},
    "settle_at_once": {"GPU729"},
    "rename_a_tenant": {"GPU703", "GPU705"},
    "give_a_namespace_to_another_tenant": {"GPU705"},
    "leave_kueue": {"GPU705", "GPU711"},
    "go_from_kueue_to_kai": {"GPU705", "GPU711", "GPU758"},
    "remove_the_spare_pool": {"GPU704"},
    "keep_fewer_checkpoints": {"GPU705"},
    "keep_checkpoints_elsewhere": {"GPU705"},
    "match_names_with_a_driver": {"GPU704"},
    "leave_nodes_out_of_a_pattern": {"GPU704"},
    "evict_by_a_taint": {"GPU710"},
    "remove_a_tenant": {"GPU703", "GPU715"},
    "remove_a_namespace": {"GPU715"},
    "leave_argocd": {"GPU714"},
    "go_from_argocd_to_flux": {"GPU714"},
    "sync_another_cluster": {"GPU714"},
    "label_nodes_elsewhere": {"GPU704"},
    "install_elsewhere": {"GPU712"},
    "install_by_others": {"GPU712"},
}
"""By edit; about all others nothing is found."""

laws = Laws[Case]()


def found_between(before: State, after: State) -> list[Diagnostic]:
    old = {plan.cluster.name: plan for plan in before.plans}
    steps = [Step(old[plan.cluster.name], plan) for plan in after.plans if plan.cluster.name in old]
    return [item for step in steps for item in run(step)]


@EDITS
def test_what_breaks_on_the_way_is_found(case: Case) -> None:
    assert {item.code for item in found_between(_before(case), _after(case))} == FOUND.get(case.name, set())


@EDITS
def test_of_each_edit_the_same_holds(case: Case) -> None:
    laws.assert_each(case)


@laws
def what_changes_little_breaks_nothing(case: Case) -> None:
    is_little = (case.worst or case.change_class).rank < ChangeClass.ADMISSION.rank
    errors = [item for item in found_between(_before(case), _after(case)) if item.is_error]
    assert not (is_little and errors)


@laws
def standing_still_breaks_nothing(case: Case) -> None:
    assert found_between(_after(case), _after(case)) == []


@laws
def findings_are_phrases_that_say_what_to_do(case: Case) -> None:
    for item in found_between(_before(case), _after(case)):
        found = item.finding
        for text in (found.message, found.label, found.help, *found.notes):
            assert text
            assert not text.endswith(".")
            assert (
                text[0].islower() or text[0] in "`0123456789" or text.split(" ")[0] in {"ClusterQueue", "Argo", "Kueue"}
            )


# --- Fields that cannot be changed -------------------------------------------------------------------------------


def an_object(kind: tuple[str, str], route: tuple[str, ...], value: object) -> dict[str, object]:
    for key in reversed(route):
        value = {key: value}
    assert isinstance(value, dict)
    return {"kind": kind[1], **value}


def field_of(kind: tuple[str, str], route: tuple[str, ...]) -> str:
    return f"{kind[1]}.{'.'.join(route)}"


@every_row(
    (
        (name, item.route)
        for name, kind in known_kinds().items()
        for item in kind.immutable
        if not item.where and not item.may_grow
    ),
    field_of,
)
def test_a_field_that_cannot_be_changed(kind: tuple[str, str], route: tuple[str, ...]) -> None:
    identity = Identity(*kind, "", "a")
    one, other = (an_object(kind, route, value) for value in ("one", "other"))

    assert locked_fields(identity, one, other) == (route,)
    assert locked_fields(identity, one, one) == ()


@every_row(
    ((name, item.route) for name, kind in known_kinds().items() for item in kind.immutable if item.may_grow), field_of
)
def test_a_field_that_can_only_grow(kind: tuple[str, str], route: tuple[str, ...]) -> None:
    identity = Identity(*kind, "", "a")
    small, large = (an_object(kind, route, value) for value in ("900Mi", "1Gi"))

    assert locked_fields(identity, large, small) == (route,)
    assert locked_fields(identity, small, large) == ()
    assert locked_fields(identity, small, small) == ()


@pytest.mark.parametrize(
    ("kind", "field", "default"),
    [
        (("scheduling.k8s.io", "PriorityClass"), "preemptionPolicy", "PreemptLowerPriority"),
        (("batch", "Job"), "spec.completionMode", "NonIndexed"),
    ],
)
def test_what_is_absent_is_what_the_server_makes_of_it(kind: tuple[str, str], field: str, default: str) -> None:
    identity = Identity(*kind, "", "a")
    route = tuple(field.split("."))

    assert locked_fields(identity, {"kind": kind[1]}, an_object(kind, route, default)) == ()
    assert locked_fields(identity, {"kind": kind[1]}, an_object(kind, route, "other")) == (route,)


def test_an_indexed_job_may_have_more_completions() -> None:
    identity = Identity("batch", "Job", "lab", "a")
    for mode, found in ({}, (("spec", "completions"),)), ({"completionMode": "Indexed"}, ()):
        old, new = ({"spec": {"completions": number, **mode}} for number in (1, 2))
        assert locked_fields(identity, old, new) == found


def test_what_stays_while_it_is_there_may_come_and_go() -> None:
    identity = Identity("ray.io", "RayCluster", "research", "a")
    old, new = ({"spec": {"managedBy": name}} for name in ("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"))

    assert locked_fields(identity, old, new) == (("spec", "managedBy"),)
    assert locked_fields(identity, old, {"spec": {}}) == ()
    assert locked_fields(identity, {"spec": {}}, new) == ()


def test_a_flavor_may_be_changed_until_it_has_a_topology() -> None:
    identity = Identity("kueue.x-k8s.io", "ResourceFlavor", "", "a")
    bare = {"spec": {"nodeLabels": {"a": "b"}}}
    bound = {"spec": {"nodeLabels": {"a": "b"}, "topologyName": "a"}}
    tainted = {"spec": {**bound["spec"], "nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}}

    assert locked_fields(identity, bare, bound) == ()
    assert locked_fields(identity, bound, bare) == (("spec", "topologyName"),)
    assert locked_fields(identity, bound, tainted) == ()


def test_an_immutable_config_map_says_so_itself() -> None:
    identity = Identity("", "ConfigMap", "a", "a")
    body = {"immutable": True, "data": {"a": "b"}}

    assert locked_fields(identity, body, {**body, "data": {}}) == (("data",),)
    assert locked_fields(identity, {"data": {"a": "b"}}, {"data": {}}) == ()
