"""What is said to apply a folder is what is written to sync it, started by whom the policy says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.appliers import Applier, find_applier, get_applier
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.policy.models import Approval
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, original, state


def a_plan(edit: Edit) -> Plan:
    return next(plan for plan in state(edit).plans if plan.cluster.name == "prod")


def syncing(plan: Plan) -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """The objects of Argo CD and Flux by kind and name."""
    written = (artifact for tool, artifact in artifacts(plan) if tool)
    return {(item.kind, item.name): item.body for item in written if isinstance(item, Manifest)}


def folders(plan: Plan) -> set[str]:
    """The folders that apply objects."""
    return {item.folder for tool, item in artifacts(plan) if not tool and isinstance(item, Manifest)}


def let_changes_through(platform: Platform) -> None:
    edits.go_from_argocd_to_flux(platform)
    platform.spec("Pool", "a100-agents")["disruption"] = {"approval": "automatic"}


@pytest.mark.parametrize("edit", [original, edits.change_an_approval], ids=lambda edit: edit.__name__)
def test_argo_cd_syncs_by_itself_what_nobody_approves(edit: Edit) -> None:
    plan = a_plan(edit)
    written = syncing(plan)
    for folder in folders(plan):
        applier = get_applier(plan, folder)
        if (body := written.get((applier.kind, applier.name))) is not None:
            assert ("automated" in body["spec"]["syncPolicy"]) == applier.is_automatic
        else:  # an ApplicationSet makes it
            assert folder.startswith(("namespaces/", "workloads/"))
            assert ("ApplicationSet", get_applier(plan, f"{folder.partition('/')[0]}/*").name) in written


def sync_in_order(platform: Platform) -> None:
    edits.sync_through_a_root(platform)
    edits.change_an_approval(platform)


def test_a_root_starts_what_has_an_operation() -> None:
    plan = a_plan(sync_in_order)
    written = syncing(plan)
    appliers = {folder: get_applier(plan, folder) for folder in folders(plan)}
    rooted = {folder for folder, applier in appliers.items() if applier.root}
    assert rooted == {"gpu-operator", "partitions/a100-agents"}
    assert {appliers[folder].root for folder in rooted} == {"gpu-root-prod"}
    assert ("Application", "gpu-root-prod") in written
    operations = {name for (_, name), body in written.items() if "operation" in body}
    assert operations == {appliers[folder].name for folder in rooted}


@pytest.mark.parametrize("edit", [edits.go_from_argocd_to_flux, let_changes_through], ids=lambda edit: edit.__name__)
def test_flux_suspends_what_a_person_approves(edit: Edit) -> None:
    plan = a_plan(edit)
    written = syncing(plan)
    for folder in folders(plan):
        applier = get_applier(plan, folder)
        assert written[applier.kind, applier.name]["spec"].get("suspend", False) != applier.is_automatic


def test_a_pools_windows_are_those_of_its_nodes_and_not_of_its_queues() -> None:
    plan = a_plan(original)
    partitions, queues = (find_applier(plan, f"{stage}/a100-production") for stage in ("partitions", "queues"))
    assert isinstance(partitions, Applier)
    assert isinstance(queues, Applier)
    assert [window.schedule for window in partitions.windows] == ["0 2 * * 6"]
    assert queues.windows == ()
    assert (partitions.approval, queues.approval) == (Approval.MANUAL, Approval.AUTOMATIC)


def test_nothing_applies_a_table_for_others_or_what_no_tool_syncs() -> None:
    by_others, alone = a_plan(edits.label_nodes_elsewhere), a_plan(edits.leave_argocd)
    assert find_applier(by_others, "partitions") is None
    assert find_applier(alone, "scheduling") is None
