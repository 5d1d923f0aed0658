"""What a node publishes: by how its GPUs are divided, and what the device plugin's file says of them.

`buildDeviceMap` in `internal/rm/device_map.go` of NVIDIA/k8s-device-plugin; mig-parted applies the items of an entry in
their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

Body = Mapping[str, Any]

Gpu = tuple[tuple[str, int], ...] | None
"""How one GPU is divided: profiles and how many of each; None where MIG is off."""
Geometry = tuple[Gpu, ...]

GPU: Final = "nvidia.com/gpu"
_WHOLE: Final = "a whole GPU"
_PRETENDED: Final = "a GPU in MIG mode, as if it were whole"


class Resource(NamedTuple):
    """An extended resource, and what is behind it."""

    name: str
    kind: str


Published = Mapping[Resource, int]


def whole(gpus: int) -> Geometry:
    return (None,) * gpus


def divided(entry: Sequence[Body], gpus: int, device: str = "") -> Geometry:
    """What an entry of the MIG manager's file makes of a node's GPUs; ``device`` is their id, such as `0x20B010DE`."""
    found: list[Gpu] = [None] * gpus
    for item in entry:
        if not _is_for(item.get("device-filter"), device):
            continue
        chosen = range(gpus) if item["devices"] == "all" else item["devices"]
        instances = tuple(sorted((item.get("mig-devices") or {}).items())) if item["mig-enabled"] else None
        for index in chosen:
            if index < gpus:
                found[index] = instances
    return tuple(found)


def _is_for(wanted: str | Sequence[str] | None, device: str) -> bool:
    if not wanted:
        return True
    if not device:
        raise NotImplementedError("device filters")
    return device in ([wanted] if isinstance(wanted, str) else wanted)


def publish(geometry: Geometry, config: Body, cluster_strategy: str) -> Published:
    """What kubelet hears of; the cluster's strategy is in the plugin's environment, and overrides its file."""
    strategy = cluster_strategy or (config.get("flags") or {}).get("migStrategy") or "none"
    return _shared(_found(geometry, strategy), config.get("sharing") or {})


def _found(geometry: Geometry, strategy: str) -> Counter[Resource]:
    if strategy == "none":
        return Counter(Resource(GPU, _WHOLE if gpu is None else _PRETENDED) for gpu in geometry)
    instances = Counter(
        {profile: sum(dict(gpu or ()).get(profile, 0) for gpu in geometry) for profile in _profiles(geometry)}
    )
    wholes = Counter({Resource(GPU, _WHOLE): geometry.count(None)} if None in geometry else {})
    if strategy == "mixed":
        return wholes + Counter({Resource(_resource(name), name): count for name, count in instances.items()})
    if not instances:
        return wholes
    if len(instances) > 1 or wholes:
        return Counter()  # `single` takes GPUs only that are divided alike
    return Counter({Resource(GPU, name): count for name, count in instances.items()})


def _profiles(geometry: Geometry) -> set[str]:
    return {profile for gpu in geometry for profile, _ in gpu or ()}


def _resource(profile: str) -> str:
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def _shared(found: Counter[Resource], sharing: Body) -> Published:
    result: Counter[Resource] = Counter()
    methods: Mapping[str, Body] = sharing
    method, spec = next(iter(methods.items()), ("", {}))
    shares = {item["name"]: item for item in spec.get("resources", ())}
    for resource, count in found.items():
        item = shares.get(resource.name)
        if item is None:
            result[resource] += count
            continue
        default = f"{resource.name}.shared" if spec.get("renameByDefault") else resource.name
        name = item.get("rename") or default
        result[Resource(name, f"{item['replicas']} x {method} of {resource.kind}")] += count * item["replicas"]
    return dict(result)


def counts(published: Published) -> dict[str, int]:
    """By resource alone, as the API server sees it."""
    found: Counter[str] = Counter()
    for resource, count in published.items():
        found[resource.name] += count
    return dict(found)
