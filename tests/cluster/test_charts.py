"""Helm renders the charts with the values that gpuplan writes: what they say arrives, and what comes of it is allowed.

Kueue's chart comes with the module of its controller. Those of KAI-Scheduler and the GPU Operator are in no module that
the Go proxy serves: its newest operator is v1.11.1, and its newest KAI-Scheduler v0.12.0, older than what gpuplan has
installed. They are read from mirrors, and older charts of Kueue as well, where `GPUPLAN_SOURCES` names these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from gpuplan.compiler.catalog.charts import find_scheduler_chart
from gpuplan.compiler.delivery.charts import Chart, chart_values, charts
from gpuplan.compiler.planning.plan import Plan, Stage
from tests.cluster.api import Object
from tests.cluster.charts import KAI, KUEUE, OPERATOR, of_a_mirror, of_the_module, rendered, the
from tests.cluster.kueue_configurations import lost, verdict
from tests.cluster.kueue_controller import kueue_release
from tests.plans import a_plan
from tests.platforms import pool, tenant

Record: TypeAlias = Callable[[str, object, object], None]
Objects: TypeAlias = tuple[Object, ...]

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: {operator}{more}}}
  scheduler: {{{scheduler}}}
  argocd: {{repoURL: "https://git.example.com/platform/gpu.git"}}
  monitoring: {{}}
"""
OPERATORS = ("v24.6.2", "v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0")
"""The newest release of each line that the catalog knows, as in `tests/laws/operands`."""
KAIS = ("v0.14.7", "v0.15.3", "v0.16.8", "v0.17.0")
KUEUES = ("v0.17.8", "v0.18.6", "v0.19.2")


def a_platform(scheduler: str, sharing: str = "exclusive: {}", operator: str = OPERATORS[-1], more: str = "") -> Plan:
    head = CLUSTER.format(operator=operator, scheduler=scheduler, more=more)
    return a_plan(head + pool("a", sharing) + tenant("lab", "pool: a, guaranteed: 8"))


def chart_of(plan: Plan, stage: Stage) -> Chart:
    [found] = [chart for chart in charts(plan) if chart.stage is stage]
    return found


def render(plan: Plan, stage: Stage, folder: Path) -> Objects:
    chart = chart_of(plan, stage)
    return rendered(folder, chart.name, chart.namespace, chart_values(plan, chart))


# --- Kueue -------------------------------------------------------------------------------------------------------


def a_kueue(release: str, frameworks: str = "[]") -> Plan:
    said = f"kueue: {{frameworks: {frameworks}}}, values: {{controllerManager: {{replicas: 2}}}}"
    return a_platform(f"kind: kueue, version: {release}, install: helm, {said}")


def test_kueue_has_the_configuration_that_is_written(record: Record, tmp_path: Path) -> None:
    """The file in the chart's ConfigMap is given to the controller itself."""
    plan = a_kueue(kueue_release())
    objects = render(plan, Stage.SCHEDULER, of_the_module())
    text = _configuration(objects)
    values = chart_values(plan, chart_of(plan, Stage.SCHEDULER))
    said = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    added = {key: value for key, value in yaml.safe_load(text).items() if key not in said}
    certificates = {"webhookServiceName": "kueue-webhook-service", "webhookSecretName": "kueue-webhook-server-cert"}
    record(
        "Kueue's chart: what it adds to the Configuration",
        {"internalCertManagement": {"enable": True, **certificates}},
        added,
    )
    found = verdict(text, tmp_path)
    record("Kueue's chart: what the controller loses of it", [], lost(said, found.loaded or {}))
    assert found.is_valid


def test_kueue_has_the_values_of_the_policy(record: Record) -> None:
    objects = render(a_kueue(kueue_release()), Stage.SCHEDULER, of_the_module())
    ready = _ready("kueue")
    manager = the(ready["kind"], ready["name"], objects)
    record("Kueue's chart: pods of its controller", 2, manager["spec"]["replicas"])
    [monitor] = [body for body in objects if body["kind"] == "ServiceMonitor"]
    record("Kueue's chart: where Prometheus looks, as `monitoring` has it", "kueue-system", _namespace(monitor))


