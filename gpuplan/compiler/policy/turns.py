"""Fields of other programs in the shape that policies have for them, with the values that they then take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.policy.data.elsewhere import CALLED
from gpuplan.compiler.policy.fields import nested_model
from gpuplan.compiler.policy.models.cluster import Argocd, Driver, GpuOperator
from gpuplan.compiler.policy.models.pool import (
    Billing,
    Devices,
    Mig,
    MigLayoutSpec,
    Mps,
    Nodes,
    PoolSpec,
    Sharing,
    TimeSlicing,
    Window,
    division_of,
)
from gpuplan.compiler.policy.models.prices import Rate
from gpuplan.compiler.policy.models.shared import Metadata
from gpuplan.compiler.policy.models.tenant import Containers, Member, PriorityClassSpec, Quota, TenantSpec
from gpuplan.compiler.policy.models.workload import Autoscaling, Inference, Probe, Route, ValueFrom, WorkloadSpec
from gpuplan.compiler.policy.schedules import window_meant
from gpuplan.compiler.policy.shapes import Absent, accepts, as_line, bare, mapping, names_in, taken, value_at

if TYPE_CHECKING:
    from gpuplan.compiler.documents import Document

Fields = Mapping[str, object]
Turn = Callable[[object, Fields], Fields]
"""Returns the fields to write for a value and the mapping that it stands in, none if there are no such fields."""


class Turned(NamedTuple):
    """The fields to write in a mapping, in place of the named ones of the mapping at ``around``."""

    around: Path
    names: tuple[str, ...]
    into: Path
    fields: Fields
    is_added: bool = False
    """Whether the fields are lists that are there, and these their further items."""


def written_beside(document: Document, place: Path, into: Path) -> Fields:
    """Return the fields of a mapping that stand in the file of a field; an overlay may have others."""
    layer = document.find_layer(place)
    return mapping(value_at(layer.data if layer else document.data, into))


def find_turned(
    document: Document, model: type[BaseModel], place: Path, earlier: Iterable[Turned] = ()
) -> Turned | None:
    """Return the fields that say what an unknown one does, or None if no field is known to say it.

    ``earlier`` are those of other fields, which are to be written as well.
    """
    around, name = place[:-1], str(place[-1])
    parent, written = nested_model(model, around), mapping(value_at(document.data, around))
    if parent is None:
        return None
    together = next((to for to in _TOGETHER if name in to and (to[0] in written or to is _OF_WINDOW)), (name,))
    names = tuple(known for known in together if known in written)
    fields = turn(parent, names[0], written)
    if not fields and (named := _named(model, around, name, written)):
        names, fields = named
    into = around
    if not fields:
        into, fields = next(
            (
                (above, meant)
                for (model_of, words), (above, turned) in _ABOVE.items()
                if parent is model_of and name in words.split()
                if _fits(model, above, meant := turned(written[name], {name: 0}))
            ),
            (around, {}),
        )
    there = written_beside(document, place, into)
    for other in earlier:
        there = _joined(there, other.fields) if other.into == into else there
    while len(fields) == 1:
        ((key, value),) = fields.items()
        if not isinstance(value, dict) or not isinstance(there.get(key), dict):
            break
        into, there, fields = (*into, key), mapping(there[key]), value
    if not fields or not _fits(model, into, fields):
        return None
    taken = [key for key in fields if key in there and key not in names]
    is_added = into == around and len(taken) == len(fields) == 1 and isinstance(there[taken[0]], list)
    return Turned(around, names, into, fields, is_added) if is_added or not taken else None


def turn(parent: type[BaseModel], name: str, written: Fields) -> Fields:
    """Return the fields of a mapping that say what an unknown field of it does; none if there are none."""
    found = (turn for names, turn in TURNS.get(parent, {}).items() if name in names.split())
    value = written.get(name)
    if parent is Quota and "nvidia.com/" in name:
        quota = _only(_hard({name: value}, {}).get("quotas"))
        return {field: part for field, part in quota.items() if field not in written}
    return next((fields for turn in found if (fields := turn(value, written))), {}) or _timed(parent, name, value)


def _named(model: type[BaseModel], around: Path, name: str, written: Fields) -> tuple[tuple[str, ...], Fields] | None:
    """Return the field that a word names, with what belongs into it and stands beside: `type: mps, replicas: 2`."""
    parent, word = nested_model(model, around), bare(str(written[name]))
    known = names_in(parent) if parent else []
    alias = next((alias for alias in known if bare(alias) == word), None)
    inner = nested_model(model, (*around, alias)) if alias else None
    if alias is None or inner is None or any(name in called(parent, alias) for alias in known if parent):
        return None
    rest = {field: part for field, part in written.items() if field not in known and field in names_in(inner)}
    there = [alias] if written.get(alias) is not None else []
    value = taken(
        model, (*around, alias), written[alias] if there and not rest else {**mapping(written.get(alias)), **rest}
    )
    return None if value is None else ((name, *there, *rest), {alias: value})


def called(model: type[BaseModel], field: str) -> list[str]:
    """Return the names that other programs and people have for a field of a mapping."""
    return CALLED.get(model.__name__, {}).get(field, "").split()


def _timed(parent: type[BaseModel], name: str, value: object) -> Fields:
    """Return the field of a time whose unit Kubernetes has in the name of the field: `activeDeadlineSeconds: 60`."""
    found = _UNIT.fullmatch(name)
    if found is None or type(value) is not int:
        return {}
    stem, unit = found[1], found[2][0].lower()
    fields = names_in(parent)
    meant = (alias for alias in fields if stem in (alias, *called(parent, alias)))
    return next(({alias: f"{value}{unit}"} for alias in meant), {})


_UNIT: Final = regex(r"([a-z][A-Za-z]*?)(?:In)?(Hours|Minutes|Seconds|Mins|Secs)")


def write_help(turned: Turned) -> str:
    """Return the help that gives the fields to write, or nothing if they are too long for a line."""
    lines = [as_line({name: value})[1:-1] for name, value in turned.fields.items()]
    if not all(lines):
        return ""
    if turned.is_added:
        ((name, items),) = turned.fields.items()
        what = ", ".join(f"`{as_line(item)}`" for item in _items(items))
        return f"write {what} as an item of `{name}` in place of `{turned.names[0]}`"
    text = f"write {joined([f'`{line}`' for line in lines], 'and')}"
    domain = f", with your own domain for `{_DOMAIN}`" if _DOMAIN in text else ""
    if turned.into != turned.around:
        return f"{text} below `{'.'.join(map(str, turned.into))}`, in place of `{turned.names[0]}`{domain}"
    if turned.names[1:]:
        text += f" in place of {joined([f'`{name}`' for name in turned.names], 'and')}"
    elif lines[1:]:
        text += " in its place"
    return f"{text}, each on a line of its own" if lines[1:] else f"{text}{domain}"


def _joined(fields: Fields, others: Fields) -> Fields:
    """Return the fields of two mappings, those in mappings of both together."""
    both = {
        name: _joined(part, other)
        for name, part in fields.items()
        if isinstance(part, dict) and isinstance(other := others.get(name), dict)
    }
    return {**fields, **others, **both}


def _fits(model: type[BaseModel], into: Path, fields: Fields) -> bool:
    return all(accepts(model, (*into, name), value) for name, value in fields.items() if not lacks(value))


def lacks(value: object) -> bool:
    """Whether a value holds a part that only the user knows."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, Absent) or any(map(lacks, parts))


