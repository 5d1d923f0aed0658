"""What leads to a service from outside, on clusters with a Gateway, a controller of Ingresses, both or none."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import check_schemas
from tests.compiler.backends.workloads.rendered import container_of, get, manifests

GATEWAY = "apis: [HTTPRoute]\ngateway: {name: public, namespace: gateways, listener: https}"
INGRESS = "ingress: {className: nginx}"
BOTH = f"{GATEWAY}\n{INGRESS}"
ROUTED = "inference: {port: 8080, ports: {rpc: 9000}, route: {hosts: [a.example.com, '*.b.example.com'], path: /v1}}"
LABELS = {"gpuplan.dev/tenant": "research", "gpuplan.dev/workload": "app"}


def backend(name: str = "app", port: int = 8080, weight: int = 1) -> dict[str, Any]:
    return {"group": "", "kind": "Service", "name": name, "port": port, "weight": weight}


def test_a_route_of_the_gateway_as_a_whole() -> None:
    assert get("HTTPRoute", ROUTED, cluster=GATEWAY) == {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "app", "namespace": "lab", "labels": LABELS},
        "spec": {
            "parentRefs": [
                {
                    "group": "gateway.networking.k8s.io",
                    "kind": "Gateway",
                    "namespace": "gateways",
                    "name": "public",
                    "sectionName": "https",
                }
            ],
            "hostnames": ["a.example.com", "*.b.example.com"],
            "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}], "backendRefs": [backend()]}],
        },
    }


def test_an_ingress_as_a_whole() -> None:
    paths = [{"path": "/v1", "pathType": "Prefix", "backend": {"service": {"name": "app", "port": {"name": "http"}}}}]
    assert get("Ingress", ROUTED, cluster=INGRESS) == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "app", "namespace": "lab", "labels": LABELS},
        "spec": {
            "ingressClassName": "nginx",
            "rules": [
                {"host": "a.example.com", "http": {"paths": paths}},
                {"host": "*.b.example.com", "http": {"paths": paths}},
            ],
        },
    }


def test_an_ingress_has_the_certificate_of_all_its_hosts() -> None:
    spec = ROUTED.replace("path: /v1", "tlsSecret: app-tls")

    tls = get("Ingress", spec, cluster=INGRESS)["spec"]["tls"]
    assert tls == [{"hosts": ["a.example.com", "*.b.example.com"], "secretName": "app-tls"}]


@pytest.mark.parametrize(
    ("inference", "port"),
    [
        ("port: 8080, ports: {rpc: 9000}, route: {hosts: [a]}", 8080),
        ("port: 8080, ports: {rpc: 9000}, service: {port: 80}, route: {hosts: [a]}", 80),
        ("port: 8080, ports: {rpc: 9000}, service: {port: 80}, route: {hosts: [a], port: rpc}", 9000),
    ],
)
def test_requests_come_to_a_port_that_the_service_has(inference: str, port: int) -> None:
    spec = f"inference: {{{inference}}}"

    (rule,) = get("HTTPRoute", spec, cluster=GATEWAY)["spec"]["rules"]
    assert rule["backendRefs"] == [backend(port=port)]
    assert port in [found["port"] for found in get("Service", spec)["spec"]["ports"]]


def test_the_gateway_is_told_which_port_speaks_grpc() -> None:
    both = "canary: {weight: 10, image: 'registry.example.com/app:2'}"
    spec = f"inference: {{ports: {{rpc: 9000}}, route: {{hosts: [a], port: rpc, grpc: true}}, {both}}}"

    services = [item.body for item in manifests(spec, cluster=GATEWAY) if item.kind == "Service"]
    assert len(services) == 2
    for service in services:
        assert [port.get("appProtocol") for port in service["spec"]["ports"]] == [None, "kubernetes.io/h2c"]


@pytest.mark.parametrize(
    ("cluster", "asked", "kinds"),
    [
        (BOTH, "", ["Ingress"]),
        (BOTH, ", kind: HTTPRoute", ["HTTPRoute"]),
        (GATEWAY, "", ["HTTPRoute"]),
        (GATEWAY, ", kind: Ingress", []),
        (INGRESS, "", ["Ingress"]),
        ("apis: [HTTPRoute]", "", []),
        ("gateway: {name: public, namespace: gateways}", "", []),
        ("", "", []),
    ],
)
def test_the_kind_is_the_one_that_is_asked_for_or_that_the_cluster_has(
    cluster: str, asked: str, kinds: list[str]
) -> None:
    spec = f"inference: {{route: {{hosts: [a.example.com]{asked}}}}}"

    found = [item.kind for item in manifests(spec, cluster=cluster) if item.kind in {"HTTPRoute", "Ingress"}]
    assert found == kinds


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue", "kai", "runai"])
@pytest.mark.parametrize("cluster", [GATEWAY, INGRESS], ids=["gateway", "ingress"])
def test_routes_fit_their_schemas_under_every_scheduler(cluster: str, scheduler: str) -> None:
    found = [
        item for item in manifests(ROUTED, cluster=cluster, scheduler=scheduler) if item.kind.endswith(("Route", "ss"))
    ]

    assert len(found) == 1
    assert list(check_schemas(found, "1.34")) == []


def test_a_container_that_runs_is_asked_only_where_the_policy_says_so() -> None:
    asked = "inference: {probe: {http: /ready}, startup: 1m, liveness: {http: /live, timeout: 5s}}"

    found = container_of("Deployment", asked)
    assert found["livenessProbe"] == {"httpGet": {"path": "/live", "port": "http"}, "timeoutSeconds": 5}
    assert found["readinessProbe"] == {"httpGet": {"path": "/ready", "port": "http"}}
    assert "livenessProbe" not in container_of("Deployment", "inference: {probe: {http: /ready}}")
