"""The MIG manager's entries, and what each of them makes of the GPUs of one model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import mapping, sequence
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu, load, parse_profile, resource_suffix
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.faults import mig_errors
from gpuplan.compiler.planning.layouts import content_hash, entry_of, make_layout
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.planning.plan import GPU_RESOURCE, Layout
from gpuplan.compiler.policy.models import Devices, MigStrategy
from gpuplan.features.live.pools.files import ConfigFile

Spec = dict[str, Any]
"""`instances` or `devices`, as a policy has them."""


class Item(NamedTuple):
    """What an entry says of some GPUs: ``gpus`` is None for all, ``filters`` are empty for boards of any model."""

    gpus: tuple[int, ...] | None
    is_enabled: bool
    instances: Mapping[str, int]
    filters: tuple[str, ...]


class Entry(Value):
    """An entry of a MIG manager's file; ``problems`` are what mig-parted refuses of it, or never fulfils."""

    name: str
    at: Origin
    file: ConfigFile
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()


def read_entries(files: Iterable[ConfigFile]) -> tuple[Mapping[str, Entry], tuple[tuple[ConfigFile, Problem], ...]]:
    """The entries by name, the first of each; and problems of files as such."""
    found: dict[str, Entry] = {}
    others: list[tuple[ConfigFile, Problem]] = []
    for file in files:
        by_entry: dict[str, list[Problem]] = {}
        for problem in mig_errors(file.body, ()):
            if problem.route[:1] == ("mig-configs",) and len(problem.route) > 1:
                by_entry.setdefault(str(problem.route[1]), []).append(problem)
            else:
                others.append((file, problem))
        for name, written in mapping(file.body.get("mig-configs")).items():
            items = tuple(filter(None, map(_item, sequence(written))))
            entry = Entry(name, file.place("mig-configs", name), file, items, tuple(by_entry.get(name, ())))
            found.setdefault(name, entry)
    return found, tuple(others)


def _item(written: object) -> Item | None:
    """An item as far as it can be read: `mig-devices` without what stands for nothing."""
    body = mapping(written)
    devices, enabled = body.get("devices"), body.get("mig-enabled")
    if not isinstance(enabled, bool) or not (devices == "all" or isinstance(devices, list)):
        return None
    gpus = None if devices == "all" else tuple(part for part in sequence(devices) if type(part) is int and part >= 0)
    filters = body.get("device-filter") or ()
    texts = (filters,) if isinstance(filters, str) else sequence(filters)
    instances = {
        name: count for name, count in mapping(body.get("mig-devices")).items() if type(count) is int and count > 0
    }
    return Item(gpus, enabled, instances if enabled else {}, tuple(str(part).lower() for part in texts))


# --- On one model ------------------------------------------------------------------------------------------------


class Division(NamedTuple):
    """What an entry makes of a model's GPUs; ``fault`` says why no policy does, and is empty where one does.

    ``works`` is whether mig-parted does it all the same. ``loss`` is what of the entry the spec does not say.
    """

    spec: Spec
    fault: str = ""
    works: bool = False
    loss: str = ""


_IS_EMPTY: Final = "leaves GPUs with MIG on and without an instance, which run nothing"
_EMPTY: Final = Division({}, _IS_EMPTY, works=True)


def divide(entry: Entry, gpu: Gpu) -> Division:
    """The items that are for boards of the model, as a policy says them."""
    items = [item for item in entry.items if _is_meant(item, gpu)]
    if not items:
        return Division({}, f"has no item for boards of {gpu.id}")
    for item in items:
        if fault := _fault(item, gpu):
            return Division({}, fault)
    if _is_doubled(items):
        return Division({}, "names a GPU twice")
    empty = [item for item in items if item.is_enabled and not item.instances]
    if empty and not any(item.instances for item in items):
        return _EMPTY
    named = [item._replace(instances={_spelt(name): count for name, count in item.instances.items()}) for item in items]
    match named:
        case [Item(gpus=None, is_enabled=True) as only] if only.instances:
            return Division({"instances": dict(only.instances)})
        case _:
            return Division({"devices": [_devices(item) for item in named]}, loss=_IS_EMPTY if empty else "")


def divide_instances(instances: Mapping[str, int], gpu: Gpu) -> Division:
    """The same for instances that every GPU has."""
    fault = _fault(Item(None, True, instances, ()), gpu)  # noqa: FBT003 - as the file says it
    return Division({}, fault) if fault else Division({"instances": dict(instances)})


def _is_meant(item: Item, gpu: Gpu) -> bool:
    own = {device.filter.lower() for device in gpu.pci}
    return not item.filters or any(found.partition(":")[0] in own for found in item.filters)


def other_boards(entry: Entry) -> tuple[str, ...]:
    """Boards that the entry has items for and on which no model of the catalog has MIG."""
    own = {device.filter.lower() for gpu in load().all() if gpu.supports_mig for device in gpu.pci}
    filters = dict.fromkeys(found for item in entry.items for found in item.filters)
    return tuple(found for found in filters if found.partition(":")[0] not in own)


def _is_doubled(items: Sequence[Item]) -> bool:
    """Of two items for one GPU mig-parted takes the later one, and fails where only one switches MIG on."""
    if any(item.gpus is None for item in items):
        return len(items) > 1
    indexes = [index for item in items for index in item.gpus or ()]
    return len(indexes) != len(set(indexes))