def _items(value: object) -> list[Fields]:
    """Return the mappings of a list, or none if anything else stands in it."""
    items = value if isinstance(value, list) else []
    return items if all(isinstance(item, dict) for item in items) else []


def _only(value: object) -> Fields:
    """Return the one mapping of a list, or an empty one if there is none or several."""
    items = _items(value)
    return items[0] if len(items) == 1 else {}


# --- Quotas: Kubernetes, Kueue and KAI-Scheduler ---------------------------------------------------------------------

_WEIGHTS: Final = ("overQuotaWeight", "fairShareWeight", "weight")


def _borrowed(value: object, written: Fields) -> Fields:
    """Return the limit that Kueue's limit of borrowing makes with what is the queue's own."""
    own = written.get("guaranteed", written.get("nominalQuota"))
    both = own, value
    if all(isinstance(amount, int | float) and not isinstance(amount, bool) for amount in both):
        return {"limit": own + value}  # type: ignore[operator]  # both are numbers
    return {}


def _hard(value: object, _: Fields) -> Fields:
    """Return the quotas of a ResourceQuota, one for each unit that it names."""
    units: dict[str, object] = {}
    rest: dict[str, object] = {}
    amounts = {"gpu": value} if type(value) is int else mapping(mapping(value).get("hard", value))
    for name, amount in amounts.items():
        resource = name.removeprefix("requests.").removeprefix("limits.")
        if resource in ("gpu", "gpus"):
            units["gpu"] = _number(amount)
        elif resource.startswith("nvidia.com/"):
            units[resource.removeprefix("nvidia.com/").removeprefix("mig-").removeprefix("gpu.")] = _number(amount)
        elif resource in ("cpu", "memory"):
            rest[resource] = str(amount)
        elif resource in ("pods", "count/pods"):
            rest["pods"] = _number(amount)
        else:
            return {}
    quotas = [
        {"pool": Absent(), **({} if unit == "gpu" else {"unit": unit}), "guaranteed": amount, **rest}
        for unit, amount in units.items()
    ]
    return {"quotas": quotas} if len(quotas) == 1 or (quotas and not rest) else {}


