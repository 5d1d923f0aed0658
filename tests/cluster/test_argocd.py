"""Argo CD's own types let every Application have what is in its folder, and open sync windows when the policy says.

Its Lua judges the GPU Operator's objects, and Applications under a root, by our health checks, and its comparison finds
in those Applications what the root is to sync.

They are those of Argo CD v3.3.10, whose module needs nothing that only its own repository has; v3.4 and v3.5 require a
module `argo-cd/gitops-engine` that no proxy serves. An Application's order of objects is not tested here but on a
cluster, by test_apply.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest

from gpuplan.compiler.delivery.argocd import checks
from tests.cli.runs import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.delivery import identity
from tests.cluster.example import REPOSITORY
from tests.cluster.processes import until
from tests.cluster.programs import need_go, source
from tests.cluster.projects import judge, read
from tests.compiler.delivery.argocd.operator_states import an_object, failed, ready
from tests.compiler.delivery.argocd.rendered import a_cluster, a_pool, folder, get, manifests
from tests.compiler.delivery.argocd.root_states import STATES

Record = Callable[[str, object, object], None]

CLUSTERS = ("dev", "openshift", "prod")
each_cluster = pytest.mark.parametrize("cluster", CLUSTERS)


@pytest.fixture(autouse=True, scope="module")
def _programs() -> None:
    need_go()


@each_cluster
def test_projects_permit_all_that_is_delivered(cluster: str, record: Record) -> None:
    project, deliveries = read(REPOSITORY, cluster)
    found = judge(project, deliveries)
    applications = found["applications"]
    assert len(set(applications)) == len(applications) > 0
    record(
        f"{cluster}: what {project['metadata']['name']} does not permit {len(applications)} Applications",
        [],
        found["problems"],
    )


@each_cluster
def test_no_object_is_in_two_applications(cluster: str) -> None:
    """With `FailOnSharedResource=true` the second one would not sync."""
    _, deliveries = read(REPOSITORY, cluster)
    counts = Counter(identity(body) for delivery in deliveries for body in delivery["objects"])
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("kind", "name", "namespace"),
    [
        ("Secret", "password", "agents"),
        ("ConfigMap", "settings", "kube-system"),
        ("Namespace", "kube-system", None),
        ("Node", "gpu-a100-small-1", None),
    ],
)
def test_projects_permit_no_more(kind: str, name: str, namespace: str | None) -> None:
    project, deliveries = read(REPOSITORY, "prod")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    delivery = {**deliveries[0], "objects": [{"apiVersion": "v1", "kind": kind, "metadata": metadata}]}
    [problem] = judge(project, [delivery])["problems"]
    assert f"{kind} {namespace or ''}/{name}" in problem


def test_projects_permit_no_other_source_and_no_other_destination() -> None:
    project, deliveries = read(REPOSITORY, "prod")
    delivery = copy.deepcopy(next(item for item in deliveries if "source" in item["application"]["spec"]))
    spec = delivery["application"]["spec"]
    spec["source"]["repoURL"] = "https://git.example.com/platform/other.git"
    spec["destination"]["name"] = "dev"
    problems = judge(project, [{**delivery, "objects": []}])["problems"]
    assert [problem.partition(": ")[2].partition(" ")[0] for problem in problems] == ["source", "destination"]


@pytest.mark.parametrize(
    ("pool", "at", "may"),
    [
        ("a100-production", "2026-11-21T01:59:00Z", False),
        ("a100-production", "2026-11-21T02:01:00Z", True),
        ("a100-production", "2026-11-21T05:59:00Z", True),
        ("a100-production", "2026-11-21T06:01:00Z", False),
        ("a100-production", "2026-11-22T03:00:00Z", False),
        ("a100-small", "2026-11-22T03:00:00Z", True),
    ],
)
def test_a_window_is_on_saturdays_from_two_to_six(pool: str, at: str, *, may: bool, record: Record) -> None:
    project, _ = read(REPOSITORY, "prod")
    observed = _may_sync(project, f"gpu-partitions-prod-{pool}", at)
    when = f"{datetime.fromisoformat(at):%A at %H:%M}"
    record(f"prod: {pool} may be synced on {when}, by itself and by a person", [may, may], observed)


@pytest.mark.parametrize(
    ("at", "may"),
    [
        ("2026-11-23T12:59:00Z", False),
        ("2026-11-23T13:01:00Z", True),
        ("2026-11-27T18:59:00Z", True),
        ("2026-11-27T19:01:00Z", False),
        ("2026-11-28T14:00:00Z", False),
        ("2026-11-28T20:30:00Z", True),
    ],
)
def test_windows_are_in_their_time_zone_and_add_up(at: str, *, may: bool, moved: Mapping[str, Any]) -> None:
    assert _may_sync(moved, "gpu-partitions-prod-a100-production", at) == [may, may]


# --- Health ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nvidia.com_ClusterPolicy", "nvidia.com_NVIDIADriver"])
def test_health_of_the_operators_objects(kind: str, record: Record) -> None:
    """Its Lua has a clock of its own, by which a condition of before the last change counts two minutes later."""
    bodies = {
        "ready": (an_object(ready()), "Healthy"),
        "ready before its last change": (an_object(ready(), changed=0), "Progressing"),
        "ready before a change that rolled nothing": (an_object(ready(), changed=300), "Healthy"),
        "failed": (an_object(failed("ReconcileFailed", "x")), "Degraded"),
        "failed before its last change": (an_object(failed("ReconcileFailed", "x"), changed=0), "Progressing"),
        "new": (an_object(None), "Progressing"),
    }
    lua = checks()[kind]
    named = {"apiVersion": "nvidia.com/v1", "kind": kind.partition("_")[2]}
    asked = [{"lua": lua, "object": named | body} for body, _ in bodies.values()]
    found = judge({}, [], checks=asked)["healths"]
    for (name, (_, expected)), health in zip(bodies.items(), found, strict=True):
        record(f"a {named['kind']} that is {name}", expected, health["status"])


# --- The root ----------------------------------------------------------------------------------------------------


def test_health_of_applications_under_a_root(record: Record) -> None:
    check = checks(has_root=True)["argoproj.io_Application"]
    found = judge({}, [], checks=[{"lua": check, "object": state.body} for state in STATES])["healths"]
    assert [health["message"] for health in found] == [state.message for state in STATES]
    for state, health in zip(STATES, found, strict=True):
        record(f"an Application that is {state.name}", state.status, health["status"])


def test_a_root_differs_when_an_application_does_and_not_when_its_operation_has_ended() -> None:
    plan = a_cluster(a_pool("a", "approval: automatic"), more="root: true")
    before, after = (manifests(plan, folder("partitions/a")._replace(digest=digest)) for digest in ("1", "2"))
    root, pool = (get(before, "Application", name) for name in ("gpu-root-test", "gpu-partitions-test-a"))
    live = copy.deepcopy({key: value for key, value in pool.items() if key != "operation"})
    live["metadata"]["annotations"]["gpuplan.dev/revision"] = "0123456"
    changed = get(after, "Application", "gpu-partitions-test-a")
    strict = {**root, "spec": {**root["spec"], "ignoreDifferences": []}}
    pairs = [
        {"application": application, "live": live, "target": target}
        for application, target in ((root, pool), (root, changed), (strict, pool))
    ]
    assert judge({}, [], pairs=pairs)["differ"] == [False, True, True]


def test_an_operation_that_has_ended_is_there_again_when_the_root_is_synced(control_plane: ControlPlane) -> None:
    """Argo CD applies as kubectl does, and takes an operation away as here (`setOperationState`)."""
    api, kubectl = control_plane.api, control_plane.kubectl
    definitions = source("argocd", "github.com/argoproj/argo-cd/v3") / "manifests" / "crds"
    for name in ("application", "appproject"):
        kubectl("apply", "--server-side", "-f", definitions / f"{name}-crd.yaml")
    until(lambda: api.find_kind("argoproj.io/v1alpha1", "AppProject"), "AppProjects are served")
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    alone, rooted = (a_cluster(a_pool("a", "approval: automatic"), more=more) for more in ("", "root: true"))
    before, after = (manifests(plan, folder("partitions/a")._replace(digest="1")) for plan in (alone, rooted))
    for body in (*before, *after):
        kubectl("apply", "-f", "-", stdin=json.dumps(body.body))
    pool = get(after, "Application", "gpu-partitions-test-a")
    live = api.get(api.path_of(pool))
    assert live["operation"] == pool["operation"]
    assert "automated" not in live["spec"]["syncPolicy"]
    ended = {"phase": "Succeeded", "operation": pool["operation"], "startedAt": "2026-11-22T10:00:00Z"}
    state = {"op": "add", "path": "/status", "value": {"operationState": ended}}
    api.patch(api.path_of(pool), [state, {"op": "add", "path": "/operation", "value": None}], kind="json")
    assert "operation" not in api.get(api.path_of(pool))
    kubectl("apply", "-f", "-", stdin=json.dumps(pool))
    assert api.get(api.path_of(pool))["operation"] == pool["operation"]


def test_a_roots_project_permits_what_the_root_syncs_and_not_more() -> None:
    plan = a_cluster(a_pool("a", "approval: automatic"), more="root: true, destination: {name: prod}")
    found = manifests(plan, folder("gpu-operator"), folder("partitions/a"), folder("namespaces/x"))
    project, root = get(found, "AppProject", "gpu-root-test"), get(found, "Application", "gpu-root-test")
    synced = [dict(item.body) for item in found if item.folder == "applications"]
    assert {body["kind"] for body in synced} == {"AppProject", "Application", "ApplicationSet"}
    assert judge(project, [{"application": root, "objects": synced}])["problems"] == []
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "argocd"}}
    assert len(judge(project, [{"application": root, "objects": [secret]}])["problems"]) == 1


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The project of a platform with windows on workdays from 22 to 4 in Tokyo, and on Saturdays from 20 in UTC."""
    repository = tmp_path_factory.mktemp("moved")
    for name in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / name, repository / name)
    pools = repository / "policies" / "pools" / "partitioned.yaml"
    text = pools.read_text(encoding="utf-8")
    old = '{schedule: "0 2 * * 6", duration: 4h, timeZone: UTC}'
    assert old in text
    tokyo = '{schedule: "0 22 * * 1-5", duration: 6h, timeZone: Asia/Tokyo}'
    new = f'{tokyo}\n      - {{schedule: "0 20 * * 6", duration: 1h}}'
    pools.write_text(text.replace(old, new), encoding="utf-8")
    assert run("build", cwd=repository).code == 0
    project, _ = read(repository, "prod")
    return project


def _may_sync(project: Mapping[str, Any], application: str, at: str) -> list[bool]:
    """Whether it may be synced by itself, and by a person."""
    moments = [{"application": application, "at": at, "isManual": is_manual} for is_manual in (False, True)]
    may: list[bool] = judge(project, [], moments)["maySync"]
    return may