def _fault(item: Item, gpu: Gpu) -> str:
    """Why no board of the model can be divided so; of one whose profiles nobody knows all is taken for possible."""
    if not item.is_enabled or not gpu.is_complete:
        return ""
    if not gpu.supports_mig:
        return f"switches MIG on, which {gpu.id} does not have"
    wanted: dict[str, int] = {}
    for name, count in item.instances.items():
        parsed = parse_profile(name)
        if parsed is None or parsed.is_compute_instance:
            return f"has `{name}`, which is no GPU instance"
        own = gpu.current_name(parsed.gpu_instance)
        if gpu.find_profile(own) is None:
            return f"has `{name}`, which {gpu.id} does not have"
        wanted[own] = wanted.get(own, 0) + count
    if wanted and not fits(gpu, wanted):
        spelt = ", ".join(f"{count}x `{name}`" for name, count in item.instances.items())
        return f"cannot be placed on {gpu.id}: {spelt}"
    return ""


def _spelt(name: str) -> str:
    parsed = parse_profile(name)
    return parsed.gpu_instance if parsed is not None and parsed.is_long_spelling else name


def _devices(item: Item) -> Spec:
    gpus: object = "all" if item.gpus is None else list(item.gpus)
    return {"gpus": gpus, "instances": dict(item.instances)} if item.instances else {"gpus": gpus, "enabled": False}


# --- Names -------------------------------------------------------------------------------------------------------

_OWN: Final = re.compile(r"([a-z0-9][-a-z0-9]*)-([0-9a-f]{8})")


class OwnName(NamedTuple):
    """The layout that gpuplan named an entry after, as the policy had it.

    ``gpus_per_node`` is how many GPUs the nodes have for which gpuplan added those that the layout does not name.
    """

    layout: str
    spec: Spec
    gpus_per_node: int = 0


def find_own(entry: Entry, gpu: Gpu) -> OwnName | None:
    """What a policy said of which gpuplan made the entry; None where its name holds no hash of what it says.

    gpuplan adds an item for GPUs that a layout does not name: it is not in the hash.
    """
    match = _OWN.fullmatch(entry.name)
    if match is None or entry.problems:
        return None
    spec = divide(entry, gpu).spec
    devices = spec.get("devices", ())
    added = devices[-1]["gpus"] if len(devices) > 1 else []
    shorter = {"devices": devices[:-1]} if added and added != "all" else {}
    for written, size in ((spec, 0), (shorter, max(added, default=0) + 1 if shorter else 0)):
        if written and content_hash(layout_of(entry.at, match[1], gpu, written).entries) == match[2]:
            return OwnName(match[1], written, size)
    return None


def profiles_of(spec: Spec) -> list[str]:
    """The names of profiles in a layout, each once."""
    instances = [spec.get("instances", {}), *(part.get("instances", {}) for part in spec.get("devices", ()))]
    return list(dict.fromkeys(name for part in instances for name in part))


def renamed(spec: Spec, names: Mapping[str, str]) -> Spec:
    """A layout with other names of profiles."""
    found: Spec = {}
    for field, part in spec.items():
        if field == "devices":
            found[field] = [renamed(item, names) for item in part]
        else:
            is_counts = field == "instances"
            found[field] = {names.get(name, name): count for name, count in part.items()} if is_counts else part
    return found


def layout_of(at: Origin, name: str, gpu: Gpu, spec: Spec) -> Layout:
    devices = [Devices.model_validate(part) for part in spec["devices"]] if "devices" in spec else None
    return make_layout(at, name, gpu, spec.get("instances"), devices)


def published_by(at: Origin, gpu: Gpu, spec: Spec, gpus: int, strategy: str) -> dict[str, int]:
    """The resources of a node with so many GPUs that are divided so."""
    layout = layout_of(at, "", gpu, spec)
    found: dict[str, int] = {}
    for index in range(gpus):
        entry = entry_of(layout, index)
        instances = entry.instances if entry and entry.mig_enabled else {"": 1}
        for name, number in instances.items():
            is_gpu = not name or strategy == MigStrategy.SINGLE
            resource = GPU_RESOURCE if is_gpu else f"nvidia.com/mig-{resource_suffix(name)}"
            found[resource] = found.get(resource, 0) + number
    return found


def policy_name(name: str) -> str:
    """A name that a document may have, as near as can be to one that the cluster has."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-") or "layout"


# --- What NVIDIA's operator brings -------------------------------------------------------------------------------

_BALANCED: Final[Mapping[int, Mapping[int, int]]] = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}
"""Instances by compute slices, by those of the board (`balancedFormula` in `pkg/mig/builder/balanced.go` of
NVIDIA/mig-parted v0.14.0). The file that earlier releases bring says the same of the boards that it names
(`assets/state-mig-manager/0400_configmap.yaml` of NVIDIA/gpu-operator v25.10.0).
"""


def find_stock(name: str, gpu: Gpu) -> Division | None:
    """What an entry of NVIDIA's own file makes of a model: the MIG manager makes that file on the node.

    It has `all-enabled`, `all-balanced`, and for each profile as many instances as there can be (`buildMigConfigSpec`
    in `pkg/mig/builder/builder.go` there).
    """
    if name == "all-enabled":
        return _EMPTY
    if name == "all-balanced":
        found = dict(_balanced(gpu))
        return Division({"instances": found}) if found else None
    for profile in gpu.profiles:
        if name == f"all-{profile.resource_suffix}":
            return Division({"instances": {profile.name: profile.max_instances}})
    return None


def _balanced(gpu: Gpu) -> Iterator[tuple[str, int]]:
    plain = gpu.plain_profiles
    formula = _BALANCED.get(max((profile.compute_slices for profile in plain), default=0), {})
    chosen = {
        slices: max(
            (profile for profile in plain if profile.compute_slices == slices),
            key=lambda profile: profile.max_instances,
            default=None,
        )
        for slices in formula
    }
    if all(chosen.values()):
        yield from ((profile.name, formula[slices]) for slices, profile in chosen.items() if profile)
