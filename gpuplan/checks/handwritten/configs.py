"""Checks on hand-written files of the device plugin and of the MIG manager (GPU630-639)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from gpuplan.catalog import load, parse_profile
from gpuplan.checks.handwritten.reading import KUSTOMIZATION_FILES, mapping, read, read_text, sequence, text
from gpuplan.checks.registry import Check, check
from gpuplan.diagnostics import Finding, Origin, Severity
from gpuplan.patterns import regex
from gpuplan.planning.placement import fits
from gpuplan.planning.plan import ClusterMigStrategy, Plan

MOST_MPS_CLIENTS = 48

_RESOURCE = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_RESOURCE = 63
_UUID = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_DEVICE = regex(rf"[0-9]+(:[0-9]+)?|(GPU|MIG)-{_UUID}|MIG-GPU-{_UUID}/[0-9]+/[0-9]+")
_FILTER = regex(r"0x[0-9A-Fa-f]{8}(:0x[0-9A-Fa-f]{8})?")
LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_MARKS = ("mig-configs", "sharing", "migStrategy")


@dataclass(frozen=True, slots=True)
class _Config:
    """A file's content. That of a ConfigMap is text, and has one place for all that is in it."""

    at: Origin
    body: Mapping[str, object]
    key: str
    is_inline: bool

    def place(self, route: tuple[str | int, ...]) -> Origin:
        return self.at if self.is_inline else self.at / route


class Problem(NamedTuple):
    """What is wrong, where in the file, and what to write instead."""

    route: tuple[str | int, ...]
    message: str
    label: str
    help: str


def _configs(plan: Plan) -> Iterator[_Config]:
    """Files that look like the device plugin's or the MIG manager's, in ConfigMaps and beside a generator."""
    for found in read(plan).of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            if isinstance(value, str) and any(mark in value for mark in _MARKS):
                for body in read_text(value):
                    yield _Config(found.place("data", key), mapping(body), key, is_inline=True)
    for written in plan.hand_written:
        body = mapping(written.body)
        if "kind" not in body and any(mark in body for mark in ("mig-configs", "sharing", "flags")):
            name = written.at.locate().file.path.rpartition("/")[2]
            if name not in KUSTOMIZATION_FILES:
                yield _Config(written.at, body, name, is_inline=False)


def _findings(config: _Config, problems: Iterator[Problem], fact: str) -> Iterator[Finding]:
    for problem in problems:
        where = f"`{config.key}`: " if config.is_inline else ""
        place = config.place(problem.route)
        yield Finding(place, where + problem.message, label=problem.label, notes=(fact,), help=problem.help)


# --- The device plugin -------------------------------------------------------------------------------------------


@check("GPU630", "device-plugin-config-refused")
def device_plugin_config_refused(plan: Plan) -> Iterator[Finding]:
    """A hand-written configuration of the device plugin is one that it cannot read.

    ## Why
    The plugin checks its file when it starts (`api/config/v1` of NVIDIA/k8s-device-plugin). With a file that it refuses
    it exits, and the nodes that select the entry hand out no GPUs at all. A common one is `replicas: 0` or `1` to
    switch sharing off.

    ## Instead
    Describe the pool in the policy. Where an entry must be written by hand, switch sharing off by leaving `sharing`
    out.
    """
    for config in _configs(plan):
        if _is_plugin(config.body):
            problems = plugin_errors(config.body, plan.cluster.gpu_operator.mig_strategy)
            yield from _findings(config, problems, "nodes with this entry hand out no GPUs")


def _is_plugin(body: Mapping[str, object]) -> bool:
    return any(name in mapping(body.get("sharing")) for name in _METHODS) or "migStrategy" in mapping(body.get("flags"))


_METHODS = ("timeSlicing", "mps")


