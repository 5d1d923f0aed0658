"""The back end of guards: Jobs that Argo CD runs before it changes the labels of a pool's nodes, and after.

mig-manager drains nothing and coordinates nothing: it partitions a node as soon as its label changes, fails while pods
hold the GPUs, and does not try again (NVIDIA/gpu-operator#262). The first Job fails the sync before that; the second
waits until it is done, or fails. Both only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from gpuplan.manifests import Hook, Manifest
from gpuplan.planning.plan import MIG_CONFIG_LABEL, POOL_LABEL, Plan, Pool, Stage
from gpuplan.planning.pools import ALL_DISABLED
from gpuplan.planning.projects import seconds
from gpuplan.planning.subjects import about
from gpuplan.policy.models import Guard, NodeLabels, Platform

_SCRIPT: Final = "guard.py"
_SETTINGS: Final = "settings.json"
_FOLDER: Final = "/gpuplan"


def render(plan: Plan) -> Iterator[Manifest]:
    """Nothing where no Argo CD runs hooks, where others label the nodes, or where a pool's GPUs have no MIG."""
    if plan.cluster.argocd is None or plan.cluster.spec.node_labels is NodeLabels.EXTERNAL:
        return
    for pool in plan.pools:
        if pool.spec.disruption.guard is not None and (targets := _targets(pool)):
            yield from _guard(plan, pool, pool.spec.disruption.guard, targets)


def _guard(plan: Plan, pool: Pool, guard: Guard, targets: list[dict[str, Any]]) -> Iterator[Manifest]:
    folder = f"{Stage.PARTITIONS.value}/{pool.name}"
    script = _config_map(plan, pool, guard, targets)
    for body in (_service_account(plan, pool), _cluster_role(pool), _cluster_role_binding(plan, pool), script):
        yield Manifest(folder, body, hook=Hook.SUPPORT, about=about(pool))
    for hook, limit in ((Hook.BEFORE, _BEFORE_SECONDS), (Hook.AFTER, seconds(guard.timeout) + _START_SECONDS)):
        job = _job(plan, pool, guard, hook, limit, script["metadata"]["name"])
        yield Manifest(folder, job, hook=hook, about=about(pool))


_BEFORE_SECONDS: Final = 600
_START_SECONDS: Final = 300
"""What an image may take to be pulled; the script says by itself what it has waited for in vain."""


# --- What the script reads ---------------------------------------------------------------------------------------


def _targets(pool: Pool) -> list[dict[str, Any]]:
    """The configuration of each node, as the pool's rules give it: by name, or by a pattern for the whole name."""
    parts = [part for part in pool.parts if part.nodes.names or part.nodes.name_pattern]
    return [_target(part, part.labels[MIG_CONFIG_LABEL]) for part in parts if MIG_CONFIG_LABEL in part.labels]


def _target(part: Pool, config: str) -> dict[str, Any]:
    if part.nodes.names:
        return {"config": config, "names": sorted(part.nodes.names)}
    pattern = {"config": config, "pattern": part.nodes.name_pattern}
    return pattern | ({"except": sorted(part.nodes.moved)} if part.nodes.moved else {})


def _leaving(plan: Plan) -> str | None:
    """What becomes of a node that leaves the pool: without its label the operator gives it one, unless it stays.

    (`updateGPUStateLabels` in `controllers/nodelabeling_controller.go` of NVIDIA/gpu-operator.)
    """
    return ALL_DISABLED if plan.cluster.spec.node_labels is NodeLabels.NFD else None


def _config_map(plan: Plan, pool: Pool, guard: Guard, targets: list[dict[str, Any]]) -> dict[str, Any]:
    """With a name that changes with its content: a kubelet may still know what another one of that name has held."""
    settings = {
        "pool": pool.name,
        "namespace": plan.cluster.gpu_operator.namespace,
        "timeoutSeconds": seconds(guard.timeout),
        "targets": targets,
        "leaving": _leaving(plan),
    }
    script = files(__package__).joinpath("script.py").read_text("utf-8")
    data = {_SCRIPT: script, _SETTINGS: json.dumps(settings, indent=2) + "\n"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(plan, pool, f"{_name(pool)}-{_digest(json.dumps(data))}"),
        "immutable": True,
        "data": data,
    }


# --- Who it is ---------------------------------------------------------------------------------------------------


def _service_account(plan: Plan, pool: Pool) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(plan, pool, _name(pool)),
        "automountServiceAccountToken": False,
    }


def _cluster_role(pool: Pool) -> dict[str, Any]:
    """Names of objects cannot narrow a list."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _name(pool), "labels": _labels(pool)},
        "rules": [
            {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list"]},
        ],
    }


def _cluster_role_binding(plan: Plan, pool: Pool) -> dict[str, Any]:
    namespace = plan.cluster.gpu_operator.namespace
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _name(pool), "labels": _labels(pool)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _name(pool)},
        "subjects": [{"kind": "ServiceAccount", "name": _name(pool), "namespace": namespace}],
    }


# --- The Jobs ----------------------------------------------------------------------------------------------------


def _job(plan: Plan, pool: Pool, guard: Guard, hook: Hook, seconds: int, config_map: str) -> dict[str, Any]:
    """A Job that fails when its pod does. A pod that makes way for a node's maintenance is replaced."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(plan, pool, f"{_name(pool)}-{hook.value}"),
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": {
                "metadata": {"labels": _labels(pool)},
                "spec": _pod(plan, pool, guard, hook, config_map),
            },
        },
    }


_KEPT_SECONDS: Final = 24 * 3600


def _pod(plan: Plan, pool: Pool, guard: Guard, hook: Hook, config_map: str) -> dict[str, Any]:
    """A pod that the Pod Security Standard `restricted` admits, rather not on a node that may reboot."""
    return {
        "restartPolicy": "Never",
        "serviceAccountName": _name(pool),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "preference": {
                            "matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "DoesNotExist"}]
                        },
                    }
                ]
            }
        },
        "securityContext": {
            "runAsNonRoot": True,
            **_user(plan),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "guard",
                "image": guard.image,
                "command": ["python3", "-I", "-B", f"{_FOLDER}/{_SCRIPT}", hook.value, f"{_FOLDER}/{_SETTINGS}"],
                "resources": {
                    "requests": {"cpu": "50m", "memory": "64Mi"},
                    "limits": {"memory": "256Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{"name": "script", "mountPath": _FOLDER, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "script", "configMap": {"name": config_map}}],
    }


def _user(plan: Plan) -> dict[str, int]:
    """Any but root: images run as root unless told otherwise. OpenShift chooses one of the namespace's own range."""
    return {} if plan.cluster.spec.platform is Platform.OPENSHIFT else {"runAsUser": _NOBODY, "runAsGroup": _NOBODY}


_NOBODY: Final = 65532


# --- Names -------------------------------------------------------------------------------------------------------


def _metadata(plan: Plan, pool: Pool, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": plan.cluster.gpu_operator.namespace, "labels": _labels(pool)}


def _labels(pool: Pool) -> Mapping[str, str]:
    return {"app.kubernetes.io/name": "gpuplan-guard", POOL_LABEL: pool.name}


def _name(pool: Pool) -> str:
    """The pool's name, cut where need be: a Job's is the value of a label of its pods."""
    name = f"gpuplan-guard-{pool.name}"
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9].rstrip('-')}-{_digest(name)}"


_LONGEST: Final = 63 - len(f"-{Hook.BEFORE.value}")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
