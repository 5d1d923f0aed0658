"""Health checks for Argo CD, run on objects as their controllers write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from gpuplan.compiler.delivery.argocd import checks
from tests.compiler.delivery.argocd.health import judged
from tests.compiler.delivery.argocd.operator_states import an_object, failed, ready
from tests.compiler.delivery.argocd.rendered import a_cluster, files
from tests.compiler.delivery.argocd.root_states import STATES, State

Health = Callable[[str, Mapping[str, Any]], tuple[str, str]]


@pytest.fixture
def health() -> Health:
    return lambda kind, body: judged(checks()[kind], body)


CLUSTER_POLICY = "nvidia.com_ClusterPolicy"
DRIVER = "nvidia.com_NVIDIADriver"
BOTH = pytest.mark.parametrize("kind", [CLUSTER_POLICY, DRIVER])
UNDER_WAY = {CLUSTER_POLICY: "OperandNotReady", DRIVER: "DriverNotReady"}


@BOTH
def test_ready_is_healthy(health: Health, kind: str) -> None:
    assert health(kind, an_object(ready()))[0] == "Healthy"


@BOTH
@pytest.mark.parametrize("status", [None, {}, {"state": "notReady"}, {"state": "ready"}])
def test_without_a_condition_the_operator_is_waited_for(health: Health, kind: str, status: dict[str, Any]) -> None:
    """It writes the state first, and conditions after it (`updateCRState` in `clusterpolicy_controller.go`)."""
    assert health(kind, an_object(status)) == ("Progressing", "Waiting for the operator.")


@BOTH
def test_operands_that_are_rolled_out_are_under_way_although_the_operator_says_error(health: Health, kind: str) -> None:
    body = an_object(failed(UNDER_WAY[kind], "states not ready: [state-driver]"))
    assert health(kind, body) == ("Progressing", "states not ready: [state-driver]")


@BOTH
def test_a_failure_is_degraded_with_what_the_operator_says(health: Health, kind: str) -> None:
    body = an_object(failed("ReconcileFailed", "failed to reconcile state-driver"))
    assert health(kind, body) == ("Degraded", "failed to reconcile state-driver")


@BOTH
def test_a_failure_is_degraded_even_while_an_old_state_says_ready(health: Health, kind: str) -> None:
    assert health(kind, an_object(failed("ReconcileFailed", "conflict", state="ready")))[0] == "Degraded"


@BOTH
def test_an_old_state_is_not_ready_while_operands_are_not(health: Health, kind: str) -> None:
    """Before v26.7 an error condition of a driver brings back the state that it had: `updateCrStatus` there says so."""
    assert health(kind, an_object(failed(UNDER_WAY[kind], "", state="ready")))[0] == "Progressing"


UNSEEN = ("Progressing", "The operator may not have seen the last change yet.")


@BOTH
@pytest.mark.parametrize("status", [ready(), failed("ReconcileFailed", "x")], ids=["ready", "failed"])
def test_a_condition_of_before_the_last_change_says_nothing(health: Health, kind: str, status: dict[str, Any]) -> None:
    """Argo CD asks as soon as it has applied the change, when the operator has not looked at it."""
    assert health(kind, an_object(status, changed=0)) == UNSEEN


@BOTH
def test_a_condition_of_after_the_last_change_counts_at_once(health: Health, kind: str) -> None:
    assert health(kind, an_object(ready(since=5), changed=10))[0] == "Healthy"
    assert health(kind, an_object(failed("ReconcileFailed", "x", since=5), changed=10))[0] == "Degraded"


@BOTH
@pytest.mark.parametrize(("seconds", "status"), [(90, "Progressing"), (150, "Healthy")])
def test_a_change_that_rolls_nothing_is_waited_for_two_minutes(
    health: Health, kind: str, seconds: int, status: str
) -> None:
    """The operator then finds all as it was, and writes no condition."""
    assert health(kind, an_object(ready(), changed=seconds))[0] == status


@BOTH
def test_who_shows_no_managed_fields_gets_what_the_operator_says(health: Health, kind: str) -> None:
    assert health(kind, {"metadata": {"name": "a"}, "status": ready()})[0] == "Healthy"
    assert health(kind, {"status": ready()})[0] == "Healthy"


def test_a_cluster_whose_nodes_have_no_labels_of_nfd_is_waited_for(health: Health) -> None:
    """The operator calls itself ready, and has no DaemonSet (`clusterpolicy_controller.go`, v24.6.2 to v26.7.0)."""
    body = an_object(ready("NFDLabelsMissing", "No NFD labels found"))
    assert health(CLUSTER_POLICY, body) == ("Progressing", "No NFD labels found")


def test_a_cluster_without_gpu_nodes_is_healthy_and_says_so(health: Health) -> None:
    message = "No GPU node found, watching for new nodes to join the cluster."
    assert health(CLUSTER_POLICY, an_object(ready("NoGPUNodes", message), changed=0)) == ("Healthy", message)


def test_a_driver_whose_nodes_another_has_is_degraded(health: Health) -> None:
    assert health(DRIVER, an_object(failed("ConflictingNodeSelector", "conflict"))) == ("Degraded", "conflict")


def test_a_disabled_driver_is_healthy(health: Health) -> None:
    """The operator says `Error` of it all the same (`nvidiadriver_controller.go`, from v26.3 on)."""
    body = an_object(failed("Reconciled", "useNvidiaDriverCRD is not enabled in ClusterPolicy", state="disabled"))
    assert health(DRIVER, body) == ("Healthy", "The ClusterPolicy manages the driver, not this object.")


# --- Applications ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["Healthy", "Progressing", "Degraded", "Missing", "Suspended", "Unknown"])
def test_an_application_is_as_healthy_as_it_says(health: Health, status: str) -> None:
    body = {"status": {"health": {"status": status, "message": "x"}}}
    assert health("argoproj.io_Application", body) == (status, "x")


@pytest.mark.parametrize("body", [{}, {"status": {}}, {"status": {"health": {}}}])
def test_an_application_that_argo_cd_has_not_seen_is_under_way(health: Health, body: dict[str, Any]) -> None:
    assert health("argoproj.io_Application", body) == ("Progressing", "")


AUTOMATED = {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}}
HEALTHY = {"health": {"status": "Healthy"}}
EITHER = pytest.mark.parametrize("has_root", [False, True], ids=["alone", "beside-a-root"])


@EITHER
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("Progressing", "Nothing of it is applied yet.")),
        ({"sync": {"status": "OutOfSync"}}, ("Progressing", "Nothing of it is applied yet.")),
        ({"operationState": {"phase": "Running", "message": "waiting"}}, ("Progressing", "waiting")),
        ({"operationState": {"phase": "Failed", "message": "no"}}, ("Degraded", "Its first sync failed: no")),
        ({"operationState": {"phase": "Error"}}, ("Degraded", "Its first sync failed: Error")),
        ({"sync": {"status": "Synced"}}, ("Healthy", "")),
        ({"sync": {"status": "OutOfSync"}, "history": [{"id": 0}]}, ("Healthy", "")),
        ({"operationState": {"phase": "Failed"}, "history": [{"id": 0}]}, ("Healthy", "")),
    ],
)
def test_one_that_syncs_by_itself_is_healthy_when_it_was_synced_once(
    status: dict[str, Any], expected: tuple[str, str], *, has_root: bool
) -> None:
    check = checks(has_root=has_root)["argoproj.io_Application"]
    assert judged(check, {**AUTOMATED, "status": {**HEALTHY, **status}}) == expected


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