def _methods(body: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """What shares GPUs; `mps` may be null, which `timeSlicing` may not."""
    sharing = mapping(body.get("sharing"))
    return {
        name: mapping(sharing[name])
        for name in _METHODS
        if name in sharing and not (name == "mps" and sharing[name] is None)
    }


def plugin_errors(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    if body.get("version") not in (None, "", "v1"):
        yield Problem(("version",), "the device plugin knows version `v1` only", "unknown", "write `version: v1`")
    yield from _strategy_errors(body, overriding)
    yield from _flag_errors(body)
    yield from _pattern_errors(body)
    for name, method in _methods(body).items():
        route = ("sharing", name)
        resources = sequence(method.get("resources"))
        for field in _METHOD_FIELDS:
            if not isinstance(method.get(field), bool | None):
                yield Problem((*route, field), f"`{field}` is not a boolean", "true or false", f"write `{field}: true`")
        if not resources:
            help_ = "list `{name: nvidia.com/gpu, replicas: 2}`, or leave `sharing` out"
            yield Problem(route, f"`{name}` shares no resource", "`resources` is missing or empty", help_)
        for index, resource in enumerate(resources):
            yield from _resource_errors((*route, "resources", index), name, mapping(resource))


def _strategy_errors(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """The file's strategy counts where the cluster leaves it to each pool; it is parsed in any case."""
    own = mapping(body.get("flags")).get("migStrategy")
    is_own = overriding is ClusterMigStrategy.PER_POOL
    if not isinstance(own, str | None) or (is_own and own not in (None, "none", "single", "mixed")):
        message = f"the device plugin knows no MIG strategy `{own}`"
        yield Problem(("flags", "migStrategy"), message, "unknown", "write `none`, `single` or `mixed`")
    if "mps" in _methods(body) and (own if is_own else overriding) == ClusterMigStrategy.MIXED:
        message = "the device plugin refuses MPS with the MIG strategy `mixed`"
        if is_own:
            yield Problem(("flags", "migStrategy"), message, "not with MPS", "write `migStrategy: none`")
        else:
            help_ = "use `timeSlicing`, or write `gpuOperator.migStrategy: perPool` in the Cluster"
            yield Problem(("sharing", "mps"), message, "the cluster's strategy is `mixed`", help_)


_BOOLEAN_FLAGS = ("failOnInitError", "gdrcopyEnabled", "gdsEnabled", "mofedEnabled", "useNodeFeatureAPI")
_TEXT_FLAGS = ("mpsRoot", "nvidiaDriverRoot", "nvidiaDevRoot", "deviceDiscoveryStrategy")


def _flag_errors(body: Mapping[str, object]) -> Iterator[Problem]:
    flags = mapping(body.get("flags"))
    for name in _BOOLEAN_FLAGS:
        if not isinstance(flags.get(name), bool | None):
            yield Problem(("flags", name), f"`{name}` is not a boolean", "true or false", f"write `{name}: true`")
    for name in _TEXT_FLAGS:
        if not isinstance(flags.get(name), str | None):
            yield Problem(("flags", name), f"`{name}` is not text", "cannot be read", "write it in quotes")


def _pattern_errors(body: Mapping[str, object]) -> Iterator[Problem]:
    """The names of `resources` are ignored, but only once they are parsed."""
    resources = mapping(body.get("resources"))
    for kind in ("gpus", "mig"):
        for index, entry in enumerate(sequence(resources.get(kind))):
            fields = mapping(entry)
            if not isinstance(fields.get("pattern"), str) or not _is_resource(fields.get("name")):
                message = f"an entry of `resources.{kind}` lacks a pattern or a valid name"
                yield Problem(("resources", kind, index), message, "cannot be read", "remove `resources`")


def _is_resource(name: object) -> bool:
    """Whether the plugin takes the name, to which it adds the prefix where that is missing."""
    plain = text(name).removeprefix("nvidia.com/")
    return bool(_RESOURCE.fullmatch(plain)) and len(f"nvidia.com/{plain}") <= _LONGEST_RESOURCE


def _resource_errors(route: tuple[str | int, ...], method: str, resource: Mapping[str, object]) -> Iterator[Problem]:
    name, replicas = resource.get("name"), resource.get("replicas")
    if not name:
        yield Problem(route, f"a resource of `{method}` has no name", "no `name`", "add `name: nvidia.com/gpu`")
    for field in ("name", "rename"):
        if field in resource and (name or field == "rename") and not _is_resource(resource[field]):
            message = f"`{resource[field]}` is no name of a resource"
            help_ = "write `nvidia.com/` and at most 52 lower-case letters, digits, `-` and `.`"
            yield Problem((*route, field), message, "cannot be read", help_)
    if "devices" in resource and not _is_choice(resource["devices"]):
        help_ = "remove it: all GPUs are shared"
        yield Problem((*route, "devices"), f"`devices` cannot be `{resource['devices']}`", "cannot be read", help_)
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 2:
        given = "no `replicas`" if replicas is None else f"`replicas: {replicas}`"
        message = f"`{text(name) or 'resource'}` has {given}"
        help_ = "write 2 or more; to switch sharing off leave `sharing` out"
        yield Problem((*route, "replicas"), message, "the device plugin takes 2 or more", help_)
    elif method == "mps" and replicas > MOST_MPS_CLIENTS:
        message = f"MPS divides a GPU among at most {MOST_MPS_CLIENTS}"
        help_ = f"write {MOST_MPS_CLIENTS} or less, on GPUs before compute capability 7.5 at most 16"
        yield Problem((*route, "replicas"), message, f"{replicas} clients", help_)
    if method == "mps" and text(name).startswith("nvidia.com/mig-"):
        yield Problem((*route, "name"), "MPS does not share MIG devices", "whole GPUs only", "use `timeSlicing`")


def _is_choice(devices: object) -> bool:
    """All devices, how many of them, or a list of indexes and UUIDs."""
    if isinstance(devices, list):
        return all(isinstance(item, str | int) and bool(_DEVICE.fullmatch(str(item))) for item in devices)
    return devices == "all" or (isinstance(devices, int) and not isinstance(devices, bool) and devices > 0)


@check("GPU631", "device-plugin-config-ignored", Severity.WARNING)
def device_plugin_config_ignored(plan: Plan) -> Iterator[Finding]:
    """A hand-written configuration of the device plugin has fields that it ignores.

    ## Why
    `rename`, `devices` and the top-level `resources` are parsed and dropped with a line in the log; keys in the wrong
    place are dropped without one. Where `timeSlicing` and `mps` stand side by side, MPS wins. A resource that the node
    does not have is skipped: MIG devices are `nvidia.com/mig-1g.10gb` under the strategy `mixed` alone, and
    `nvidia.com/gpu` under `single`. The nodes then publish other resources than the file says.

    ## Instead
    `renameByDefault` and `failRequestsGreaterThanOne` belong right under `timeSlicing` or `mps`. Sharing is the same
    for all GPUs of a node: GPUs to be shared in another way need another pool.
    """
    for config in _configs(plan):
        if _is_plugin(config.body):
            overriding = plan.cluster.gpu_operator.mig_strategy
            problems = (*_plugin_warnings(config.body), *_wrong_strategy(config.body, overriding))
            yield from _findings(config, iter(problems), "the device plugin starts without it")


_METHOD_FIELDS = ("renameByDefault", "failRequestsGreaterThanOne")


def _plugin_warnings(body: Mapping[str, object]) -> Iterator[Problem]:
    methods = _methods(body)
    if len(methods) == 2:
        yield Problem(("sharing", "timeSlicing"), "MPS wins over time-slicing", "ignored", "keep one of the two")
    if "resources" in body:
        yield Problem(("resources",), "`resources` is ignored", "resources cannot be named here", "remove it")
    for name, method in methods.items():
        for index, resource in enumerate(sequence(method.get("resources"))):
            fields = mapping(resource)
            route = ("sharing", name, "resources", index)
            if _is_resource(fields.get("rename")):
                help_ = f"write `renameByDefault: true` right under `{name}`: the resource is then named `.shared`"
                yield Problem((*route, "rename"), "`rename` is ignored", "not supported", help_)
            if fields.get("devices", "all") != "all" and _is_choice(fields["devices"]):
                help_ = "remove it; GPUs to be shared in another way need another pool"
                yield Problem((*route, "devices"), "`devices` is ignored: all GPUs are shared", "not supported", help_)
            yield from _misplaced(fields, route, name)
    yield from _misplaced(mapping(body.get("flags")), ("flags",), "timeSlicing")
    yield from _misplaced(mapping(body.get("sharing")), ("sharing",), "timeSlicing")


def _wrong_strategy(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """MIG devices that are to be shared by a name that they have under another strategy."""
    own = text(mapping(body.get("flags")).get("migStrategy")) or ClusterMigStrategy.NONE.value
    strategy = own if overriding is ClusterMigStrategy.PER_POOL else overriding.value
    if strategy == ClusterMigStrategy.MIXED:
        return
    for index, resource in enumerate(sequence(_methods(body).get("timeSlicing", {}).get("resources"))):
        name = text(mapping(resource).get("name"))
        if name.removeprefix("nvidia.com/").startswith("mig-"):
            yield Problem(
                ("sharing", "timeSlicing", "resources", index, "name"),
                f"`{name}` is not shared: under the MIG strategy `{strategy}` no device has this name",
                "matches nothing",
                "write `nvidia.com/gpu`" if strategy == "single" else "write `flags: {migStrategy: mixed}` in the file",
            )


def _misplaced(fields: Mapping[str, object], route: tuple[str | int, ...], method: str) -> Iterator[Problem]:
    for name in _METHOD_FIELDS:
        if name in fields:
            yield Problem((*route, name), f"`{name}` is ignored here", "wrong place", f"move it right under `{method}`")


# --- The MIG manager ---------------------------------------------------------------------------------------------


@check("GPU632", "mig-config-refused")
def mig_config_refused(plan: Plan) -> Iterator[Finding]:
    """A hand-written file of the MIG manager is one that it cannot read or cannot fulfil.

    ## Why
    The file is parsed as a whole (`api/spec/v1` of NVIDIA/mig-parted): one bad entry fails every node of the cluster.
    What is not refused can be worse: a malformed filter matches no GPU, and a count of 0 never becomes true, so that
    the node is repartitioned at each start.

    ## Instead
    Write a MigLayout: gpuplan writes the file, and proves that the instances fit.
    """
    for config in _configs(plan):
        if "mig-configs" in config.body:
            yield from _findings(
                config, _mig_errors(config.body), "one bad entry fails the file, and with it all nodes"
            )


def _mig_errors(body: Mapping[str, object]) -> Iterator[Problem]:
    if body.get("version") != "v1":
        yield Problem(("version",), "the MIG manager needs `version: v1`", "missing or unknown", "write `version: v1`")
    for key in body:
        if key not in ("version", "mig-configs"):
            yield Problem((key,), f"the MIG manager refuses the field `{key}`", "unknown", "remove it")
    configs = mapping(body.get("mig-configs"))
    if not configs:
        yield Problem(("mig-configs",), "the file has no entry", "empty", "add `all-disabled`")
    for name, items in configs.items():
        route = ("mig-configs", name)
        if not LABEL_VALUE.fullmatch(name):
            message = f"entry `{name}` cannot be the value of a node label"
            yield Problem(
                route, message, "nodes choose it by label", f"write `{re.sub(r'[^-_.A-Za-z0-9]', '.', name)}`"
            )
        if not sequence(items):
            yield Problem(route, f"entry `{name}` is empty", "needs at least one item", "list its devices")
        for index, item in enumerate(sequence(items)):
            yield from _item_errors((*route, index), name, mapping(item))
        yield from _mode_conflicts(route, name, [mapping(item) for item in sequence(items)])


def _mode_conflicts(route: tuple[str | int, ...], name: str, items: list[Mapping[str, object]]) -> Iterator[Problem]:
    """Items for the same GPUs, on any board, that disagree on whether MIG is on: mig-parted fails on those GPUs."""
    for index, item in enumerate(items):
        for earlier in items[:index]:
            is_for_all_boards = "device-filter" not in item and "device-filter" not in earlier
            differ = (item.get("mig-enabled"), earlier.get("mig-enabled")) in ((True, False), (False, True))
            if is_for_all_boards and differ and _share_gpus(item.get("devices"), earlier.get("devices")):
                message = f"entry `{name}` switches MIG on and off for the same GPU"
                yield Problem((*route, index, "devices"), message, "named before", "name each GPU once")
                return


def _share_gpus(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return any(index in other for index in one)
    return "all" in (one, other) and bool(one) and bool(other)


_ITEM_FIELDS = ("device-filter", "devices", "mig-enabled", "mig-devices")


def _item_errors(route: tuple[str | int, ...], name: str, item: Mapping[str, object]) -> Iterator[Problem]:
    for key in item:
        if key not in _ITEM_FIELDS:
            yield Problem((*route, key), f"the MIG manager refuses the field `{key}`", "unknown", "remove it")
    devices = item.get("devices")
    is_listed = isinstance(devices, list) and all(_is_integer(index) for index in devices)
    if devices != "all" and not is_listed:
        message = f"entry `{name}` does not say which devices"
        yield Problem((*route, "devices"), message, "neither `all` nor indexes", "write `devices: all`")
    if not isinstance(item.get("mig-enabled", ""), bool | None):
        message = f"entry `{name}` does not say `mig-enabled`"
        yield Problem((*route, "mig-enabled"), message, "true or false", "write `mig-enabled: true`")
    yield from _instance_errors(route, name, item)
    yield from _filter_errors(route, item.get("device-filter"))


def _instance_errors(route: tuple[str | int, ...], name: str, item: Mapping[str, object]) -> Iterator[Problem]:
    instances, is_enabled = mapping(item.get("mig-devices")), item.get("mig-enabled") is True
    place = (*route, "mig-devices")
    if is_enabled and not isinstance(item.get("mig-devices"), Mapping):
        yield Problem(
            place, f"entry `{name}` has no `mig-devices`", "needed with MIG", "write `mig-devices: {}` for none"
        )
    if instances and not is_enabled:
        message = f"entry `{name}` has instances on GPUs without MIG"
        yield Problem(place, message, "not with `mig-enabled: false`", "write `mig-enabled: true`")
    if not isinstance(item.get("mig-devices"), Mapping | None) and not is_enabled:
        yield Problem(place, f"`mig-devices` of entry `{name}` is no mapping", "cannot be read", "remove it")
    if instances and not any(instances.values()):
        message = f"entry `{name}` has instances, and all counts are 0"
        yield Problem(place, message, "cannot be read", "write `mig-devices: {}` for none")
    for profile, count in instances.items():
        if count is not None and (not _is_integer(count) or count < 0):
            message = f"entry `{name}` wants `{count}` of `{profile}`, which is no count"
            yield Problem((*place, profile), message, "cannot be read", "write 1 or more")
        elif not count:
            message = f"entry `{name}` wants {count} of `{profile}`, which never becomes true"
            yield Problem((*place, profile), message, "1 or more", "leave the profile out")
        if fault := _profile_fault(profile):
            yield Problem((*place, profile), f"entry `{name}` has `{profile}`, {fault[0]}", fault[1], fault[2])
    counts = {profile: count for profile, count in instances.items() if isinstance(count, int) and count > 0}
    if is_enabled and len(counts) == len(instances) and _fits_nowhere(counts, item.get("device-filter")):
        message = f"no GPU can have what entry `{name}` asks for: {_spell(counts)}"
        yield Problem(place, message, "fits on no model", "write a MigLayout, which names the nearest that fit")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _profile_fault(profile: str) -> tuple[str, str, str] | None:
    """What is wrong with a profile's name, in short, and what to do."""
    parsed = parse_profile(profile)
    if parsed is None:
        return "which is no MIG profile", "the file cannot be read", "write it as `nvidia-smi mig -lgip` prints it"
    if parsed.is_compute_instance:
        return "a compute instance", "the device plugin exits when it finds one", f"write `{parsed.gpu_instance}`"
    if parsed.is_long_spelling:
        return f"reported back as `{parsed.gpu_instance}`", "never compares equal", f"write `{parsed.gpu_instance}`"
    return None


def _fits_nowhere(counts: Mapping[str, int], filters: object) -> bool:
    """Whether some model has all these profiles, now or under earlier drivers, and none of them can be divided so.

    With a filter only the boards behind it count; it parses the whole catalog, so it is for hand-written files alone.
    """
    given = {item.lower() for item in (filters if isinstance(filters, list) else [filters]) if isinstance(item, str)}
    renamed = [
        (gpu, {gpu.legacy_names[name].profile if name in gpu.legacy_names else name: counts[name] for name in counts})
        for gpu in load().all()
        if not given or given & {device.filter.lower() for device in gpu.pci}
    ]
    able = [(gpu, wanted) for gpu, wanted in renamed if all(gpu.find_profile(name) for name in wanted)]
    return bool(counts and able) and not any(fits(gpu, wanted) for gpu, wanted in able)


def _spell(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count}x `{name}`" for name, count in counts.items())


def _filter_errors(route: tuple[str | int, ...], given: object) -> Iterator[Problem]:
    """Without a filter, or with an empty one, an item is for all boards."""
    for item in given if isinstance(given, list) else () if given in (None, "") else (given,):
        place, help_ = (*route, "device-filter"), 'write it quoted and whole, such as `"0x233010DE"`'
        if not isinstance(item, str):
            yield Problem(place, f"device filter `{item}` is not text", "cannot be read", help_)
        elif not _FILTER.fullmatch(item):
            yield Problem(place, f"device filter `{item}` matches no GPU", "not device and vendor in hex", help_)


@check("GPU633", "mig-config-incomplete")
def mig_config_incomplete(plan: Plan) -> Iterator[Finding]:
    """A hand-written file of the MIG manager lacks what every cluster needs of it.

    ## Why
    The operator labels new nodes `all-disabled`; without that entry they end in the state `failed`. The MIG manager
    reads the key `config.yaml` of its ConfigMap, and no other.

    ## Instead
    Write a MigLayout: the generated file has the key and the entry. By hand, add `all-disabled` with `devices: all` and
    `mig-enabled: false`.
    """
    for config in _configs(plan):
        if "mig-configs" in config.body:
            yield from _findings(
                config, _mig_gaps(config), "this file replaces the one that the MIG manager makes itself"
            )


def _mig_gaps(config: _Config) -> Iterator[Problem]:
    if "all-disabled" not in mapping(config.body.get("mig-configs")):
        message, help_ = "entry `all-disabled` is missing", "add `all-disabled: [{devices: all, mig-enabled: false}]`"
        yield Problem(("mig-configs",), message, "the operator labels new nodes with it", help_)
    if config.is_inline and config.key != "config.yaml":
        yield Problem((), "the MIG manager does not read this key", "not `config.yaml`", "name the key `config.yaml`")


CHECKS: tuple[Check, ...] = (
    device_plugin_config_refused,
    device_plugin_config_ignored,
    mig_config_refused,
    mig_config_incomplete,
)
