"""Pods as admission policies see them: validated, defaulted, their priority class resolved."""

from __future__ import annotations

from typing import Any

PRIORITIES = {
    "": 0,
    "research": 100,
    "training": 500,
    "production": 1000,
    "low": -10,
    "spot": 50,
    "guaranteed": 125,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def container(
    name: str = "main",
    *,
    limits: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    env: list[dict[str, Any]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A container; the API server fills requests from limits, and mounts the service account's token."""
    resources = {"limits": limits, "requests": {**(limits or {}), **(requests or {})}}
    return {
        "name": name,
        "image": "registry.example.com/app:1",
        "resources": {key: value for key, value in resources.items() if value},
        "volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        **({"env": env} if env else {}),
        **fields,
    }


def asking(resource: str, amount: str = "1", *, name: str = "main", **fields: Any) -> dict[str, Any]:
    return container(name, limits={"cpu": "4", "memory": "16Gi", resource: amount}, **fields)


def pod(
    *containers: dict[str, Any],
    pool: str = "",
    priority_class: str = "",
    init: tuple[dict[str, Any], ...] = (),
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod in namespace `research`; without containers it has a plain one."""
    metadata: dict[str, Any] = {"name": "pod", "namespace": "research"}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"annotations": annotations} if annotations else {}
    optional = {
        "initContainers": list(init),
        "nodeSelector": {"gpuplan.dev/pool": pool} if pool else {},
        "priorityClassName": priority_class,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": list(containers) or [container()],
            **{key: value for key, value in optional.items() if value},
            "priority": PRIORITIES[priority_class],
            "preemptionPolicy": "PreemptLowerPriority",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "volumes": [
                {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
            ],
            **spec,
        },
    }
