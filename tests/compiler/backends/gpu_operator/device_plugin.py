"""How the device plugin reads a configuration and what it publishes, written anew from its documented rules.

The rules are those of NVIDIA/k8s-device-plugin v0.20.0: `api/config/v1/{config,replicas,resources}.go` (what is refused
or ignored), `cmd/nvidia-device-plugin/main.go` and `internal/plugin` (what does not go together),
`internal/rm/device_map.go` (which resource a device becomes).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import yaml

from tests.compiler.backends.gpu_operator.mig_parted import Node

RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEYS = {
    "": {"version", "flags", "sharing"},
    "flags": {"migStrategy"},
    "sharing": {"timeSlicing", "mps"},
    "method": {"renameByDefault", "failRequestsGreaterThanOne", "resources"},
    "resource": {"name", "replicas"},
}
"""Keys that have an effect beside the operator: it sets the other flags by environment variables, which win."""


class RefusedError(Exception):
    """The plugin exits, and the node publishes no GPUs."""


def parse(text: str) -> dict[str, Any]:
    config = yaml.safe_load(text)
    _refuse_unless(config.get("version") in ("", "v1"), "unknown version")
    _know(config, "")
    _know(config.get("flags", {}), "flags")
    sharing = config.get("sharing", {})
    _know(sharing, "sharing")
    _refuse_unless(len(sharing) <= 1, "time-slicing and MPS exclude each other")
    for method in sharing.values():
        _know(method, "method")
        _refuse_unless(bool(method.get("resources")), "no resources specified")
        for resource in method["resources"]:
            _parse_resource(resource)
    return dict(config)


def _parse_resource(resource: dict[str, Any]) -> None:
    _know(resource, "resource")
    _refuse_unless({"name", "replicas"} <= resource.keys(), "no name or no replicas specified")
    _refuse_unless(resource["replicas"] >= 2, "number of replicas must be >= 2")
    name = resource["name"]
    _refuse_unless(name.startswith("nvidia.com/") and len(name) <= 63, f"invalid resource name {name}")
    _refuse_unless(RESOURCE.fullmatch(name.removeprefix("nvidia.com/")) is not None, f"invalid resource name {name}")


def _know(keys: dict[str, Any], where: str) -> None:
    """Unknown keys are ignored without a word; `rename`, `devices` and `resources` are, too, with a warning."""
    unknown = keys.keys() - KEYS[where]
    assert not unknown, f"{unknown} would be ignored"


def _refuse_unless(condition: bool, message: str) -> None:
    if not condition:
        raise RefusedError(message)


def publish(config: dict[str, Any], node: Node, strategy: str | None) -> Counter[str]:
    """The extended resources of a node. ``strategy`` is the operator's environment variable, which wins if set."""
    strategy = strategy or config.get("flags", {}).get("migStrategy", "none")
    devices = Counter(_devices(node, strategy))
    sharing = config.get("sharing", {})
    if "mps" in sharing:
        _refuse_unless(strategy != "mixed", "using --mig-strategy=mixed is not supported with MPS")
        _refuse_unless(all(gpu is None for gpu in node), "sharing using MPS is not supported for MIG devices")
    for method in sharing.values():
        for resource in method["resources"]:
            count = devices.pop(resource["name"], 0)
            name = resource["name"] + (".shared" if method.get("renameByDefault") else "")
            devices[name] += count * resource["replicas"]
    return +devices


def _devices(node: Node, strategy: str) -> list[str]:
    if strategy == "none" or all(gpu is None for gpu in node):
        return ["nvidia.com/gpu"] * len(node)
    if strategy == "single":
        kinds = {tuple(gpu) if gpu is not None else None for gpu in node}
        _refuse_unless(None not in kinds, "all devices must be configured with the same migEnabled value")
        _refuse_unless(len({name for kind in kinds for name in kind or ()}) == 1, "more than one MIG device type")
        return ["nvidia.com/gpu"] * sum(sum(gpu.values()) for gpu in node if gpu is not None)
    found = []
    for gpu in node:
        found += ["nvidia.com/gpu"] if gpu is None else []
        for profile, count in (gpu or {}).items():
            found += [f"nvidia.com/mig-{profile.replace('+', '.')}"] * count
    return found
