"""Random Workloads, of each field that they have, on a platform with room for them.

`FIELDS` says of each model below a Workload what its fields may be. Fields that must fit others are brought to do so:
what is drawn is a policy without errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, get_args

from hypothesis import strategies as st
from pydantic import BaseModel

from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.compiler.policy.models import (
    KINDS_OF_WORK,
    Api,
    AutoscalerKind,
    Autoscaling,
    Batch,
    Canary,
    Checkpoint,
    Closeness,
    ConfigMapKey,
    Download,
    Elastic,
    Framework,
    Inference,
    ModelVolume,
    PartOfGpu,
    Peers,
    PodPatch,
    Probe,
    Query,
    Reach,
    Route,
    SecretKey,
    ServingKind,
    Storage,
    Training,
    TrainingKind,
    ValueFrom,
    Worker,
    WorkloadSpec,
    Workspace,
)
from tests.plans import a_cluster
from tests.platforms import document, pool, priority_class, tenant

Spec = dict[str, Any]

MOST_PODS: Final = 4
MOST_UNITS: Final = 2
TOGETHER: Final = 5
"""How many workloads are on one platform."""


# --- The platform --------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A pool, its units, and how many of each are promised for each node that it has."""

    sharing: str
    units: Mapping[str, int]
    more: str = ""
    schedulers: frozenset[str] = frozenset(SCHEDULERS)
    levels: tuple[str, ...] = ()
    is_shared: bool = False
    platform: str = "plugin"
    """Pools of device plugins and pools of claims are not on one platform."""


RACK: Final = "example.com/rack"
HOST: Final = "kubernetes.io/hostname"
NODES: Final = 160
"""Enough for all workloads of a platform at once, in half of a tenant's third, where each is as large as can be."""
RESOURCES: Final = frozenset(("kubernetes", "kueue"))
GPUS: Final = frozenset(("kai", "runai"))
PLACES: Final[Mapping[str, Place]] = {
    "whole": Place("exclusive: {}", {"gpu": 8}),
    "racks": Place("exclusive: {}", {"gpu": 8}, f"topology: [{RACK}, {HOST}]", levels=(RACK, HOST)),
    "turns": Place("timeSlicing: {replicas: 3}", {"shared": 24}, schedulers=RESOURCES, is_shared=True),
    "mps": Place("mps: {replicas: 2}", {"shared": 16}, schedulers=RESOURCES, is_shared=True),
    "mixed": Place("mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}", {"2g.20gb": 16, "3g.40gb": 8}),
    "claims": Place("exclusive: {}", {"gpu": 8}, "allocation: dra", frozenset(("kubernetes",)), platform="claims"),
    "demand": Place(
        "dynamicMig: {profiles: [1g.10gb, 3g.40gb]}",
        {"1g.10gb": 3, "3g.40gb": 3},
        "allocation: dra",
        frozenset(("kubernetes",)),
        platform="partitions",
    ),
    "parts": Place("fraction: {}", {"fraction": 8}, schedulers=GPUS, is_shared=True),
}
COMPUTE: Final = "cpu: '192', memory: 2Ti"
TENANTS: Final[Mapping[str, tuple[str, ...]]] = {"lab": ("lab",), "duo": ("duo-a", "duo-b"), "counted": ("counted",)}
CLASSES: Final[Mapping[str, tuple[str, ...]]] = {"duo": ("steady", "cheap"), "counted": ("steady",)}
"""What tenants may name: of several one has to be named."""


def _places_of(scheduler: str) -> dict[str, dict[str, Place]]:
    """The pools that a scheduler counts, by the platform that they are on."""
    found: dict[str, dict[str, Place]] = {}
    for name, place in PLACES.items():
        if scheduler in place.schedulers:
            found.setdefault(place.platform, {})[name] = place
    return found


