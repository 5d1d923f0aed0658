"""Health checks for Argo CD, run on objects as their controllers write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from gpuplan.delivery.argocd import checks
from tests.delivery.argocd.rendered import a_cluster, files
from tests.delivery.argocd.root_states import STATES, State

# Argo CD opens the basic functions and `table` alone; gopher-lua speaks Lua 5.1. Strings have no methods then either.
SANDBOX = """
debug.setmetatable("", nil)
for _, name in ipairs({"string", "io", "os", "math", "coroutine", "package", "debug", "require", "python"}) do
  _G[name] = nil
end
"""

Health = Callable[[str, Mapping[str, Any]], tuple[str, str]]


@pytest.fixture
def health() -> Health:
    return lambda kind, body: judged(checks()[kind], body)


def judged(check: str, body: Mapping[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False)
    lua.execute(SANDBOX)
    lua.globals()["obj"] = lua.table_from(body, recursive=True)
    found = lua.execute(check)
    return found["status"], found["message"]


def a_status(
    state: str = "", reason: str = "", message: str = "", *, ready: str = "False", seen: int | None = None
) -> dict[str, Any]:
    """An object at its third generation; ``reason`` is that of the condition `Error`, which is false without one."""
    conditions: list[dict[str, Any]] = [
        {"type": "Ready", "status": ready, "reason": "Error", "message": ""},
        {"type": "Error", "status": "True" if reason else "False", "reason": reason or "Ready", "message": message},
    ]
    if seen is not None:
        conditions = [{**condition, "observedGeneration": seen} for condition in conditions]
    status = {"conditions": conditions, **({"state": state} if state else {})}
    return {"metadata": {"name": "a", "generation": 3}, "status": status}


CLUSTER_POLICY = "nvidia.com_ClusterPolicy"
DRIVER = "nvidia.com_NVIDIADriver"
BOTH = pytest.mark.parametrize("kind", [CLUSTER_POLICY, DRIVER])


@BOTH
def test_ready_is_healthy(health: Health, kind: str) -> None:
    assert health(kind, a_status("ready", ready="True"))[0] == "Healthy"


@BOTH
def test_ready_without_conditions_is_healthy(health: Health, kind: str) -> None:
    assert health(kind, {"metadata": {"name": "a"}, "status": {"state": "ready"}})[0] == "Healthy"


@BOTH
def test_an_object_that_the_operator_has_not_seen_is_under_way(health: Health, kind: str) -> None:
    waiting = ("Progressing", "Waiting for the operator.")
    assert health(kind, {"metadata": {"name": "a"}}) == waiting
    assert health(kind, {"metadata": {"name": "a"}, "status": {}}) == waiting
    assert health(kind, {"metadata": {"name": "a"}, "status": {"state": "notReady"}}) == waiting


@BOTH
def test_operands_that_are_rolled_out_are_under_way_although_the_operator_says_error(health: Health, kind: str) -> None:
    body = a_status("notReady", "OperandNotReady", "states not ready: [state-driver]")
    assert health(kind, body) == ("Progressing", "states not ready: [state-driver]")


@BOTH
def test_a_failure_is_degraded_with_what_the_operator_says(health: Health, kind: str) -> None:
    body = a_status("notReady", "ReconcileFailed", "failed to reconcile state-driver")
    assert health(kind, body) == ("Degraded", "failed to reconcile state-driver")


@BOTH
def test_a_failure_is_degraded_even_while_an_old_state_says_ready(health: Health, kind: str) -> None:
    assert health(kind, a_status("ready", "ReconcileFailed", "conflict"))[0] == "Degraded"


@BOTH
def test_one_that_another_overrides_is_degraded(health: Health, kind: str) -> None:
    assert health(kind, {"metadata": {"name": "a"}, "status": {"state": "ignored"}})[0] == "Degraded"


@BOTH
def test_a_status_of_an_earlier_generation_says_nothing(health: Health, kind: str) -> None:
    assert health(kind, a_status("ready", ready="True", seen=2))[0] == "Progressing"
    assert health(kind, a_status("notReady", "ReconcileFailed", "x", seen=2))[0] == "Progressing"
    assert health(kind, a_status("ready", ready="True", seen=3))[0] == "Healthy"


def test_a_cluster_without_gpu_nodes_waits_for_them(health: Health) -> None:
    assert health(CLUSTER_POLICY, a_status("notReady", "NFDLabelsMissing", "no labels"))[0] == "Progressing"
    assert health(CLUSTER_POLICY, a_status("ready", ready="True"))[0] == "Healthy"


def test_a_disabled_driver_is_healthy(health: Health) -> None:
    assert health(DRIVER, {"metadata": {"name": "a"}, "status": {"state": "disabled"}})[0] == "Healthy"


# --- Applications ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["Healthy", "Progressing", "Degraded", "Missing", "Suspended", "Unknown"])
def test_an_application_is_as_healthy_as_it_says(health: Health, status: str) -> None:
    body = {"status": {"health": {"status": status, "message": "x"}}}
    assert health("argoproj.io_Application", body) == (status, "x")


@pytest.mark.parametrize("body", [{}, {"status": {}}, {"status": {"health": {}}}])
def test_an_application_that_argo_cd_has_not_seen_is_under_way(health: Health, body: dict[str, Any]) -> None:
    assert health("argoproj.io_Application", body) == ("Progressing", "")


@pytest.mark.parametrize("state", STATES, ids=[state.name for state in STATES])
def test_under_a_root_an_application_is_what_its_last_sync_made_of_it(state: State) -> None:
    check = checks(has_root=True)["argoproj.io_Application"]
    assert judged(check, state.body) == (state.status, state.message)


@pytest.mark.parametrize("status", ["Healthy", "Progressing", "Degraded", "Missing"])
def test_the_check_for_roots_says_the_same_of_applications_without(status: str) -> None:
    check = checks(has_root=True)["argoproj.io_Application"]
    assert judged(check, {"metadata": {"name": "a"}, "status": {"health": {"status": status}}}) == (status, "")
    assert judged(check, {}) == ("Progressing", "")


# --- Files -------------------------------------------------------------------------------------------------------


def test_the_config_maps_patch_holds_every_check_and_nothing_else() -> None:
    text = files(a_cluster(more="namespace: gitops"))["argocd-cm.yaml"]
    assert yaml.safe_load(text) == {
        "data": {
            f"resource.customizations.health.{kind}": checks()[kind]
            for kind in ("argoproj.io_Application", "nvidia.com_ClusterPolicy", "nvidia.com_NVIDIADriver")
        }
    }
    assert "#   kubectl -n gitops patch configmap argocd-cm --type merge --patch-file argocd-cm.yaml\n" in text


def test_openshift_gitops_gets_the_same_as_a_list() -> None:
    plan = a_cluster(operator="install: olm, version: v26.7.0", spec="platform: openshift")
    found = yaml.safe_load(files(plan)["argocd-health-checks.yaml"])["spec"]["resourceHealthChecks"]
    assert [(entry["group"], entry["kind"]) for entry in found] == [
        ("argoproj.io", "Application"),
        ("nvidia.com", "ClusterPolicy"),
        ("nvidia.com", "NVIDIADriver"),
    ]
    assert {f"{entry['group']}_{entry['kind']}": entry["check"] for entry in found} == checks()


def test_a_root_has_another_check_of_applications_and_the_same_of_all_else() -> None:
    one, other = (yaml.safe_load(files(a_cluster(more=more))["argocd-cm.yaml"])["data"] for more in ("", "root: true"))
    assert [key for key in one if one[key] != other[key]] == ["resource.customizations.health.argoproj.io_Application"]


def test_no_file_for_openshift_elsewhere() -> None:
    assert list(files(a_cluster())) == ["argocd-cm.yaml"]