def _hard_of_pool(value: object, _: Fields) -> Fields:
    """Return the amounts of a ResourceQuota that stands in the quota of a pool."""
    return {name: part for name, part in _only(_hard(value, {}).get("quotas")).items() if name != "pool"}


def _flavors(value: object, _: Fields) -> Fields:
    """Return the quotas of a ClusterQueue, whose flavors are pools."""
    quotas = [_flavor([flavor], {}) for group in _items(value) for flavor in _items(group.get("flavors"))]
    return {"quotas": quotas} if quotas else {}


def _flavor(value: object, _: Fields) -> Fields:
    """Return the quota that one flavor of a ClusterQueue is."""
    flavor = _only(value)
    resource = _only(flavor.get("resources"))
    quota = {"pool": flavor.get("name"), "guaranteed": _number(resource.get("nominalQuota"))}
    return {**quota, **_borrowed(_number(resource.get("borrowingLimit")), quota)} if flavor else {}


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < len("1000000") else value


# --- People and priorities -------------------------------------------------------------------------------------------


def _subject(_: object, written: Fields) -> Fields:
    """Return the member that a subject of a RoleBinding is."""
    kind, name, namespace = written.get("kind"), written.get("name"), written.get("namespace")
    if kind == "ServiceAccount" and namespace:
        return {"user": f"system:serviceaccount:{namespace}:{name}"}
    return {str(kind).lower(): name} if kind in ("Group", "User") and isinstance(name, str) else {}


def _service_account(_: object, written: Fields) -> Fields:
    name, namespace = written.get("serviceAccount"), written.get("namespace")
    return {"user": f"system:serviceaccount:{namespace}:{name}"} if namespace else {}


def _subjects(value: object, _: Fields) -> Fields:
    members = [_subject(None, item) for item in _items(value)]
    return {"members": members} if members and all(members) else {}


def _pools(value: object, _: Fields) -> Fields:
    """Return quotas on pools, of which only the user knows how much is the tenant's own."""
    names = value if isinstance(value, list) else []
    return (
        {"quotas": [{"pool": name, "guaranteed": Absent()} for name in names if isinstance(name, str)]} if names else {}
    )


