"""Random policies of a few pools and tenants, with names and numbers from the borders of what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.cluster.values import Body, document

_SHARINGS: dict[str, tuple[Body, ...]] = {
    "plugin": (
        {"exclusive": {}},
        {"timeSlicing": {"replicas": 2}},
        {"timeSlicing": {"replicas": 5, "rename": False}},
        {"mps": {"replicas": 3}},
    ),
    "partitions": (
        {"mig": {"instances": {"1g.10gb": 7}}},
        {"mig": {"instances": {"2g.20gb": 2, "3g.40gb": 1}}},
        {"mig": {"instances": {"3g.40gb": 2}, "strategy": "single"}},
    ),
    "fractions": ({"exclusive": {}}, {"fraction": {}}),
}
_OF_SCHEDULER = {
    "kubernetes": ("plugin", "partitions"),
    "kueue": ("plugin", "partitions"),
    "kai": ("partitions", "fractions"),
    "runai": ("partitions", "fractions"),
}
_PRIORITIES = (-(2**31), -1, 0, 1, 50, 99, 100, 999_999_999, 10**9)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_GROUPS = ("team", "oidc:Team A", "https://id.example.com/groups#7", "ünit", "a" * 200)
_IMAGES = (
    "registry.example.com/app:1.0.0",
    "registry.example.com:5000/team/app:v1_2.3-rc",
    f"registry.example.com/app@sha256:{'0' * 64}",
)
_FILES = ("a", ".hidden", "UPPER_lower-1.yaml", "a..", "b" * 253)
_VARIABLES = ("A", "_", "a.b-c", "-x", "A" * 250)
_CPUS = ("1", "500m", "0.5", ".25", "4096")
_BYTES = ("1Mi", "1.5Gi", "128974848", "1048576", "2E")


@dataclass(frozen=True, slots=True)
class Unit:
    """What a pool hands out, and how many of it."""

    pool: str
    name: str
    capacity: int


def a_policy(chance: Random, mark: str, scheduler: str) -> list[Body]:
    """The documents of one policy; all names end with the mark, so that policies can share a cluster."""
    pools = [_pool(chance, f"{mark}{letter}", scheduler) for letter in "pq"[: chance.randint(1, 2)]]
    units = [unit for _, found in pools for unit in found]
    classes = [_priority_class(chance, f"{mark}{letter}", scheduler) for letter in "cd"[: chance.randint(0, 2)]]
    left = {(unit.pool, unit.name): unit.capacity for unit in units}
    tenants = [
        _tenant(chance, f"{mark}{letter}", scheduler, units, classes, left) for letter in "tuv"[: chance.randint(1, 3)]
    ]
    workloads = [
        work for number, tenant in enumerate(tenants) for work in _workloads(chance, f"{mark}{number}", tenant)
    ]
    return [*(body for body, _ in pools), *classes, *tenants, *workloads]


def _pool(chance: Random, mark: str, scheduler: str) -> tuple[Body, list[Unit]]:
    name = _name(chance, mark, 25)
    sharing = chance.choice(_SHARINGS[chance.choice(_OF_SCHEDULER[scheduler])])
    nodes, gpus = chance.randint(1, 2), chance.randint(1, 8)
    labels = {f"example.com/{_label(chance)}": chance.choice(("", _label(chance))) for _ in range(chance.randint(0, 2))}
    taints = [
        {"key": f"example.com/{_label(chance)}", "value": chance.choice(("", _label(chance))), "effect": effect}
        for effect in chance.sample(_EFFECTS, k=chance.randint(0, 2))
    ]
    body = document(
        "Pool",
        name,
        gpu="A100-80GB",
        nodes={"count": nodes, "gpusPerNode": gpus, "names": [f"{mark}.{number}" for number in range(nodes)]},
        sharing=sharing,
        nodeLabels=labels,
        taints=taints,
    )
    return body, [Unit(name, unit, count * nodes * gpus) for unit, count in _units(sharing)]


def _units(sharing: Body) -> Iterator[tuple[str, int]]:
    """How many of each unit there are of one GPU."""
    [(kind, settings)] = sharing.items()
    match kind:
        case "mig":
            yield from settings["instances"].items()
        case "exclusive":
            yield "gpu", 1
        case "fraction":
            yield "fraction", 1
        case _:
            yield "shared", settings["replicas"]


def _priority_class(chance: Random, mark: str, scheduler: str) -> Body:
    """KAI-Scheduler and Run:ai read from the value whether pods of the class may be evicted."""
    value = chance.choice(_PRIORITIES)
    preemptible = value < 100 if scheduler in ("kai", "runai") else chance.random() < 0.5
    name = f"{_name(chance, mark, 20)}.{_name(chance, mark, 20)}"
    return document("PriorityClass", name, value=value, preemptible=preemptible, preempts=chance.random() < 0.5)


def _tenant(
    chance: Random, mark: str, scheduler: str, units: list[Unit], classes: list[Body], left: dict[tuple[str, str], int]
) -> Body:
    longest = 63 if scheduler in ("kubernetes", "kueue") else 30
    namespaces = [_name(chance, f"{mark}{number}", 63) for number in range(chance.randint(1, 2))]
    quotas = [_quota(chance, unit, namespaces, left) for unit in chance.sample(units, k=chance.randint(0, len(units)))]
    members = [
        {"group": group, "role": chance.choice(("edit", "admin", "view"))} for group in chance.sample(_GROUPS, k=2)
    ]
    return document(
        "Tenant",
        _name(chance, mark, longest),
        namespaces=namespaces,
        priorityClasses=[
            found["metadata"]["name"] for found in chance.sample(classes, k=chance.randint(0, len(classes)))
        ],
        quotas=quotas,
        members=[{"group": f"editors-{mark}"}, *members],
        allow={"unitsPerContainer": chance.randint(1, 3)} if chance.random() < 0.5 else {},
    )


def _quota(chance: Random, unit: Unit, namespaces: list[str], left: dict[tuple[str, str], int]) -> Body:
    guaranteed = chance.randint(0, left[unit.pool, unit.name])
    left[unit.pool, unit.name] -= guaranteed
    quota: Body = {"pool": unit.pool, "unit": unit.name, "guaranteed": guaranteed}
    limit = chance.choice((None, "none", guaranteed + 1, 1000, 10**6, 10**15))
    if len(namespaces) == 1:
        return quota if limit is None else {**quota, "limit": limit}
    part = chance.randint(0, guaranteed)
    return {**quota, "split": dict(zip(namespaces, (part, guaranteed - part), strict=True))}


def _workloads(chance: Random, mark: str, tenant: Body) -> Iterator[Body]:
    """One workload of a tenant that has a unit of its own and one namespace."""
    spec = tenant["spec"]
    quotas = [found for found in spec["quotas"] if found["guaranteed"] and found["unit"] != "fraction"]
    if quotas and len(spec["namespaces"]) == 1:
        quota = chance.choice(quotas)
        optional: Body = {
            "cpu": chance.choice(_CPUS),
            "memory": chance.choice(_BYTES),
            "env": {chance.choice(_VARIABLES): chance.choice(("", "é", "a\nb", "1"))},
            "config": {chance.choice(_FILES): "text"},
            "model": {"size": chance.choice(_BYTES), "mountPath": chance.choice(("/models", "/a b", "/é/x/"))},
        }
        names = chance.sample(sorted(optional), k=chance.randint(0, len(optional)))
        classes = {"priorityClass": chance.choice(spec["priorityClasses"])} if spec["priorityClasses"] else {}
        kind: Body = chance.choice(({"inference": {"port": 65535}}, {"training": {"backoffLimit": 0}}))
        yield document(
            "Workload",
            f"w{_name(chance, mark, 62)}",
            tenant=tenant["metadata"]["name"],
            pool=quota["pool"],
            unit=quota["unit"],
            image=chance.choice(_IMAGES),
            **classes,
            **kind,
            **{name: optional[name] for name in names},
        )


def _name(chance: Random, mark: str, longest: int) -> str:
    """A DNS label, often as long as it may be, that begins with whatever one may begin with."""
    room = longest - len(mark) - 1
    size = chance.choice((0, 1, 3, room))
    body = "".join(chance.choices("abz09-", k=size)).strip("-")
    return f"{body}-{mark}" if body else mark


def _label(chance: Random) -> str:
    """What can be a label's value, or the part of its key behind the domain."""
    size = chance.choice((0, 1, 5, 61))
    return f"{chance.choice('aZ0')}{''.join(chance.choices('aZ0-_.', k=size))}{chance.choice('aZ0')}"