def test_another_configuration_restarts_the_controller(record: Record) -> None:
    one, other = (
        the("Deployment", "kueue-controller-manager", render(plan, Stage.SCHEDULER, of_the_module()))
        for plan in (a_kueue(kueue_release()), a_kueue(kueue_release(), "[JobSet]"))
    )
    title = "Kueue's chart: what of its Deployment differs with the Configuration"
    record(title, ["spec.template.metadata.annotations"], _differing(one, other))


# --- What an AppProject must allow --------------------------------------------------------------------------------


def test_kueue_makes_what_argocd_allows(record: Record) -> None:
    plan = a_kueue(kueue_release())
    _record_unforeseen(record, plan, Stage.SCHEDULER, render(plan, Stage.SCHEDULER, of_the_module()))


@pytest.mark.parametrize("release", KUEUES)
def test_releases_of_kueue_make_what_argocd_allows(release: str, record: Record, tmp_path: Path) -> None:
    plan = a_kueue(release)
    objects = render(plan, Stage.SCHEDULER, of_a_mirror(KUEUE, release, tmp_path))
    _record_unforeseen(record, plan, Stage.SCHEDULER, objects)
    said = yaml.safe_load(_configuration(objects))
    record(f"Kueue {release}: pools' uncounted resources", "cpu", said["resources"]["excludeResourcePrefixes"][0])


@pytest.mark.parametrize("release", KAIS)
def test_kai_makes_what_argocd_allows(release: str, record: Record, tmp_path: Path) -> None:
    plan = a_kai(release)
    _record_unforeseen(
        record, plan, Stage.SCHEDULER, render(plan, Stage.SCHEDULER, of_a_mirror(KAI, release, tmp_path))
    )


@pytest.mark.parametrize("release", OPERATORS)
def test_the_operator_makes_what_argocd_allows(release: str, record: Record, tmp_path: Path) -> None:
    plan = an_operator(release)
    objects = render(plan, Stage.GPU_OPERATOR, of_a_mirror(OPERATOR, release, tmp_path))
    _record_unforeseen(record, plan, Stage.GPU_OPERATOR, objects)


def _record_unforeseen(record: Record, plan: Plan, stage: Stage, objects: Objects) -> None:
    """Kinds and namespaces that the chart makes and the catalog does not know: Argo CD would refuse the sync."""
    chart = chart_of(plan, stage)
    places = {None, chart.namespace, *chart.elsewhere}
    made = {body["metadata"]["name"] for body in objects if body["kind"] == "Namespace"}
    kinds = {(body["apiVersion"].rpartition("/")[0], body["kind"]) for body in objects if body["kind"] != "Namespace"}
    unforeseen = kinds - chart.kinds.cluster - chart.kinds.namespaced
    outside = {_namespace(body) for body in objects} - places
    title = f"{chart.name} {chart.version}: of {len(objects)} objects, kinds and namespaces that are not foreseen"
    record(title, [], sorted(map(str, (*unforeseen, *outside, *made - set(chart.creates)))))


# --- KAI-Scheduler -------------------------------------------------------------------------------------------------


def a_kai(release: str, sharing: str = "fraction: {}") -> Plan:
    return a_platform(f"kind: kai, version: {release}, install: helm", sharing)


@pytest.mark.parametrize("release", KAIS)
@pytest.mark.parametrize(("sharing", "shares"), [("fraction: {}", True), ("exclusive: {}", False)])
def test_kai_shares_gpus_where_a_pool_does(
    sharing: str, shares: bool, release: str, record: Record, tmp_path: Path
) -> None:
    objects = render(a_kai(release, sharing), Stage.SCHEDULER, of_a_mirror(KAI, release, tmp_path))
    found = _kai_config(objects)["spec"]["admission"]["gpuSharing"]
    record(f"KAI-Scheduler {release}: it shares GPUs with `{sharing}`", shares, found)


