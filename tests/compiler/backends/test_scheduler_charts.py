"""The values of a scheduler's chart: they hold what the policy decides, above what it states itself."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends import kai, kueue
from gpuplan.compiler.manifests import File
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan
from tests.platforms import pool, tenant

KUEUE = "kind: kueue, version: v0.19.2, install: helm"
KAI = "kind: kai, version: v0.17.0, install: helm"
GANG = """\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: train}
spec: {tenant: lab, pool: a, image: example.com/train:1, training: {pods: 2, gang: 2}}
"""


def a_lab(scheduler: str, sharing: str = "exclusive: {}", more: str = "") -> Plan:
    return a_plan(a_cluster(scheduler) + pool("a", sharing) + tenant("lab", "pool: a, guaranteed: 8") + more)


def kueue_file(plan: Plan) -> Any:
    """What Kueue reads, as its chart hands it on."""
    return yaml.safe_load(kueue.helm_values(plan)["managerConfig"]["controllerManagerConfigYaml"])


def test_kueue_is_told_what_its_queues_need() -> None:
    found = kueue_file(a_lab(KUEUE, more=GANG))
    assert (found["apiVersion"], found["kind"]) == ("config.kueue.x-k8s.io/v1beta2", "Configuration")
    assert found["fairSharing"] == {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    assert found["integrations"] == {"frameworks": ["batch/job", "deployment", "pod"]}
    assert found["resources"]["excludeResourcePrefixes"] == ["cpu", "memory", "ephemeral-storage", "hugepages-"]
    assert found["waitForPodsReady"]["blockAdmission"] is False


def test_controllers_have_the_workers_that_the_chart_gives_them() -> None:
    """A Configuration in the values replaces the chart's as a whole."""
    assert kueue_file(a_lab(KUEUE))["controller"]["groupKindConcurrency"]["Workload.kueue.x-k8s.io"] == 10


def test_kueue_asks_the_api_server_as_often_as_its_chart_lets_it() -> None:
    """Kueue itself assumes 20 requests a second before 0.19, and its chart says more in each release."""
    older = KUEUE.replace("v0.19.2", "v0.18.6")
    assert older != KUEUE
    assert kueue_file(a_lab(older))["clientConnection"] == {"qps": 300, "burst": 500}


def test_lists_of_the_policy_are_added() -> None:
    more = "{resources: {excludeResourcePrefixes: [rdma/, cpu]}, clientConnection: {qps: 400}}"
    found = kueue_file(a_lab(f"{KUEUE}, kueue: {{configuration: {more}}}"))
    excluded = ["cpu", "memory", "ephemeral-storage", "hugepages-", "rdma/"]
    assert found["resources"]["excludeResourcePrefixes"] == excluded
    assert found["clientConnection"] == {"qps": 400, "burst": 500}


def test_the_file_for_people_has_them_too() -> None:
    plan = a_lab("kind: kueue, kueue: {configuration: {resources: {excludeResourcePrefixes: [rdma/]}}}")
    [file] = [item for item in kueue.render(plan) if isinstance(item, File)]
    assert file.path == "scheduling/kueue-configuration.yaml"
    assert yaml.safe_load(file.data)["resources"]["excludeResourcePrefixes"][-1] == "rdma/"


def test_values_of_the_policy_stay() -> None:
    values = kueue.helm_values(a_lab(f"{KUEUE}, values: {{controllerManager: {{replicas: 2}}}}"))
    assert values["controllerManager"] == {"replicas": 2}


@pytest.mark.parametrize(("sharing", "expected"), [("fraction: {}", {"gpuSharing": True}), ("exclusive: {}", None)])
def test_kai_shares_gpus_where_a_pool_does(sharing: str, expected: object) -> None:
    assert kai.helm_values(a_lab(KAI, sharing)).get("global") == expected


def test_kai_has_its_config_among_the_objects_of_the_chart() -> None:
    values = kai.helm_values(a_lab(KAI))
    assert (values["kaiConfig"], values["kaiConfigDeployer"]) == ({"render": True}, {"enabled": False})


def test_an_older_chart_of_kai_is_told_nothing_that_it_does_not_know() -> None:
    assert kai.helm_values(a_lab(KAI.replace("0.17", "0.16"))) == {}


@pytest.mark.parametrize(
    ("module", "scheduler", "namespace"), [(kueue, KUEUE, "kueue-system"), (kai, KAI, "kai-scheduler")]
)
def test_the_folder_has_the_namespace_and_the_values(module: Any, scheduler: str, namespace: str) -> None:
    found = [item for item in module.render(a_lab(scheduler)) if _folder_of(item) == "scheduler"]
    bodies = [item.body for item in found if not isinstance(item, File)]
    assert bodies == [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
    assert [item.path for item in found if isinstance(item, File)] == ["scheduler/values.yaml"]


@pytest.mark.parametrize("scheduler", [KUEUE, KAI])
def test_nothing_is_there_where_somebody_else_installs_it(scheduler: str) -> None:
    plan = a_lab(scheduler.replace("helm", "external"))
    assert [item for item in (*kueue.render(plan), *kai.render(plan)) if _folder_of(item) == "scheduler"] == []


def _folder_of(item: Any) -> str:
    return item.path.partition("/")[0] if isinstance(item, File) else item.folder


def test_the_head_of_the_values_says_how_helm_is_called() -> None:
    [file] = [item for item in kueue.render(a_lab(KUEUE)) if isinstance(item, File)]
    text = file.data.decode()
    assert "helm upgrade --install kueue oci://registry.k8s.io/kueue/charts/kueue --version 0.19.2" in text
    assert "--namespace kueue-system" in text


def test_a_repository_of_helms_own_kind_is_an_option() -> None:
    plan = a_lab(f"{KUEUE}, chartRepoURL: 'https://charts.example.com'")
    [file] = [item for item in kueue.render(plan) if isinstance(item, File)]
    assert "helm upgrade --install kueue kueue --repo https://charts.example.com --version" in file.data.decode()


@pytest.mark.parametrize(("version", "told"), [("v0.16.8", None), ("v0.17.0", True)])
def test_kai_scheduler_is_told_of_openshift_since_it_listens(version: str, told: bool | None) -> None:
    """Up to 0.16 its chart has no such value (`deployments/kai-scheduler/values.yaml`)."""
    cluster = a_cluster(KAI.replace("v0.17.0", version)).replace("spec:\n", "spec:\n  platform: openshift\n", 1)
    assert (
        kai.helm_values(a_plan(cluster + pool("a") + tenant("lab", "pool: a, guaranteed: 8"))).get("openshift") is told
    )
