"""How mig-parted reads its file and what it makes of a node, written anew from its documented rules.

The rules are those of NVIDIA/mig-parted: `api/spec/v1/spec.go` (what is refused), `pkg/types/mig_config.go` (counts and
profile names), `pkg/mig/config` and `cmd/nvidia-mig-parted/assert` (when a node counts as configured).
"""

from __future__ import annotations

import re
from typing import Any

import yaml

PROFILE = re.compile(r"([0-9]+c\.)?[0-9]+g\.[0-9]+gb([+-][A-Za-z][A-Za-z0-9.]*(,[A-Za-z][A-Za-z0-9.]*)*)?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

Node = list[dict[str, int] | None]
"""The instances of each GPU of a node by profile; None where MIG is off."""


class RefusedError(Exception):
    """mig-parted does not take the file, and so no node of the cluster is configured."""


def parse(text: str) -> dict[str, list[dict[str, Any]]]:
    """The configurations of a file."""
    spec = yaml.safe_load(text)
    _refuse_unless(isinstance(spec, dict) and spec.get("version") == "v1", "unknown version")
    _refuse_unless(spec.keys() <= {"version", "mig-configs"}, "unexpected field")
    configs = spec.get("mig-configs")
    _refuse_unless(bool(configs), "at least one entry in mig-configs is required")
    for name, entries in configs.items():
        _refuse_unless(bool(entries), f"at least one entry in {name} is required")
        for entry in entries:
            _parse_entry(entry)
    return dict(configs)


def _parse_entry(entry: dict[str, Any]) -> None:
    _refuse_unless({"devices", "mig-enabled"} <= entry.keys(), "missing required field")
    _refuse_unless(entry.keys() <= {"device-filter", "devices", "mig-enabled", "mig-devices"}, "unexpected field")
    devices, is_enabled, instances = entry["devices"], entry["mig-enabled"], entry.get("mig-devices")
    is_list = isinstance(devices, list) and all(type(index) is int for index in devices)
    _refuse_unless(devices == "all" or is_list, "invalid input for devices")
    _refuse_unless(type(is_enabled) is bool, "mig-enabled is not a boolean")
    _refuse_unless(not is_enabled or instances is not None, "missing required field mig-devices")
    _refuse_unless(is_enabled or not instances, "MIG devices included when mig-enabled is false")
    for profile, count in (instances or {}).items():
        _refuse_unless(PROFILE.fullmatch(profile) is not None, f"invalid profile {profile}")
        _refuse_unless(type(count) is int and count >= 0, f"invalid count {count}")
    _refuse_unless(not instances or any(instances.values()), "all counts are 0")


def _refuse_unless(condition: bool, message: str) -> None:
    if not condition:
        raise RefusedError(message)


def apply(entries: list[dict[str, Any]], gpu_count: int) -> Node:
    """What a configuration makes of a node; refused is also what would never count as applied."""
    node: Node = [None] * gpu_count
    modes: dict[int, bool] = {}
    for entry in entries:
        for index in range(gpu_count) if entry["devices"] == "all" else entry["devices"]:
            if index < gpu_count:
                _refuse_unless(modes.setdefault(index, entry["mig-enabled"]) == entry["mig-enabled"], "two modes")
                node[index] = dict(entry["mig-devices"]) if entry["mig-enabled"] else None
    _refuse_unless(len(modes) == gpu_count, "not all GPUs match the specified config")
    for instances in node:
        for profile, count in (instances or {}).items():
            _refuse_unless(count > 0, "a count of 0 never equals what the GPU reports")
            _refuse_unless(re.match(r"([0-9])c\.\1g", profile) is None, f"{profile} is reported without its c part")
    return node
