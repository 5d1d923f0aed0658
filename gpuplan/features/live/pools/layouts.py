"""The MIG manager's entries, what each makes of the GPUs of a model, and the MigLayouts that pools need of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count as numbers
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin, Severity
from gpuplan.compiler.base.plain import mapping, sequence
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.catalog import Gpu, load, parse_profile
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.faults import mig_errors
from gpuplan.compiler.checks.wording import gpu_numbers
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, is_of_mig_devices, mig_resource
from gpuplan.compiler.planning.layouts import entry_of, make_layout
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.compiler.planning.plan import MIG_CONFIG_LABEL, Layout
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import Devices, MigStrategy
from gpuplan.features.live.drafts import Draft, policy_name
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.files import MIG_MANAGER, OPERATORS_OWN, ConfigFile
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
    # Of two items for one GPU mig-parted takes the later one, and fails if only one switches MIG on.
    indexes = [index for item in items for index in item.gpus or ()]
    if len({*indexes}) < len(indexes) or (len(items) > 1 and any(item.gpus is None for item in items)):
        return Division({}, "names a GPU twice")
    empty = [item for item in items if item.is_enabled and not item.instances]
    if empty and not any(item.instances for item in items):
        return _EMPTY
    devices: list[Spec] = []
    for item in items:
        parsed = [(name, parse_profile(name), count) for name, count in item.instances.items()]
        instances = {
            profile.gpu_instance if profile and profile.is_long_spelling else name: number
            for name, profile, number in parsed
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


def _fault(part: Item, gpu: Gpu) -> str:
    """Why no board of the model can be divided so; of one whose profiles nobody knows all is taken for possible."""
    if not part.is_enabled or not gpu.is_complete:
        return ""
    if not gpu.supports_mig:
        return f"switches MIG on, which {gpu.id} does not have"
    wanted: dict[str, int] = {}
    for name, instances in part.instances.items():
        parsed = parse_profile(name)
        if parsed is None or parsed.is_compute_instance:
            return f"has `{name}`, which is no GPU instance"
        own = gpu.current_name(parsed.gpu_instance)
        if gpu.find_profile(own) is None:
            return f"has `{name}`, which {gpu.id} does not have"
        wanted[own] = wanted.get(own, 0) + instances
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
    seen = next(_alike(group, gpu, entries.values()), _NOTHING)
    label = "no pool is made of them, since whole GPUs would dissolve their partitions"
    help_ = f"say which entry it is, and import again: `kubectl label nodes NODE {MIG_CONFIG_LABEL}=ENTRY`"
    if seen.spec:
        spelt = ", ".join(f"{number}x `{name}`" for name, number in seen.spec["instances"].items())
        label, help_ = f"taken for {spelt} on each GPU", "`nvidia-smi mig -lgi` on a node shows whether that is so"
    elif seen.entry:
        label = f"`{seen.entry}` has what they publish"
        help_ = f"say so before the first sync: `kubectl label nodes NODE {MIG_CONFIG_LABEL}={seen.entry}`"
    at, whose = first.at / "metadata" / "labels", f"Pool {group.pool}"
    reports.say("unlabelled-mig-devices", at, whose, found=group, help=help_, label=label)
    return seen


def read_published(group: Group, gpu: Gpu) -> Spec:
    """Return the instances of each GPU that the nodes publish; empty if they are not the same on all, or unknown."""
    found = _alike(group, gpu, ()) if group.machines else iter(())
    return next(found, _NOTHING).spec


def _alike(group: Group, gpu: Gpu, entries: Iterable[Entry]) -> Iterator[Seen]:
    first = group.machines[0]
    is_single = is_of_mig_devices(first.product)
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


class Use(Value):
    """A pool whose nodes name an entry. ``published`` is what one node has of each profile, as far as it is known.

    ``old_names`` are those of them that the node has under names of another driver. ``seen`` is what each GPU is
    divided into, as the node's resources and labels show it.
    """

    pool: str
    gpu: Gpu
    entry: str
    nodes: int
    gpus_per_node: int
    published: Mapping[str, int]
    at: Origin
    old_names: frozenset[str] = frozenset()
    seen: Spec = {}  # noqa: RUF012 - never changed


class _Meaning(NamedTuple):
    """The division that an entry stands for on a model, and its source."""

    spec: Spec
    source: str
    keeps_name: bool = True


class Layouts:
    """Finds what each pool is divided into; the drafts are those of all that were asked for."""

    def __init__(self, entries: Mapping[str, Entry], uses: Sequence[Use], reports: Reports) -> None:
        self._entries, self._uses, self._reports = entries, uses, reports
        self._drafts: dict[str, Draft] = {}
        self._written: dict[str, str] = {}
        self._used = {use.entry for use in uses}
        self._models = list(dict.fromkeys(use.gpu.id for use in uses))
        self._meanings: dict[tuple[str, str], _Meaning | None] = {}

    def mig_of(self, use: Use) -> dict[str, Any] | None:
        """Return a pool's reference to its layout, or None if nothing says how its GPUs are divided."""
        meaning = self._meaning(use)
        if meaning is None:
            return None
        key = f"{use.entry} {use.gpu.id}"
        if key not in self._written:
            name = self._written[key] = self._free(policy_name(use.entry), use.gpu)
            kept = {"configName": use.entry} if meaning.keeps_name else {}
            spec = {"gpu": use.gpu.id, **kept, **meaning.spec}
            self._drafts[name] = Draft("MigLayout", name, spec, (meaning.source,))
        return {"layout": self._written[key]}

    # --- What an entry means ---

    def knows(self, use: Use) -> bool:
        """Whether a file of the dump has the entry, or NVIDIA's own has one for the model."""
        return use.entry in self._entries or find_stock(use.entry, use.gpu) is not None

    def _meaning(self, use: Use) -> _Meaning | None:
        key = use.entry, use.gpu.id
        if key not in self._meanings:
            self._meanings[key] = self._find(use)
        return self._meanings[key]

    def _find(self, use: Use) -> _Meaning | None:
        entry, pool = self._entries.get(use.entry), f"Pool {use.pool}"
        if entry is not None:
            division = divide(entry, use.gpu)
            if not division.fault:
                if boards := joined([f"`{board}`" for board in other_boards(entry)]):
                    self._reports.say(
                        "entry-for-boards-without-mig", entry.at, pool, boards=boards, entry=entry, use=use
                    )
                spec = self._covering(use, entry, self._renamed(use, entry, division.spec))
                if division.loss:
                    self._reports.say("entry-in-part", entry.at, pool, entry=entry, division=division, use=use)
                return _Meaning(spec, entry.file.source, keeps_name=not division.loss)
            if entry.problems:  # which say it better
                self._reports.remark(pool, f"entry `{use.entry}` {division.fault}")
            else:
                self._tell_fault(use, entry.at, division)
        elif stock := find_stock(use.entry, use.gpu):
            if not stock.fault:
                return _Meaning(stock.spec, f"entry `{use.entry}` (NVIDIA's GPU Operator)")
            self._tell_fault(use, use.at, stock)
            return self._as_published(use, is_known=True)
        return self._as_published(use, is_known=entry is not None)

    def _renamed(self, use: Use, entry: Entry, spec: Spec) -> Spec:
        """With the names that profiles have today, unless the nodes publish those of another driver."""
        old = [name for name in profiles_of(spec) if name in use.gpu.legacy_names and name not in use.old_names]
        if not old:
            return spec
        names = joined([f"`{name}`" for name in old])
        current = joined([f"`{use.gpu.current_name(name)}`" for name in old])
        pool = f"Pool {use.pool}"
        self._reports.say("names-of-some-drivers", entry.at, pool, current=current, entry=entry, old=names)
        return renamed(spec, {name: use.gpu.current_name(name) for name in old})

    def _covering(self, use: Use, entry: Entry, spec: Spec) -> Spec:
        """With the GPUs that the entry says nothing of, as they are: whole."""
        named = [part["gpus"] for part in spec.get("devices", ())]
        if not named or "all" in named:
            return spec
        size = max(found.gpus_per_node for found in self._uses if (found.entry, found.gpu) == (use.entry, use.gpu))
        missing = sorted(set(range(size)) - {index for gpus in named for index in gpus})
        if not missing:
            return spec
        self._reports.say("gpus-without-a-word", entry.at, f"Pool {use.pool}", entry=entry, gpus=gpu_numbers(missing))
        return {"devices": [*spec["devices"], {"gpus": missing, "enabled": False}]}

    def _tell_fault(self, use: Use, at: Origin, division: Division) -> None:
        self._reports.say(
            "entry-is-no-layout",
            at,
            f"Pool {use.pool}",
            notes=() if division.works else ("the MIG manager fails on these nodes, and leaves them as they were",),
            severity=None if division.works else Severity.ERROR,
            division=division,
            use=use,
        )

    def _as_published(self, use: Use, *, is_known: bool) -> _Meaning | None:
        """Return the division that nodes publish, if it is the same on each GPU of a node."""
        found = {name: number // max(use.gpus_per_node, 1) for name, number in use.published.items()}
        is_even = all(number % max(use.gpus_per_node, 1) == 0 for number in use.published.values())
        division = divide_instances(found, use.gpu) if found and is_even else None
        spec = division.spec if division is not None and not division.fault else use.seen
        if not is_known:
            label = "gpuplan uses the partitions that they publish" if spec else "no pool is made of them"
            self._reports.say("entry-in-no-file", use.at, f"Pool {use.pool}", label=label, use=use)
        file = use.at.locate().file.path
        return _Meaning(spec, f"what its nodes publish ({file})") if spec else None

    # --- Drafts ---

    def _free(self, name: str, gpu: Gpu) -> str:
        """Return a name that no other layout has, and that means nothing to the operator."""
        longer = f"{name}-{policy_name(gpu.id)}"[:_LONGEST].strip("-")
        tries = chain((name, longer), (f"{name}-{number}" for number in numbers(2)))
        return next(found for found in tries if found not in self._drafts and found not in _OF_MIG_MANAGER)

    def spec_of(self, layout: str) -> Spec:
        """Return the instances of a layout that was asked for."""
        return {field: part for field, part in self._drafts[layout].spec.items() if field in ("instances", "devices")}

    def rest(self) -> Iterator[Draft]:
        """Yield the drafts of all layouts that were asked for, and of those in gpuplan's file that no node names."""
        unused: list[Entry] = []
        for name in sorted(self._entries.keys() - {ALL_DISABLED}):
            entry = self._entries[name]
            ids = dict.fromkeys((*self._models, *load().ids()))  # the models of the dump's pools first
            gpus = filter(None, map(load().find, ids if entry.file.owner.startswith(MIG_MANAGER.config_map) else ()))
            found = [gpu for gpu in gpus if gpu.supports_mig and divide(entry, gpu).spec]
            is_by_board = any(item.filters for item in entry.items)  # it has a part for each model
            if name not in self._used and not found:
                unused.append(entry)
            for gpu in found if is_by_board else found[: name not in self._used]:
                if f"{name} {gpu.id}" not in self._written:
                    layout = self._free(policy_name(name), gpu)
                    spec = {"gpu": gpu.id, "configName": name, **divide(entry, gpu).spec}
                    self._drafts[layout] = Draft("MigLayout", layout, spec, (entry.file.source,))
        yield from self._drafts.values()
        of_others = [entry for entry in unused if entry.file.owner != OPERATORS_OWN]
        if of_others:
            more = len(of_others) - 3
            names = joined([*(f"`{entry.name}`" for entry in of_others[:3]), *([f"{more} more"] if more > 0 else [])])
            entries = count(len(of_others), "entry", "entries")
            self._reports.say("unused-entries", of_others[0].at, entries=entries, names=names)


_OF_MIG_MANAGER: Final = (ALL_DISABLED, "all-enabled", "all-balanced")
"""Entries of NVIDIA's own file that are called as a layout may be."""

_LONGEST: Final = 54
"""Behind a layout's name comes a hash, and both are the value of a label."""
