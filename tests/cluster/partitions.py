"""What NVIDIA's driver for DRA publishes of GPUs that it partitions on demand.

So `generateCombinedResourceSlices` in `cmd/gpu-kubelet-plugin/driver.go` of its release v0.4.1 makes it for Kubernetes
1.34: a slice for each GPU, with a set of counters and a device for each place of each profile, in the order of their
names; `partitions.go` there says what a device consumes. The number after a profile in a device's name is NVML's, here
the place in the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.compiler.catalog import Gpu, Profile

DRIVER = "gpu.nvidia.com"
_MIB = 2**20


def resource_slices(node: str, gpu: Gpu, count: int) -> Iterator[dict[str, Any]]:
    """The slices of a node with so many GPUs."""
    for index in range(count):
        pool = {"name": node, "generation": 1, "resourceSliceCount": count}
        devices = sorted(_devices(gpu, index), key=lambda device: str(device["name"]))
        most = {key: max(_capacities(profile)[key] for profile in gpu.profiles) for key in _capacities(gpu.profiles[0])}
        counters = {"name": _counter_set(index), "counters": _counters(most, range(gpu.memory_slices))}
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{DRIVER}-{index}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": pool,
                "sharedCounters": [counters],
                "devices": devices,
            },
        }


def _devices(gpu: Gpu, index: int) -> Iterator[dict[str, Any]]:
    whole = {key: max(_capacities(profile)[key] for profile in gpu.profiles) for key in _capacities(gpu.profiles[0])}
    yield _device(f"gpu-{index}", index, {"type": "gpu"}, gpu, whole, range(gpu.memory_slices))
    for number, profile in enumerate(gpu.profiles):
        for place in profile.placements:
            name = f"gpu-{index}-mig-{profile.name.replace('.', '').replace('+', '-')}-{number}-{place.start}"
            attributes = {"type": "mig", "profile": profile.name, "parentUUID": f"GPU-{index}"}
            slices = range(place.start, place.end)
            yield _device(name, index, attributes, gpu, _capacities(profile), slices)


def _device(
    name: str, index: int, attributes: dict[str, str], gpu: Gpu, capacities: dict[str, int], slices: range
) -> dict[str, Any]:
    product = gpu.products[0].label.replace("-", " ")
    return {
        "name": name,
        "attributes": {key: {"string": value} for key, value in {**attributes, "productName": product}.items()},
        "capacity": {key: {"value": str(amount)} for key, amount in capacities.items()},
        "consumesCounters": [{"counterSet": _counter_set(index), "counters": _counters(capacities, slices)}],
    }


def _counter_set(index: int) -> str:
    return f"gpu-{index}-counter-set"


def _counters(capacities: dict[str, int], slices: range) -> dict[str, Any]:
    names = {"copyEngines": "copy-engines", "jpegEngines": "jpeg-engines", "ofaEngines": "ofa-engines"}
    amounts = {names.get(key, key): amount for key, amount in capacities.items()}
    amounts |= {f"memory-slice-{number}": 1 for number in slices}
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def _capacities(profile: Profile) -> dict[str, int]:
    """NVML's properties of a GPU instance; memory as nvidia-smi prints it where NVML's number was not read."""
    return {
        "multiprocessors": profile.sm or 0,
        "copyEngines": profile.ce or 0,
        "decoders": profile.dec or 0,
        "encoders": profile.enc or 0,
        "jpegEngines": profile.jpeg or 0,
        "ofaEngines": profile.ofa or 0,
        "memory": (profile.memory_mib or int((profile.memory_gib or 0) * 1024)) * _MIB,
    }
