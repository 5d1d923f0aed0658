"""Values on both sides of a rule's border, and where they stand in a policy and in an object of the API server."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.plans import CLUSTER

Body = dict[str, Any]

CLUSTER_OF_NODES: Final = f"{CLUSTER}  nodeLabels: node\n"
"""Labels and taints go to the API server as they are; NFD has rules of its own about them."""


@dataclass(frozen=True, slots=True)
class Family:
    """Values of one kind. ``policy`` is a policy that is right but for the value, ``body`` an object with the value.

    ``stricter`` says why gpuplan refuses values that the API server takes; without it they refuse the same.
    """

    name: str
    values: tuple[Any, ...]
    policy: Callable[[Any], str]
    body: Callable[[Any], Body]
    stricter: str = ""


def document(kind: str, name: str, **spec: Any) -> Body:
    return {"apiVersion": "gpuplan.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def text_of(*documents: Body, cluster: str = CLUSTER_OF_NODES) -> str:
    """A cluster and the documents as one stream; JSON is YAML that leaves nothing to guess."""
    return f"{cluster}---\n" + "---\n".join(f"{json.dumps(body)}\n" for body in documents)


# --- Values ----------------------------------------------------------------------------------------------------------

_NAMES = (
    "a", "0", "a-b", "-a", "a-", "A", "a_b", "a.b", "a..b", ".a", "a.", "a.-b", "a-.b", "é", "a b", " a", "a\n", "",
    "a" * 63, "a" * 64, "a" * 253, "a" * 254, f"{'a' * 63}.a", f"{'a' * 64}.a", "kube", "1.2.3.4", "a--b",
)  # fmt: skip
_LABEL_KEYS = (
    *_NAMES, "example.com/a", "example.com/", "/a", "a/b/c", "Example.com/a", "example.com/A_b", "example.com/-a",
    "-/a", "exa_mple/a", "example.com./a", f"example.com/{'a' * 63}", f"example.com/{'a' * 64}",
    f"{'a' * 253}/a", f"{'a' * 254}/a",
)  # fmt: skip
_LABEL_VALUES = (*_NAMES, "A", "a_b", "A.b-C_d", "_a", "a_", "true", "1")
_QUANTITIES = (
    "1", "0", "0.5", ".5", "1.", "500m", "1500m", "1u", "1n", "4Ki", "4KI", "4ki", "1k", "1K", "1M", "1Mi", "1.5Gi",
    "32Gi", "32 GB", "32GB", "1e3", "1E3", "1E", "1e", "e3", "1e-3", "1e+3", "+1", "-1", "1,5", "0x10", "", " 1", "1 ",
    "1_000", "16Ei", "9E", "100Ei", "1e18", "1e400", "12345678901234567890", "1.1Mi", "٣", "NaN", "inf", "1m1", "1Gii",
    "4096", "4097", "1i", ".", "1..5", "1e3Ki", "1e1000",
)  # fmt: skip
_ALPHABET = f"ab9{string.digits}-._/AZ é:=+"


def _drawn(edges: tuple[str, ...], chance: Random, *, count: int = 25, longest: int = 70) -> tuple[str, ...]:
    """The edges, some of them with a character more or less, and texts of what names are made of."""
    drawn = ["".join(chance.choices(_ALPHABET, k=chance.randint(1, 6))) for _ in range(count)]
    drawn += ["".join(chance.choices("ab0-.", k=chance.randint(longest - 10, longest))) for _ in range(count // 5)]
    for edge in chance.sample(edges, k=min(len(edges), count // 2)):
        cut = chance.randint(0, len(edge))
        drawn += [edge[:cut] + edge[cut + 1 :], edge[:cut] + chance.choice(_ALPHABET) + edge[cut:]]
    return tuple(dict.fromkeys((*edges, *drawn)))


_NUMBERS = (0, 1, -1, 10**9, 10**9 + 1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 10**9 - 1, 999_999_999)


# --- Policies --------------------------------------------------------------------------------------------------------


def _pool(**spec: Any) -> Body:
    return document("Pool", "pool", **{**_POOL, **spec})


def _tenant(**spec: Any) -> Body:
    return document("Tenant", "team", **{**_TENANT, **spec})


def _workload(name: str = "work", kind: str = "training", **spec: Any) -> str:
    image = "registry.example.com/app:1.0.0"
    work = document("Workload", name, **{"tenant": "team", "pool": "pool", "image": image, kind: {}, **spec})
    return text_of(_pool(), _tenant(), work)


_POOL: Final[Body] = {
    "gpu": "A100-80GB",
    "nodes": {"count": 1, "gpusPerNode": 8, "names": ["gpu-1"]},
    "sharing": {"exclusive": {}},
}
_TENANT: Final[Body] = {"namespaces": ["team"], "quotas": [{"pool": "pool", "guaranteed": 8}]}


# --- Objects ---------------------------------------------------------------------------------------------------------


def _object(version: str, kind: str, metadata: Body, **fields: Any) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _node(name: str = "gpu-1", labels: Body | None = None, taint: Body | None = None) -> Body:
    taints = [{"key": "example.com/a", "value": "a", "effect": "NoSchedule", **taint}] if taint is not None else []
    return _object("v1", "Node", {"name": name, "labels": labels or {}}, spec={"taints": taints})


def _pod(container: Body, **spec: Any) -> Body:
    made = {"name": "main", "image": "registry.example.com/app:1.0.0", **container}
    return _object("v1", "Pod", {"name": "work"}, spec={"containers": [made], **spec})


def _claim(size: str, storage_class: str = "files") -> Body:
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return _object("v1", "PersistentVolumeClaim", {"name": "model"}, spec=spec)


def _mounted(path: str) -> Body:
    mounts = [{"name": "model", "mountPath": path}]
    return _pod({"volumeMounts": mounts}, volumes=[{"name": "model", "emptyDir": {}}])


def _service(name: str, kind: str = "ClusterIP", node_port: int | None = None) -> Body:
    port = {"port": 80, **({} if node_port is None else {"nodePort": node_port})}
    return _object("v1", "Service", {"name": name}, spec={"type": kind, "ports": [port]})


def _reached(kind: str, node_port: int | None) -> Body:
    """What a policy says of such a Service."""
    return {"type": kind, **({} if node_port is None else {"nodePort": node_port})}


def _bound_to(group: str) -> Body:
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"}
    subjects = [{"apiGroup": rbac, "kind": "Group", "name": group}]
    return _object(f"{rbac}/v1", "RoleBinding", {"name": "members"}, roleRef=role, subjects=subjects)


def _priority_class(name: str = "a", value: int = 1) -> Body:
    return _object("scheduling.k8s.io/v1", "PriorityClass", {"name": name}, value=value)


def _autoscaler(metric: str) -> Body:
    target = {"type": "AverageValue", "averageValue": "20"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "work"},
        "maxReplicas": 2,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": metric}, "target": target}}],
    }
    return _object("autoscaling/v2", "HorizontalPodAutoscaler", {"name": "work"}, spec=spec)


def _two_taints(key: str, effect: str) -> list[Body]:
    return [{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": key, "value": "2", "effect": effect}]


def _capped(amount: float) -> Body:
    return _object("v1", "ResourceQuota", {"name": "gpus"}, spec={"hard": {"requests.nvidia.com/gpu": str(amount)}})


def families(seed: str = "") -> Iterator[Family]:
    """Every kind of value of which a rule says what the API server takes; the seed draws others."""

    def drawn(edges: tuple[str, ...], what: str) -> tuple[str, ...]:
        return _drawn(edges, Random(f"{seed} {what}"))

    yield Family(
        "keys of node labels",
        drawn(_LABEL_KEYS, "label keys"),
        lambda key: text_of(_pool(nodeLabels={key: "a"})),
        lambda key: _node(labels={key: "a"}),
    )
    yield Family(
        "values of node labels",
        drawn(_LABEL_VALUES, "label values"),
        lambda value: text_of(_pool(nodeLabels={"example.com/a": value})),
        lambda value: _node(labels={"example.com/a": value}),
    )
    yield Family(
        "keys of taints",
        drawn(_LABEL_KEYS, "taint keys"),
        lambda key: text_of(_pool(taints=[{"key": key, "effect": "NoSchedule"}])),
        lambda key: _node(taint={"key": key}),
    )
    yield Family(
        "values of taints",
        drawn(_LABEL_VALUES, "taint values"),
        lambda value: text_of(_pool(taints=[{"key": "example.com/a", "value": value, "effect": "NoSchedule"}])),
        lambda value: _node(taint={"value": value}),
    )
    yield Family(
        "names of nodes",
        drawn(_NAMES, "nodes"),
        lambda name: text_of(_pool(nodes={"count": 1, "gpusPerNode": 8, "names": [name]})),
        _node,
    )
    yield Family(
        "names of namespaces",
        drawn(_NAMES, "namespaces"),
        lambda name: text_of(_pool(), _tenant(namespaces=[name])),
        lambda name: _object("v1", "Namespace", {"name": name}),
    )
    yield Family(
        "names of priority classes",
        drawn((*_NAMES, "system-a", "system", "system-node-critical"), "classes"),
        lambda name: text_of(document("PriorityClass", name, value=1)),
        _priority_class,
    )
    yield Family(
        "values of priority classes",
        _NUMBERS,
        lambda value: text_of(document("PriorityClass", "a", value=value)),
        lambda value: _priority_class(value=value),
    )
    yield Family(
        "names of groups",
        (
            "a",
            "",
            " ",
            " a",
            "a ",
            "system:authenticated",
            "oidc:Team A",
            "https://example.com/groups#1",
            "é",
            "a" * 300,
        ),
        lambda group: text_of(_pool(), _tenant(members=[group])),
        _bound_to,
        stricter="with space around it a name matches nobody",
    )
    yield Family(
        "names of services",
        drawn((*_NAMES, "9a", "a9", "a" * 62 + "-"), "services"),
        lambda name: _workload(name, "inference"),
        _service,
    )
    yield Family(
        "amounts of CPU",
        _QUANTITIES,
        lambda cpu: _workload(cpu=cpu),
        lambda cpu: _pod({"resources": {"limits": {"cpu": cpu} if cpu else {}}}),
        stricter="none, less than none and more than any node has are taken, too",
    )
    yield Family(
        "amounts of memory",
        _QUANTITIES,
        lambda memory: _workload(memory=memory),
        lambda memory: _pod({"resources": {"limits": {"memory": memory} if memory else {}}}),
        stricter="so little that nothing starts is taken, too",
    )
    yield Family(
        "sizes of volumes",
        _QUANTITIES,
        lambda size: _workload(model={"size": size}),
        _claim,
        stricter="so little that nothing fits in is taken, too",
    )
    yield Family(
        "names of storage classes",
        drawn(_NAMES, "storage classes"),
        lambda name: _workload(model={"size": "1Gi", "storageClass": name}),
        lambda name: _claim("1Gi", name),
        stricter="an empty one asks for no class at all",
    )
    yield Family(
        "names of variables",
        drawn(
            ("A", "_", "a.b", "a-b", "9A", "A=B", "", ".", "..", "..a", ".a", "a b", "é", "a:b", "A" * 300), "variables"
        ),
        lambda name: _workload(env={name: "a"}),
        lambda name: _pod({"env": [{"name": name, "value": "a"}]}),
        stricter="other printable characters are taken since 1.32",
    )
    yield Family(
        "names of ports",
        drawn(("a", "http", "80", "a1", "1a", "-a", "a-", "a--b", "A", "", "a_b", "a" * 15, "a" * 16), "ports"),
        lambda name: _workload(kind="inference", inference={"ports": {name: 8001}}),
        lambda name: _pod({"ports": [{"name": "http", "containerPort": 8000}, {"name": name, "containerPort": 8001}]}),
        stricter="a port may go without a name",
    )
    yield Family(
        "keys of Secrets",
        drawn(("a", "a.b", "A_b", "..", ".", "..a", "a/b", "", "a b", "é", "a" * 253, "a" * 254), "keys"),
        lambda key: _workload(env={"A": {"secretKeyRef": {"name": "a", "key": key}}}),
        lambda key: _pod({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": key}}}]}),
    )
    yield Family(
        "names of Secrets",
        drawn(_NAMES, "secrets"),
        lambda name: _workload(env={"A": {"secretKeyRef": {"name": name, "key": "a"}}}),
        lambda name: _pod({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "a"}}}]}),
        stricter="a reference may have a name that no Secret can have",
    )
    yield Family(
        "types of Services",
        tuple(
            (kind, port)
            for kind in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "nodeport", "")
            for port in (None, 0, 30090, 32767, 65536)
        ),
        lambda value: _workload(kind="inference", inference={"service": _reached(*value)}),
        lambda value: _service("work", *value),
        stricter="a port that is 0 and a type that is empty are as good as none",
    )
    yield Family(
        "names of files",
        drawn(
            ("a", "a.yaml", ".a", ".", "..", "..a", "...", "a/b", "A_b", "", "a b", "é", "a" * 253, "a" * 254), "files"
        ),
        lambda name: _workload(config={name: "a"}),
        lambda name: _object("v1", "ConfigMap", {"name": "config"}, data={name: "a"}),
    )
    yield Family(
        "paths of volumes",
        (
            "/models",
            "models",
            "/",
            "",
            "/a:b",
            "/a/../b",
            "/a/..",
            "..",
            "/..a",
            "/dev",
            "/dev/shm",
            "/a b",
            "/é",
            "//a",
            "/a/",
        ),
        lambda path: _workload(model={"size": "1Gi", "mountPath": path}),
        _mounted,
        stricter="it is the container runtime that fails on paths",
    )
    yield Family(
        "names of metrics",
        drawn(("a", "http_requests", "a/b", "a%b", ".", "..", ".a", "a.b", "", "a b", "é"), "metrics"),
        lambda metric: _workload(
            kind="inference", inference={"autoscaling": {"maxReplicas": 2, "requestsPerSecond": 1, "metric": metric}}
        ),
        _autoscaler,
        stricter="a metric with space in its name is in no path",
    )
    yield Family(
        "sizes of files",
        (0, 1, 2**20 - 1, 2**20, 2**20 + 1),
        lambda size: _workload(config={"a": "x" * size}),
        lambda size: _object("v1", "ConfigMap", {"name": "config"}, data={"a": "x" * size}),
        stricter="the API server does not count names",
    )
    yield Family(
        "pairs of taints",
        tuple((key, effect) for key in ("a", "b") for effect in ("NoSchedule", "NoExecute")),
        lambda other: text_of(_pool(taints=_two_taints(*other))),
        lambda other: _object("v1", "Node", {"name": "gpu-1"}, spec={"taints": _two_taints(*other)}),
    )
    yield Family(
        "parts of GPUs in quotas",
        (0, 1, 8, 0.5, 1.5, 0.001, 7.999),
        lambda amount: text_of(_pool(), _tenant(quotas=[{"pool": "pool", "guaranteed": amount}])),
        _capped,
        stricter="a quota of a part of a device lets in no device",
    )
