"""The MIG manager's entries, what each of them makes of the GPUs of a model, and which of them nodes have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import mapping, sequence
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu, load, parse_profile
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.faults import mig_errors
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, is_of_mig_devices, mig_resource
from gpuplan.compiler.planning.layouts import entry_of, make_layout
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Layout
from gpuplan.compiler.policy.models import Devices, MigStrategy
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.files import ConfigFile
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.nodes import profile_of_product

Spec = dict[str, Any]
"""`instances` or `devices`, as a policy has them."""


class Item(NamedTuple):
    """A part of an entry: ``gpus`` is None for all GPUs, ``filters`` are empty for boards of any model."""

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
    """Return the entries by name, the first of each; and problems of files as such."""
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
            items = tuple(filter(None, map(_part_of, sequence(written))))
            entry = Entry(name, file.place("mig-configs", name), file, items, tuple(by_entry.get(name, ())))
            found.setdefault(name, entry)
    return found, tuple(others)


def _part_of(written: object) -> Item | None:
    """Return an item as far as it can be read: `mig-devices` without what stands for nothing."""
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
    """The division of a model's GPUs by an entry; ``fault`` is why no policy can say it, or empty.

    ``works`` is whether mig-parted divides GPUs so all the same. ``loss`` is what the spec leaves out.
    """

    spec: Spec
    fault: str = ""
    works: bool = False
    loss: str = ""


_IS_EMPTY: Final = "leaves GPUs with MIG on and without an instance, which run nothing"
_EMPTY: Final = Division({}, _IS_EMPTY, works=True)


def divide(entry: Entry, gpu: Gpu) -> Division:
    """Return the items that are for boards of the model, as a policy says them."""
    own = {device.filter.lower() for device in gpu.pci}
    items = [
        part
        for part in entry.items
        if not part.filters or any(found.partition(":")[0] in own for found in part.filters)
    ]
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
    devices: list[Spec] = []
    for item in items:
        parsed = [(name, parse_profile(name), count) for name, count in item.instances.items()]
        instances = {
            profile.gpu_instance if profile and profile.is_long_spelling else name: count
            for name, profile, count in parsed
        }
        if item.gpus is None and item.is_enabled and instances and len(items) == 1:
            return Division({"instances": instances})
        gpus: object = "all" if item.gpus is None else list(item.gpus)
        devices.append({"gpus": gpus, **({"instances": instances} if instances else {"enabled": False})})
    return Division({"devices": devices}, loss=_IS_EMPTY if empty else "")


def divide_instances(instances: Mapping[str, int], gpu: Gpu) -> Division:
    """Return the same for instances that every GPU has."""
    fault = _fault(Item(None, True, instances, ()), gpu)  # noqa: FBT003 - as the file says it
    return Division({}, fault) if fault else Division({"instances": dict(instances)})


def other_boards(entry: Entry) -> tuple[str, ...]:
    """Boards that the entry has items for and on which no model of the catalog has MIG."""
    own = {device.filter.lower() for gpu in load().all() if gpu.supports_mig for device in gpu.pci}
    filters = dict.fromkeys(found for item in entry.items for found in item.filters)
    return tuple(found for found in filters if found.partition(":")[0] not in own)


def _is_doubled(items: Sequence[Item]) -> bool:
    """Whether two items name one GPU: mig-parted takes the later one, and fails if only one switches MIG on."""
    if any(item.gpus is None for item in items):
        return len(items) > 1
    indexes = [index for item in items for index in item.gpus or ()]
    return len(indexes) != len(set(indexes))


def _fault(part: Item, gpu: Gpu) -> str:
    """Why no board of the model can be divided so; of one whose profiles nobody knows all is taken for possible."""
    if not part.is_enabled or not gpu.is_complete:
        return ""
    if not gpu.supports_mig:
        return f"switches MIG on, which {gpu.id} does not have"
    wanted: dict[str, int] = {}
    for name, count in part.instances.items():
        parsed = parse_profile(name)
        if parsed is None or parsed.is_compute_instance:
            return f"has `{name}`, which is no GPU instance"
        own = gpu.current_name(parsed.gpu_instance)
        if gpu.find_profile(own) is None:
            return f"has `{name}`, which {gpu.id} does not have"
        wanted[own] = wanted.get(own, 0) + count
    if wanted and not fits(gpu, wanted):
        spelt = ", ".join(f"{count}x `{name}`" for name, count in part.instances.items())
        return f"cannot be placed on {gpu.id}: {spelt}"
    return ""


def profiles_of(spec: Spec) -> list[str]:
    """Return the names of profiles in a layout, each once."""
    instances = [spec.get("instances", {}), *(part.get("instances", {}) for part in spec.get("devices", ()))]
    return list(dict.fromkeys(name for part in instances for name in part))


def renamed(spec: Spec, names: Mapping[str, str]) -> Spec:
    """Return a layout with other names of profiles."""
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
    """Return the resources of a node with so many GPUs that are divided so."""
    layout = layout_of(at, "", gpu, spec)
    found: dict[str, int] = {}
    for index in range(gpus):
        entry = entry_of(layout, index)
        instances = entry.instances if entry and entry.mig_enabled else {"": 1}
        for name, number in instances.items():
            is_gpu = not name or strategy == MigStrategy.SINGLE
            resource = GPU_RESOURCE if is_gpu else mig_resource(name)
            found[resource] = found.get(resource, 0) + number
    return found


# --- What NVIDIA's operator brings -------------------------------------------------------------------------------

_BALANCED: Final[Mapping[int, Mapping[int, int]]] = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}
"""Instances by compute slices, by those of the board (`balancedFormula` in `pkg/mig/builder/balanced.go` of
NVIDIA/mig-parted v0.14.0). The file that earlier releases bring says the same of the boards that it names
(`assets/state-mig-manager/0400_configmap.yaml` of NVIDIA/gpu-operator v25.10.0).
"""


def find_stock(name: str, gpu: Gpu) -> Division | None:
    """Return the division of a model by an entry of NVIDIA's own file, which the MIG manager makes on the node.

    The file has `all-enabled`, `all-balanced`, and for each profile as many instances as fit (`buildMigConfigSpec` in
    `pkg/mig/builder/builder.go` there).
    """
    if name == "all-enabled":
        return _EMPTY
    if name == "all-balanced":
        plain, found = gpu.plain_profiles, dict[str, int]()
        formula = _BALANCED.get(max((profile.compute_slices for profile in plain), default=0), {})
        for slices, number in formula.items():
            fitting = [profile for profile in plain if profile.compute_slices == slices]
            if not fitting:
                return None
            found[max(fitting, key=lambda profile: profile.max_instances).name] = number
        return Division({"instances": found}) if found else None
    for profile in gpu.profiles:
        if name == f"all-{profile.resource_suffix}":
            return Division({"instances": {profile.name: profile.max_instances}})
    return None


_NODE_SIZES: Final = (8, 4, 2, 1, 16)
"""The numbers of GPUs that a node may have if nothing counts them, the usual ones first."""


class Seen(NamedTuple):
    """The entry that divides GPUs into what nodes publish; or the same as a pool says it, where there is none."""

    entry: str = ""
    spec: Spec = {}  # noqa: RUF012 - never changed


_NOTHING: Final = Seen()


def read_unlabelled(group: Group, gpu: Gpu, entries: Mapping[str, Entry], reports: Reports) -> Seen:
    """Nothing for nodes with a label that names an entry, and for those without MIG devices."""
    if group.is_claimed or MIG_CONFIG_LABEL in group.claim.first.labels or not group.machines:
        return _NOTHING
    first = group.machines[0]
    is_single = is_of_mig_devices(first.product)
    if not is_single and not first.has_mig_devices:
        return _NOTHING
    seen = next(_alike(group, gpu, entries.values(), is_single=is_single), _NOTHING)
    label = "they lose their partitions by the first sync"
    help_ = "write what they have into `sharing.mig` of the pool"
    if seen.spec:
        spelt = ", ".join(f"{number}x `{name}`" for name, number in seen.spec["instances"].items())
        label, help_ = f"taken for {spelt} on each GPU", "`nvidia-smi mig -lgi` on a node shows whether that is so"
    elif seen.entry:
        label = f"`{seen.entry}` has what they publish"
        help_ = f"say so before the first sync: `kubectl label nodes NODE {MIG_CONFIG_LABEL}={seen.entry}`"
    at, whose = first.at / "metadata" / "labels", f"Pool {group.pool}"
    reports.say("unlabelled-mig-devices", at, whose, found=group, help=help_, label=label)
    return seen


def _alike(group: Group, gpu: Gpu, entries: Iterable[Entry], *, is_single: bool) -> Iterator[Seen]:
    first = group.machines[0]
    strategy = MigStrategy.SINGLE if is_single else MigStrategy.MIXED
    profile = profile_of_product(first.product, gpu) if is_single else None
    sizes = (first.counted,) if first.counted and not is_single else _NODE_SIZES

    def is_right(division: Division) -> bool:
        spec = division.spec
        if division.fault or not spec or (profile and profiles_of(spec) != [profile.name]):
            return False
        return any(published_by(first.at, gpu, spec, size, strategy) == first.published for size in sizes)

    for entry in entries:
        if not entry.problems and is_right(divide(entry, gpu)):
            yield Seen(entry.name)
    by_suffix = {mig_resource(one.name): one.name for one in gpu.profiles}
    each: dict[str, int] = {}
    if profile:
        each = {profile.name: profile.max_instances}
    elif first.counted and first.published.keys() <= by_suffix.keys():
        each = {by_suffix[name]: number // first.counted for name, number in first.published.items()}
        each = each if not any(number % first.counted for number in first.published.values()) else {}
    if each and is_right(divide_instances(each, gpu)):
        yield Seen(spec={"instances": each})
