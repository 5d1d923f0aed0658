"""A canary of a service: a Deployment and a Service of its own, and the weights of the two."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.backends import workloads
from gpuplan.compiler.manifests import Manifest, check_schemas
from tests.compiler.backends.workloads.rendered import manifests, planned
from tests.compiler.backends.workloads.test_outside import GATEWAY, INGRESS, LABELS, backend

CANARY = "canary: {weight: 10, replicas: 2, image: 'registry.example.com/app:2', env: {B: '2', C: '3'}}"
SERVED = f"inference: {{port: 8080, replicas: 4, route: {{hosts: [a.example.com]}}, {CANARY}}}"
SPEC = f"{SERVED}\nargs: [--fast]\nenv: {{A: '1', B: '1'}}"


def found(spec: str = SPEC, **more: str) -> dict[tuple[str, str], Any]:
    """The objects by kind and name."""
    return {(item.kind, item.body["metadata"]["name"]): item.body for item in manifests(spec, cluster=GATEWAY, **more)}


def test_requests_are_weighed() -> None:
    (rule,) = found()["HTTPRoute", "app"]["spec"]["rules"]

    assert rule["backendRefs"] == [backend(weight=90), backend("app-canary", weight=10)]


def test_the_pods_of_a_canary_are_those_of_the_service_but_for_what_it_says() -> None:
    objects = found()
    one, other = objects["Deployment", "app"], objects["Deployment", "app-canary"]
    (own,), (changed,) = (item["spec"]["template"]["spec"].pop("containers") for item in (one, other))

    assert other["spec"]["replicas"] == 2
    assert changed.pop("image") == "registry.example.com/app:2"
    assert changed.pop("env") == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]
    assert {key: value for key, value in own.items() if key not in ("image", "env")} == changed
    assert one["spec"]["template"]["spec"] == other["spec"]["template"]["spec"]


def test_no_pod_of_a_canary_is_one_of_the_service() -> None:
    objects, own = found(), {"gpuplan.dev/workload": "app-canary"}

    other = objects["Deployment", "app-canary"]
    assert other["metadata"]["labels"] == LABELS
    assert other["spec"]["selector"] == {"matchLabels": own}
    assert other["spec"]["template"]["metadata"]["labels"] == {**LABELS, **own}
    assert objects["Service", "app-canary"]["spec"]["selector"] == own
    assert objects["Deployment", "app"]["spec"]["selector"] == {"matchLabels": {"gpuplan.dev/workload": "app"}}


def test_a_canary_mounts_what_the_service_mounts() -> None:
    objects = found(f"{SPEC}\nconfig: {{a: b}}\nmodel: {{size: 1Gi}}")

    volumes = [objects["Deployment", name]["spec"]["template"]["spec"]["volumes"] for name in ("app", "app-canary")]
    assert volumes[0] == volumes[1]
    assert sum(kind == "PersistentVolumeClaim" for kind, _ in objects) == 1


def test_a_canary_has_no_autoscaler_and_no_port_of_the_nodes() -> None:
    more = "service: {type: NodePort, port: 80, nodePort: 30080}, autoscaling: {maxReplicas: 4, waitingRequests: 3}"
    objects = found(SPEC.replace("replicas: 4", more))

    assert [name for kind, name in objects if kind == "HorizontalPodAutoscaler"] == ["app"]
    assert objects["Deployment", "app-canary"]["spec"]["replicas"] == 2
    spec = objects["Service", "app-canary"]["spec"]
    assert "type" not in spec
    assert spec["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]


def test_a_canary_takes_units_as_well() -> None:
    scaled = SPEC.replace("replicas: 4", "autoscaling: {minReplicas: 3, maxReplicas: 6, waitingRequests: 3}")

    assert planned(SPEC, cluster=GATEWAY).workloads[0].most_pods == 6
    assert planned(scaled, cluster=GATEWAY).workloads[0].most_pods == 8
    assert planned(scaled, cluster=GATEWAY).workloads[0].fewest_pods == 5


def test_without_weights_there_is_no_canary() -> None:
    alone = [
        item for item in workloads.render(planned(SPEC, cluster=INGRESS)) if "canary" in item.body["metadata"]["name"]
    ]

    assert alone == []


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
def test_a_canary_waits_where_the_service_does(scheduler: str) -> None:
    objects = found(scheduler=scheduler)
    one, other = (objects["Deployment", name] for name in ("app", "app-canary"))
    pods = [item["spec"]["template"]["metadata"]["labels"] for item in (one, other)]

    assert one["metadata"]["labels"] == other["metadata"]["labels"]
    assert {key for key in pods[0] if pods[0][key] != pods[1][key]} == {"gpuplan.dev/workload"}
    assert one["spec"]["template"]["spec"].get("schedulerName") == other["spec"]["template"]["spec"].get(
        "schedulerName"
    )
    assert list(check_schemas([*_written(scheduler)], "1.34")) == []


def _written(scheduler: str) -> list[Manifest]:
    return manifests(SPEC, cluster=GATEWAY, scheduler=scheduler)