def _platform(scheduler: str, cluster: str, places: Mapping[str, Place], *, has_default: bool) -> str:
    """The cluster, its pools, and tenants that are guaranteed a third of each unit."""
    nodes = f"count: {NODES}, gpusPerNode: 8, {COMPUTE}"
    default = "default: true" if has_default else ""
    own = _OF_PLATFORMS.get(next(iter(places.values())).platform, "")
    return "".join(
        (
            f"{a_cluster(_scheduler(scheduler))}{cluster}{_KINDS}{own}",
            *(
                pool(name, place.sharing, place.more, nodes=f"{nodes}, namePattern: '{name}-[0-9]+'")
                for name, place in places.items()
            ),
            priority_class("usual", 100, default),
            priority_class("steady", 300, "preemptible: false"),
            priority_class("cheap", 50),
            *(_tenant(name, places) for name in TENANTS),
        )
    )


_OF_PLATFORMS: Final = {"partitions": "  dra: {partitionableDevices: true}\n"}
"""What a platform asks of its cluster."""


def _scheduler(kind: str) -> str:
    """Kueue is told of the kinds that it may admit as a whole."""
    known = sorted(set(Api) & set(Framework))
    return f"kind: kueue, kueue: {{frameworks: [{', '.join(known)}]}}" if kind == "kueue" else f"kind: {kind}"


def _tenant(name: str, places: Mapping[str, Place]) -> str:
    quotas = [_quota(name, key, unit, each) for key, place in places.items() for unit, each in place.units.items()]
    classes = f"priorityClasses: [{', '.join(CLASSES[name])}]" if name in CLASSES else ""
    security = "allow: {podSecurity: restricted}" if name == "duo" else ""
    more = ", ".join(filter(None, (classes, security)))
    return tenant(name, *quotas, namespaces=", ".join(TENANTS[name]), more=more)


def _quota(name: str, of: str, unit: str, each: int) -> str:
    own, namespaces = NODES * each // len(TENANTS), TENANTS[name]
    parts = ", ".join(f"{namespace}: {own // len(namespaces)}" for namespace in namespaces)
    split = f", split: {{{parts}}}" if len(namespaces) > 1 else ""
    compute = ", cpu: '2000', memory: 20Ti" if name == "counted" else ""
    return f"pool: {of}, unit: {unit}, guaranteed: {own}{split}{compute}"


_KINDS: Final = (
    f"  apis: [{', '.join(Api)}]\n  gateway: {{name: public, namespace: gateways}}\n  ingress: {{className: nginx}}\n"
    "  prometheus: {url: 'http://prometheus.monitoring:9090'}\n"
)
"""What every platform has beside Kubernetes."""

CLUSTERS: Final = (
    "",
    "  taintPools: true\n",
    "  admission: {gracePeriod: 10s}\n",
    "  admission: {gracePeriod: none, without: [tolerations-within-pools]}\n",
)


@st.composite
def platforms(draw: st.DrawFn, scheduler: str) -> str:
    """The policies of a platform with several workloads, and a default class or none."""
    places = draw(st.sampled_from([*_places_of(scheduler).values()]))
    text = _platform(scheduler, draw(st.sampled_from(CLUSTERS)), places, has_default=draw(st.booleans()))
    specs = draw(st.lists(specs_on(places), min_size=TOGETHER, max_size=TOGETHER))
    return "".join((text, *(_workload(number, spec) for number, spec in enumerate(specs))))


def _workload(number: int, spec: Spec) -> str:
    """Ports of nodes and hosts are the whole cluster's."""
    service = spec.get("inference", {}).get("service", {})
    if "nodePort" in service:
        service["nodePort"] = 30000 + number
    route = spec.get("inference", {}).get("route", {})
    if "hosts" in route:
        route["hosts"] = [host.replace("example", f"example-{number}") for host in route["hosts"]]
    return document("Workload", f"work-{number}", json.dumps(spec)[1:-1])


# --- Fields --------------------------------------------------------------------------------------------------------

_COUNTS: Final = st.integers(1, MOST_PODS)
_PORTS: Final = st.integers(1024, 65535)
_DURATIONS: Final = st.sampled_from(["30s", "10m", "4h"])
_NAMES: Final = st.sampled_from(["registry", "api-token", "settings"])
_KEYS: Final = st.sampled_from(["token", "url.txt", "KEY"])
_WORDS: Final = st.lists(st.sampled_from(["serve", "--model", "/models/a b", "$(RANK)"]), max_size=3)
_VARIABLES: Final = ("LOG_LEVEL", "HUB", "RANK", "CUDA_LAUNCH_BLOCKING")