def _range(value: object, _: Fields) -> Fields:
    """Return the defaults of containers that a LimitRange has."""
    return _defaults(mapping(value).get("defaultRequest"), mapping(value).get("default"))


def _requests(_: object, written: Fields) -> Fields:
    """Return the defaults of containers of requests and limits as a container has them."""
    return mapping(_defaults(written.get("requests"), written.get("limits")).get("containers"))


def _defaults(requests: object, limits: object) -> Fields:
    both = (("request", mapping(requests)), ("limit", mapping(limits)))
    found = {
        resource: {field: str(amounts[resource]) for field, amounts in both if resource in amounts}
        for resource in ("cpu", "memory")
    }
    return {"containers": {name: part for name, part in found.items() if part}} if any(found.values()) else {}


# --- Sharing: the device plugin and the MIG manager ------------------------------------------------------------------


def _shares(value: object, _: Fields) -> Fields:
    """Return the shares of the resources that a file of the device plugin lists, if all have as many."""
    counts = [item.get("replicas") for item in _items(value)]
    return {"replicas": counts[0]} if counts and len({*map(str, counts)}) == 1 and counts[0] is not None else {}


_PROFILE_NAMES: Final = "profile size slice partition type"
_NUMBER_NAMES: Final = ("count", "number", "quantity", "amount", "replicas")


def _profiles(value: object, written: Fields) -> Fields:
    """Return the instances that a profile and the number of them mean, or as many as fit on a GPU without a number."""
    most = mapping(division_of(str(value)).get("instances"))
    numbers = [number for name in _NUMBER_NAMES if type(number := written.get(name)) is int]
    return {"instances": {value: numbers[0]} if numbers else most} if most else {}


def divided(entries: object) -> Fields:
    """Return the field of a layout that says what an entry of the MIG manager's file does."""
    devices = [dict(_division(mapping(part))) for part in (entries if isinstance(entries, list) else [])]
    is_of_all = len(devices) == 1 and devices[0]["gpus"] == "all" and "instances" in devices[0]
    return {"instances": devices[0]["instances"]} if is_of_all else {"devices": devices}


def _division(part: Fields) -> Iterator[tuple[str, object]]:
    """Yield the fields that say how some GPUs are divided."""
    yield "gpus", part.get("devices", "all")
    if part.get("mig-enabled") is False:
        yield "enabled", False
    if "mig-devices" in part:
        yield "instances", part["mig-devices"]


def _config(value: object, _: Fields) -> Fields:
    """Return the layout that the only entry of the MIG manager's file is."""
    return divided(next(iter(mapping(value).values()))) if len(mapping(value)) == 1 else {}


def _larger(_: object, written: Fields) -> Fields:
    """Return the number of nodes where a node group of a cloud has a least and a largest one."""
    numbers = [number for name in _BOUNDS if type(number := written.get(name)) is int]
    return {"count": max(numbers)} if numbers else {}


_BOUNDS: Final = ("minNodes", "maxNodes", "minSize", "maxSize", "minCount", "maxCount", "min", "max")