@pytest.mark.parametrize("release", KAIS)
def test_kai_is_ready_by_an_object_of_the_name(release: str, record: Record, tmp_path: Path) -> None:
    objects = render(a_kai(release), Stage.SCHEDULER, of_a_mirror(KAI, release, tmp_path))
    config, ready = _kai_config(objects), _ready("kai")
    planned = ready["apiVersion"], ready["kind"], ready["name"]
    record(f"KAI-Scheduler {release}: its Config", planned, (config["apiVersion"], config["kind"], _name(config)))


def _kai_config(objects: Objects) -> Any:
    """The operator's Config: an object of the chart from 0.17 on; before, a Job applies it from a ConfigMap."""
    manifests = [body["data"]["kai-config.yaml"] for body in objects if _name(body) == "kai-config-manifest"]
    return yaml.safe_load(manifests[0]) if manifests else the("Config", "kai-config", objects)


# --- The GPU Operator ----------------------------------------------------------------------------------------------


def an_operator(release: str) -> Plan:
    more = ", driver: {enabled: false}, rebootOnMigChange: true, env: {toolkit: {CONTAINERD_SOCKET: /run/k3s/c.sock}}"
    return a_platform("kind: kubernetes", "mig: {instances: {1g.10gb: 7}}", release, more)


@pytest.mark.parametrize("release", OPERATORS)
def test_the_cluster_policy_names_what_is_written(release: str, record: Record, tmp_path: Path) -> None:
    plan = an_operator(release)
    values = chart_values(plan, chart_of(plan, Stage.GPU_OPERATOR))
    objects = render(plan, Stage.GPU_OPERATOR, of_a_mirror(OPERATOR, release, tmp_path))
    spec = the("ClusterPolicy", "cluster-policy", objects)["spec"]
    planned = _read_of(values)
    record(f"GPU Operator {release}: ClusterPolicy", planned, _read_of(spec))
    assert planned["plugin"].startswith("gpuplan-device-plugin-")
    made = [
        _name(body) for body in objects if body["kind"] == "ConfigMap" and "node-feature-discovery" not in _name(body)
    ]
    record(f"GPU Operator {release}: ConfigMaps of layouts and keys that its chart makes", [], made)


def _read_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What both the values and the ClusterPolicy have, where one that is empty is as good as none."""
    return {
        "plugin": values["devicePlugin"]["config"]["name"],
        "layouts": values["migManager"]["config"]["name"],
        "default layout": values["migManager"]["config"]["default"],
        "reboot": values["migManager"]["env"],
        "strategy": (values.get("mig") or {}).get("strategy") or "",
        "driver": values["driver"]["enabled"],
        "toolkit": values["toolkit"]["env"],
    }


# --- Helpers -------------------------------------------------------------------------------------------------------


def _ready(scheduler: str) -> Mapping[str, str]:
    """The object by which Argo CD and Flux see that all of a chart is ready."""
    facts = find_scheduler_chart(scheduler)
    assert facts is not None
    return facts.ready


def _namespace(body: Object) -> str | None:
    found: str | None = body["metadata"].get("namespace")
    return found


def _name(body: Object) -> str:
    found: str = body["metadata"]["name"]
    return found


def _configuration(objects: Objects) -> str:
    text: str = the("ConfigMap", "kueue-manager-config", objects)["data"]["controller_manager_config.yaml"]
    return text


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], route: str = "") -> list[str]:
    found: list[str] = []
    for key in one.keys() | other.keys():
        here, there = one.get(key), other.get(key)
        if isinstance(here, Mapping) and isinstance(there, Mapping) and key != "annotations":
            found += _differing(here, there, f"{route}{key}.")
        elif here != there:
            found.append(f"{route}{key}")
    return found