def _with(model: type[BaseModel]) -> st.SearchStrategy[Spec]:
    return st.deferred(lambda: drawn(model))


def _environment() -> st.SearchStrategy[Spec]:
    values = st.sampled_from(["debug", "", "1"]) | _with(ValueFrom)
    return st.dictionaries(st.sampled_from(_VARIABLES), values, max_size=3)


_PATCHES: Final = (
    {"hostAliases": [{"ip": "10.0.0.7", "hostnames": ["store.example.com"]}]},
    {
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "containers": [{"name": "main", "volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}],
    },
    {
        "containers": [
            {
                "name": "proxy",
                "image": "registry.example.com/proxy:1",
                "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ]
    },
)

_OF_BATCH: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "pods": _COUNTS,
    "trials": st.integers(1, 9),
    "backoff_limit": st.integers(0, 6),
    "backoff_limit_per_index": st.integers(0, 3),
    "max_failed_indexes": _COUNTS,
    "fatal_exit_codes": st.lists(st.integers(1, 255), max_size=3),
    "deadline": _DURATIONS,
}

FIELDS: Final[Mapping[type[BaseModel], Mapping[str, st.SearchStrategy[Any]]]] = {
    SecretKey: {"name": _NAMES, "key": _KEYS},
    ConfigMapKey: {"name": _NAMES, "key": _KEYS},
    ValueFrom: {"secret_key_ref": _with(SecretKey), "config_map_key_ref": _with(ConfigMapKey)},
    Download: {
        "image": st.just("registry.example.com/fetch:1"),
        "command": _WORDS,
        "args": _WORDS,
        "env": _environment(),
    },
    ModelVolume: {
        "size": st.sampled_from(["1Gi", "250G"]),
        "storage_class": st.just("fast"),
        "mount_path": st.sampled_from(["/models", "/opt/weights"]),
        "access_mode": st.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]),
        "download": _with(Download),
    },
    Autoscaling: {
        "min_replicas": st.integers(0, MOST_PODS),
        "max_replicas": _COUNTS,
        "requests_per_second": st.integers(1, 100),
        "waiting_requests": st.integers(1, 100),
        "cpu_percent": st.integers(1, 100),
        "gpu_percent": st.integers(1, 100),
        "query": _with(Query),
        "metric": st.just("queue_length"),
        "kind": st.sampled_from([kind.value for kind in AutoscalerKind]),
        "cooldown": _DURATIONS,
    },
    Query: {
        "promql": st.just('sum(rate(gateway_requests_total{route="a"}[2m]))'),
        "per_pod": st.sampled_from([1, 0.5, 20]),
        "idle": st.sampled_from([0, 0.1]),
    },
    Canary: {
        "weight": st.integers(0, 100),
        "replicas": st.integers(1, 2),
        "image": st.just("registry.example.com/app:2"),
        "command": _WORDS,
        "args": _WORDS,
        "env": _environment(),
    },
    Probe: {
        "http": st.just("/health"),
        "grpc": st.just("inference.Health"),
        "command": st.just(["cat", "/tmp/ready"]),
        "port": st.sampled_from(["http", "metrics"]),
        "timeout": _DURATIONS,
    },
    Reach: {
        "type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
        "port": st.integers(80, 99),
        "node_port": st.just(30000),
    },
    Route: {
        "hosts": st.lists(st.sampled_from(["chat.example.com", "*.example.com"]), min_size=1, max_size=2, unique=True),
        "path": st.sampled_from(["/", "/v1"]),
        "port": st.sampled_from(["http", "metrics"]),
        "tls_secret": _NAMES,
        "grpc": st.booleans(),
        "kind": st.sampled_from(["HTTPRoute", "Ingress"]),
    },
    Worker: {"command": _WORDS, "args": _WORDS},
    Inference: {
        "kind": st.sampled_from([kind.value for kind in ServingKind]),
        "replicas": _COUNTS,
        "pods_per_replica": st.integers(1, MOST_UNITS),
        "worker": _with(Worker),
        "topology": _with(Closeness),
        "port": _PORTS | st.just("none"),
        "ports": st.dictionaries(st.sampled_from(["metrics", "grpc"]), st.integers(100, 199), max_size=2),
        "probe": _with(Probe) | st.sampled_from(["tcp", "grpc", "none"]),
        "startup": _DURATIONS,
        "liveness": _with(Probe) | st.sampled_from(["tcp", "grpc", "none"]),
        "service": _with(Reach),
        "route": _with(Route),
        "canary": _with(Canary),
        "autoscaling": _with(Autoscaling),
    },
    Checkpoint: {
        "size": st.sampled_from(["5Gi", "1T"]),
        "storage_class": st.just("fast"),
        "mount_path": st.sampled_from(["/checkpoints", "/state"]),
        "access_mode": st.just("ReadWriteMany"),
    },
    Elastic: {"min_pods": _COUNTS},
    PodPatch: {
        "metadata": st.sampled_from([{"labels": {"team": "search"}}, {"annotations": {"team": "search"}}]),
        "spec": st.sampled_from(_PATCHES),
    },
    Closeness: {"required": st.just(RACK), "preferred": st.sampled_from([RACK, HOST])},
    Peers: {"port": _PORTS},
    Batch: _OF_BATCH,
    Training: {
        **_OF_BATCH,
        "kind": st.sampled_from([kind.value for kind in TrainingKind]),
        "gang": _COUNTS,
        "topology": _with(Closeness),
        "peers": _with(Peers),
        "elastic": _with(Elastic),
        "checkpoint": _with(Checkpoint),
    },
    Storage: {
        "size": st.sampled_from(["50Gi", "1Ti"]),
        "storage_class": st.just("fast"),
        "mount_path": st.sampled_from(["/work", "/home/jovyan"]),
        "access_mode": st.sampled_from(["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]),
        "group": st.just(100),
    },
    Workspace: {"port": _PORTS, "idle": _DURATIONS, "run_time": _DURATIONS, "storage": _with(Storage)},
    PartOfGpu: {
        "min": st.sampled_from([0.1, 0.25]),
        "max": st.sampled_from([0.5, 1.0]),
        "memory": st.sampled_from(["5Gi", "10Gi"]),
    },
    WorkloadSpec: {
        "image": st.just("registry.example.com/app:1"),
        "image_pull_secrets": st.lists(_NAMES, max_size=2, unique=True),
        "command": _WORDS,
        "args": _WORDS,
        "env": _environment(),
        "config": st.dictionaries(st.sampled_from(["a.yaml", "b"]), st.sampled_from(["x: 1\n", "é"]), max_size=2),
        "cpu": st.sampled_from(["2", "500m", "1.5"]),
        "memory": st.sampled_from(["1Gi", "512M", "0.5Gi"]),
        "model": _with(ModelVolume),
        "pod_patch": _with(PodPatch),
    },
}
"""What a field may be, by the model that has it. A default is drawn by leaving a field out."""

PLACED: Final = frozenset(
    {"tenant", "namespace", "pool", "unit", "count", "fraction", "priority_class", *KINDS_OF_WORK}
)
"""Fields of a workload that follow from where on the platform it is drawn to be."""

LEFT_OUT: Final[Mapping[tuple[type[BaseModel], str], str]] = {}
"""Fields that no workload is drawn with, each with the reason."""

ONE_OF: Final[Mapping[type[BaseModel], tuple[str, ...]]] = {
    ValueFrom: ("secret_key_ref", "config_map_key_ref"),
    Autoscaling: ("requests_per_second", "waiting_requests", "cpu_percent", "gpu_percent", "query"),
    Probe: ("http", "grpc", "command"),
    Closeness: ("required", "preferred"),
    PartOfGpu: ("min", "memory"),
}
"""Fields of which a model has exactly one."""


def drawn(model: type[BaseModel]) -> st.SearchStrategy[Spec]:
    """Each field there or not, as far as the model takes that."""
    fields, one = FIELDS[model], ONE_OF.get(model, ())
    by_name = {name: _alias(model, name) for name in fields}
    needed = {by_name[name]: fields[name] for name in fields if model.model_fields[name].is_required()}
    free = {by_name[name]: fields[name] for name in fields if name not in one and by_name[name] not in needed}
    every = st.fixed_dictionaries(needed, optional=free)
    if not one:
        return every
    either = st.one_of(*(st.fixed_dictionaries({by_name[name]: fields[name]}) for name in one))
    return st.builds(lambda found, chosen: found | chosen, every, either)


def _alias(model: type[BaseModel], name: str) -> str:
    return model.model_fields[name].alias or name


def model_of(kind: str) -> type[BaseModel]:
    """What a workload says of a kind of work."""
    [found] = [part for part in get_args(WorkloadSpec.model_fields[kind].annotation) if part is not type(None)]
    model: type[BaseModel] = found
    return model


def models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model, and those that its fields hold."""
    seen: list[type[BaseModel]] = []
    left: list[Any] = [model]
    while left:
        part = left.pop()
        if isinstance(part, type) and issubclass(part, BaseModel):
            if part not in seen:
                seen.append(part)
                left += [info.annotation for info in part.model_fields.values()]
        else:
            left += get_args(part)
    return seen


# --- What fits together --------------------------------------------------------------------------------------------


@st.composite
def specs_on(draw: st.DrawFn, places: Mapping[str, Place]) -> Spec:
    """A Workload's spec, on one of the pools of a platform."""
    name, place = draw(st.sampled_from([*places.items()]))
    kind = draw(st.sampled_from(KINDS_OF_WORK))
    owner = draw(st.sampled_from(sorted(TENANTS)))
    work = draw(drawn(model_of(kind)))
    spec = {**draw(drawn(WorkloadSpec)), "tenant": owner, "pool": name, kind: work}
    if len(TENANTS[owner]) > 1:
        spec["namespace"] = draw(st.sampled_from(TENANTS[owner]))
    if len(CLASSES.get(owner, ())) > 1 or (owner in CLASSES and draw(st.booleans())):
        spec["priorityClass"] = draw(st.sampled_from(CLASSES[owner]))
    unit = draw(st.sampled_from(sorted(place.units)))
    if unit == "fraction":
        spec["fraction"] = draw(st.sampled_from([0.5, 0.33]) | drawn(PartOfGpu))
    elif len(place.units) > 1 or draw(st.booleans()):
        spec["unit"] = unit
    if not place.is_shared and draw(st.booleans()):
        spec["count"] = draw(st.integers(1, MOST_UNITS))
    for fit in FITS[kind]:
        fit(work, spec, place)
    _fit_model(spec)
    _fit_fraction(spec)
    return spec


Fit = Callable[[Spec, Spec, Place], None]


def _fit_port(work: Spec, _: Spec, __: Place) -> None:
    """Nothing is asked at, or leads to, a port that is not there."""
    ports = work.get("ports", {})
    if len(set(ports.values())) < len(ports):
        ports.popitem()
    if work.get("port") == "none":
        for field in ("ports", "service", "route"):
            work.pop(field, None)
    for field in ("probe", "liveness"):
        _fit_probe(work, field)
    if work.get("probe", "none" if work.get("port") == "none" else "tcp") == "none":
        work.pop("startup", None)
    if work.get("route", {}).get("port", "http") not in ("http", *work.get("ports", ())):
        del work["route"]["port"]


def _fit_probe(work: Spec, field: str) -> None:
    probe = work.get(field)
    has_port = work.get("port") != "none"
    if not has_port and (probe in ("tcp", "grpc") or (isinstance(probe, dict) and "command" not in probe)):
        del work[field]
    known = ("http", *work.get("ports", ()))
    if isinstance(probe, dict) and ("command" in probe or probe.get("port", "http") not in known):
        probe.pop("port", None)


def _fit_route(work: Spec, _: Spec, __: Place) -> None:
    """Only a Gateway weighs requests, between services of single pods; its certificate is its listener's."""
    route = work.get("route")
    if route is None or work.get("podsPerReplica", 1) > 1:
        work.pop("canary", None)
    if route is not None and "canary" in work:
        route["kind"] = "HTTPRoute"
    if route is not None and route.get("kind") == "HTTPRoute":
        route.pop("tlsSecret", None)
    if route is not None and route.get("kind") != "HTTPRoute":
        route.pop("grpc", None)


def _fit_reach(work: Spec, _: Spec, __: Place) -> None:
    if work.get("service", {}).get("type", "ClusterIP") == "ClusterIP":
        work.get("service", {}).pop("nodePort", None)


def _fit_scaling(work: Spec, spec: Spec, place: Place) -> None:
    """Only by a query may there be no pods, which only a ScaledObject follows."""
    if (scaling := work.get("autoscaling")) is None:
        return
    most, fewest = scaling["maxReplicas"], 0 if "query" in scaling else 1
    scaling["minReplicas"] = min(max(scaling.get("minReplicas", 1), fewest), most)
    work["replicas"] = min(max(work.get("replicas", 1), scaling["minReplicas"]), most)
    if "query" in scaling:
        scaling.pop("kind", None)
    if scaling["minReplicas"] > 0:
        scaling.pop("cooldown", None)
    if place.is_shared and "gpuPercent" in scaling:
        scaling["waitingRequests"] = scaling.pop("gpuPercent")
    if "requestsPerSecond" not in scaling and "waitingRequests" not in scaling:
        scaling.pop("metric", None)
    if "cpuPercent" in scaling:
        spec.setdefault("cpu", "2")


def _fit_replica(work: Spec, _: Spec, place: Place) -> None:
    """Replicas of one pod have no workers, and are close to nobody."""
    if not place.levels:
        work.pop("topology", None)
    if work.get("podsPerReplica", 1) == 1:
        work.pop("worker", None)
        work.pop("topology", None)


def _fit_kserve(work: Spec, spec: Spec, _: Place) -> None:
    """KServe makes one pod to a replica, and has it asked."""
    if work.get("kind") != "InferenceService":
        return
    for field in ("podsPerReplica", "worker", "topology", "canary"):
        work.pop(field, None)
    spec.pop("podPatch", None)
    if work.get("probe", "none" if work.get("port") == "none" else "tcp") == "none":
        work["probe"] = {"command": ["true"]}


def _fit_trials(work: Spec, _: Spec, place: Place) -> None:
    """Pods that come one after the other neither start together nor wait for one another, and only a Job has them."""
    pods = work.get("pods", 1)
    if work.get("kind", "Job") != "Job":
        for field in ("trials", "backoffLimitPerIndex"):
            work.pop(field, None)
    if "trials" in work:
        work["trials"] = max(work["trials"], pods)
        work.pop("gang", None)
        work.pop("peers", None)
    if "gang" in work:
        work["gang"] = min(work["gang"], pods)
    if "backoffLimitPerIndex" not in work:
        work.pop("maxFailedIndexes", None)
    if "maxFailedIndexes" in work:
        work["maxFailedIndexes"] = min(work["maxFailedIndexes"], work.get("trials", pods))
    if not place.levels:
        work.pop("topology", None)
    _fit_elastic(work, pods)


def _fit_elastic(work: Spec, pods: int) -> None:
    """Pods that come and go find one another, and only a Job has them."""
    if "trials" in work or work.get("kind", "Job") != "Job":
        work.pop("elastic", None)
    if elastic := work.get("elastic"):
        elastic["minPods"] = min(elastic["minPods"], pods)
        work.setdefault("peers", {})
        work.pop("gang", None)


def _fit_model(spec: Spec) -> None:
    """A volume that all pods can mount, and that its download can write to."""
    model = spec.get("model", {})
    if model.get("accessMode") == "ReadWriteOnce" or ("download" in model and model.get("accessMode")):
        model["accessMode"] = "ReadWriteMany"


def _fit_fraction(spec: Spec) -> None:
    """The scheduler chooses the GPU; a memory has no range."""
    fraction = spec.get("fraction")
    if isinstance(fraction, dict) and "memory" in fraction:
        fraction.pop("max", None)


FITS: Final[Mapping[str, tuple[Fit, ...]]] = {
    "batch": (_fit_trials,),
    "inference": (_fit_port, _fit_reach, _fit_route, _fit_scaling, _fit_replica, _fit_kserve),
    "training": (_fit_trials,),
    "workspace": (),
}
"""What is brought to fit of each kind of work."""