def _window(_: object, written: Fields) -> Fields:
    """Return the schedule and the duration of a window that says when it begins and ends, and on which days."""
    parts = [written[name] for name in _OF_WINDOW if name in written]
    text = " ".join(", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts)
    return {name: part for name, part in window_meant(text).items() if name not in written}


_OF_WINDOW: Final = (
    "day",
    "days",
    "weekday",
    "weekdays",
    "on",
    "start",
    "from",
    "begin",
    "startTime",
    "at",
    "time",
    "end",
    "to",
    "until",
    "endTime",
)


_DOMAIN: Final = "example.com"


def _prefixed(labels: object) -> Fields:
    """Return labels of nodes: NFD puts those without a prefix of their own below its own."""
    return {key if "/" in key else f"{_DOMAIN}/{key}": part for key, part in mapping(labels).items()}


def _windows(value: object, _: Fields) -> Fields:
    """Return the windows that those of an AppProject mean, if all of them allow."""
    items = _items(value) or [mapping(value)]
    windows = [{name: part for name, part in item.items() if name != "kind"} for item in items]
    return {"disruption": {"windows": windows}} if {item.get("kind", "allow") for item in items} == {"allow"} else {}


def _month(field: str) -> Turn:
    hours = 730  # of a month, as the clouds count them
    return lambda value, _: {field: round(value / hours, 2)} if isinstance(value, int | float) else {}


# --- Argo CD ---------------------------------------------------------------------------------------------------------


def _source(value: object, _: Fields) -> Fields:
    """Return the repository of an Application's source; gpuplan writes the paths below its own folder."""
    source = dict(mapping(value))
    revision = source.pop("targetRevision", None)
    path = source.pop("path", None)
    if isinstance(path, str):
        source["path"] = path.strip("/").split("/", maxsplit=1)[0] if path.startswith("out/") else path
    return {**source, **({} if revision is None else {"revision": revision})}


def _value(name: str) -> Turn:
    return lambda value, _: {"values": {name: value}}


_OF_CHART: Final = "ccManager cdi daemonsets dcgm dcgmExporter gfd kataManager operator toolkit validator vgpuManager"
_OF_DRIVER: Final = """
    env image imagePullPolicy imagePullSecrets kernelModuleType licensingConfig manager nvidiaDriverCRD rdma
    repository resources upgradePolicy useOpenKernelModules usePrecompiled
"""


def _driver(value: object, written: Fields) -> Fields:
    """Return the values of the chart for a field of its driver."""
    (name,) = written
    if name == "useOpenKernelModules":
        name, value = "kernelModuleType", "open" if value else "proprietary"
    return {"values": {"driver": {name: value}}}


# --- Pods ------------------------------------------------------------------------------------------------------------

CONTAINER = "main"
"""The name of the container that a workload's own fields describe."""
_OF_CONTAINER = "envFrom imagePullPolicy lifecycle volumeMounts volumeDevices workingDir resizePolicy stdin tty"
_OF_POD = """
    affinity automountServiceAccountToken dnsConfig dnsPolicy hostAliases hostIPC hostNetwork hostPID
    initContainers runtimeClassName securityContext serviceAccount serviceAccountName shareProcessNamespace
    terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes
"""


def requested(resources: object) -> Fields:
    """Return the fields of a workload that say what a container of Kubernetes asks for."""
    requests, limits = (mapping(mapping(resources).get(name)) for name in ("requests", "limits"))
    return asked({**limits, **requests})


def asked(amounts: Fields) -> Fields:
    """Return the fields of a workload for amounts of resources, none if one of them is unknown."""
    found: dict[str, object] = {}
    for name, amount in amounts.items():
        if name in ("cpu", "memory"):
            found[name] = str(amount)
        elif name.startswith("nvidia.com/"):
            unit = name.removeprefix("nvidia.com/").removeprefix("mig-")
            found |= {"count": amount} if unit == "gpu" else {"unit": unit.removeprefix("gpu."), "count": amount}
        else:
            return {}
    return found


def _container(value: object, _: Fields) -> Fields:
    """Return the fields of a workload that describe its one container, and a patch for the rest of it."""
    rest = dict(_only(value))
    rest.pop("name", None)
    found: dict[str, object] = {name: rest.pop(name) for name in ("image", "command", "args") if name in rest}
    if isinstance(env := rest.get("env"), list):
        found["env"] = dict(_variables(env))
        del rest["env"]
    if "resources" in rest and (amounts := requested(rest["resources"])):
        found |= amounts
        del rest["resources"]
    if not found or "ports" in rest:
        return {}
    patch = {"podPatch": {"spec": {"containers": [{"name": CONTAINER, **rest}]}}}
    return {**found, **patch} if rest else found


def _variables(env: list[Fields]) -> Iterator[tuple[str, object]]:
    for item in env:
        yield str(mapping(item).get("name")), mapping(item).get("value", mapping(item).get("valueFrom"))


def _template(value: object, written: Fields) -> Fields:
    containers = mapping(mapping(value).get("spec"))
    return _container(containers.get("containers"), written) if [*containers] == ["containers"] else {}


def _probe(value: object) -> Fields:
    """Return a probe as policies say it, none if it asks another port or in a way of its own."""
    probe = mapping(value)
    for name, field, part in (("httpGet", "http", "path"), ("grpc", "grpc", "service"), ("exec", "command", "command")):
        if part in mapping(probe.get(name)):
            return {field: mapping(probe[name])[part]}
    return {}


def _in_probe(field: str) -> Turn:
    def turned(value: object, _: Fields) -> Fields:
        if "tcpSocket" in mapping(value):
            return {field: "tcp"}
        return {field: probe} if (probe := _probe(value)) else {}

    return turned


def _startup(value: object, _: Fields) -> Fields:
    times = [mapping(value).get(name, usual) for name, usual in (("failureThreshold", 3), ("periodSeconds", 10))]
    seconds = [time for time in times if isinstance(time, int)]
    return {"startup": f"{seconds[0] * seconds[1]}s"} if len(seconds) == len(times) and mapping(value) else {}


def _in_pod(name: str) -> Turn:
    return lambda value, _: {"podPatch": {"spec": {name: value}}}


def _in_container(name: str) -> Turn:
    return lambda value, _: {"podPatch": {"spec": {"containers": [{"name": CONTAINER, name: value}]}}}


def _ports(value: object, written: Fields) -> Fields:
    """Return the ports of a container, of which the first is that of the service."""
    numbers = {item.get("name"): item.get("containerPort", item.get("port")) for item in _items(value)}
    work = next((kind for kind in ("workspace", "training", "batch") if kind in written), "inference")
    if work in ("training", "batch") or not numbers:
        return _in_container("ports")(value, written) if numbers else {}
    usual = mapping(written.get(work)).get("port")
    (first, number), *others = numbers.items()
    rest = {name: port for name, port in others if usual != port} | ({} if usual in (None, number) else {first: number})
    return {work: {**({"port": number} if usual is None else {}), **({"ports": rest} if rest else {})}}


def _labels(name: str) -> Turn:
    def turned(value: object, _: Fields) -> Fields:
        pairs = [str(item).partition("=") for item in value] if isinstance(value, list) else []
        found = {key: part for key, _, part in pairs if part} or value
        return {"podPatch": {"metadata": {name: found}}} if isinstance(found, dict) else {}

    return turned


def _span(value: object, _: Fields) -> Fields:
    """Return the bounds of pods that are written as `2-8`."""
    least, dash, most = str(value).partition("-")
    return {"minReplicas": _number(least), "maxReplicas": _number(most)} if dash else {}


def _metrics(value: object, _: Fields) -> Fields:
    """Return the use of CPU that a HorizontalPodAutoscaler aims at."""
    resource = mapping(_only(value).get("resource"))
    percent = mapping(resource.get("target")).get("averageUtilization")
    return {"cpuPercent": percent} if resource.get("name") == "cpu" and percent is not None else {}


TURNS: Final[Mapping[type[BaseModel], Mapping[str, Turn]]] = {
    Quota: {"borrowingLimit": _borrowed, "hard": _hard_of_pool, "flavors": _flavor},
    TenantSpec: {
        " ".join(_WEIGHTS[:2]): lambda value, _: {"surplus": {"weight": value}},
        "hard requests limits resourceQuota quota gpus gpu gpuQuota": _hard,
        "pools": _pools,
        "limitRange": _range,
        "resourceGroups": _flavors,
        "subjects": _subjects,
    },
    Member: {"kind": _subject, "serviceAccount": _service_account},
    Containers: {"requests": _requests},
    PoolSpec: {"syncWindow syncWindows": _windows, "labels": lambda value, _: {"nodeLabels": _prefixed(value)}},
    Nodes: {" ".join(_BOUNDS): _larger},
    Window: {" ".join(_OF_WINDOW): _window},
    Mig: {_PROFILE_NAMES: _profiles, "mig-configs": _config, "mig-devices": lambda _, written: divided([written])},
    MigLayoutSpec: {
        _PROFILE_NAMES: _profiles,
        "mig-configs": _config,
        "mig-devices": lambda _, written: divided([written]),
    },
    Sharing: {"mig-configs": lambda value, written: {"mig": layout} if (layout := _config(value, written)) else {}},
    Billing: {"spot preemptible": lambda value, _: {"term": "spot"} if value is True else {}},
    Rate: {"perNodeMonth nodeMonth": _month("perNodeHour"), "perGpuMonth monthly perMonth": _month("perGpuHour")},
    Probe: {"httpGet": lambda value, _: _probe({"httpGet": value}), "exec": lambda value, _: _probe({"exec": value})},
    Route: {"tls": lambda value, _: {"tlsSecret": mapping(value).get("secretName")} if mapping(value) else {}},
    GpuOperator: {
        "mig": lambda value, _: (
            {"migStrategy": mapping(value)["strategy"]} if [*mapping(value)] == ["strategy"] else {}
        ),
        **{name: _value(name) for name in _OF_CHART.split()},
    },
    PriorityClassSpec: {"preemptionPolicy": lambda value, _: {"preempts": value != "Never"}},
    TimeSlicing: {"resources": _shares},
    Mps: {"resources": _shares},
    Devices: {
        "devices": lambda value, written: {} if "gpus" in written else {"gpus": value},
        "mig-devices": lambda _, written: dict(_division(written)),
        _PROFILE_NAMES: _profiles,
    },
    Argocd: {"source": _source},
    WorkloadSpec: {
        "containers": _container,
        "template": _template,
        "resources": lambda value, _: requested(value),
        "requests limits": lambda value, _: asked(mapping(value)),
        **{name: _in_pod(name) for name in _OF_POD.split()},
        **{name: _in_container(name) for name in _OF_CONTAINER.split()},
        **{name: _labels(name) for name in ("labels", "annotations")},
        "ports": _ports,
    },
    Inference: {"livenessProbe": _in_probe("liveness"), "readinessProbe": _in_probe("probe"), "startupProbe": _startup},
    ValueFrom: {"valueFrom": lambda value, _: mapping(value)},
    Autoscaling: {"metrics": _metrics, "replicas": _span},
}
"""The turn for fields of other programs, by the model of the mapping that they stand in."""

_ABOVE: Final[Mapping[tuple[type[BaseModel], str], tuple[Path, Turn]]] = {
    (Quota, " ".join(_WEIGHTS)): (("spec",), lambda value, _: {"surplus": {"weight": value}}),
    (Metadata, "namespace"): (("spec",), lambda value, _: {"namespaces": [value]}),  # of a Tenant
    (Metadata, "namespace project"): (("spec",), lambda value, _: {"namespace": value}),  # of a Workload
    (Metadata, "labels"): (("spec",), lambda value, _: {"nodeLabels": _prefixed(value)}),
    (Metadata, "annotations labels"): (("spec",), lambda value, of: {"podPatch": {"metadata": {[*of][0]: value}}}),  # noqa: RUF015
    (Driver, _OF_DRIVER): (("spec", "gpuOperator"), _driver),
}
"""The mapping further up into which fields of others go, and their turn."""

_TOGETHER: Final[tuple[tuple[str, ...], ...]] = (
    ("kind", "name", "apiGroup", "namespace"),
    ("serviceAccount", "namespace"),
    ("requests", "limits"),
    ("mig-devices", "mig-enabled", "devices"),
    _OF_WINDOW,
    *((name, *_NUMBER_NAMES) for name in _PROFILE_NAMES.split()),
    *((least, most) for least, most in zip(_BOUNDS[::2], _BOUNDS[1::2], strict=True)),
)
"""Fields that say one thing together; the first has the turn."""
