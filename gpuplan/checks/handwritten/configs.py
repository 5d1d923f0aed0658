"""Checks on hand-written files of the device plugin and of the MIG manager (GPU630-639)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpuplan.catalog import load, parse_profile
from gpuplan.checks.handwritten.formats import Problem, find_problems
from gpuplan.checks.handwritten.reading import KUSTOMIZATION_FILES, HandFiles, mapping, read_text, sequence, text
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Origin, Path, Severity
from gpuplan.patterns import regex
from gpuplan.planning.placement import fits
from gpuplan.policy.models import ClusterMigStrategy
from gpuplan.values import Value

MOST_MPS_CLIENTS = 48

LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_MARKS = ("mig-configs", "sharing", "migStrategy")


class _Config(Value):
    """A file's content, with the key that it has in a ConfigMap; text in one has one place for all that is in it."""

    at: Origin
    body: Mapping[str, object]
    key: str = ""
    is_inline: bool = False

    def place(self, route: Path) -> Origin:
        return self.at if self.is_inline else self.at / route


def _configs(files: HandFiles) -> Iterator[_Config]:
    """Files that look like the device plugin's or the MIG manager's, in ConfigMaps and beside a generator."""
    alone = list(_files_alone(files))
    yield from alone
    for found in files.of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            if isinstance(value, str) and any(mark in value for mark in _MARKS):
                for body in read_text(value):
                    file = next((item for item in alone if item.body == body), None)
                    inline = _Config(found.place("data", key), mapping(body), key, is_inline=True)
                    yield replace(file, key=key) if file else inline


def _files_alone(files: HandFiles) -> Iterator[_Config]:
    for path, documents in files.documents.items():
        if path.rpartition("/")[2] not in KUSTOMIZATION_FILES:
            for at, document in documents:
                body = mapping(document)
                if "kind" not in body and any(mark in body for mark in ("mig-configs", "sharing", "flags")):
                    yield _Config(at, body)


def _findings(config: _Config, problems: Iterable[Problem], fact: str) -> Iterator[Finding]:
    for problem in problems:
        where = f"`{config.key}`: " if config.is_inline else ""
        place = config.place(problem.route)
        yield Finding(place, where + problem.message, label=problem.label, notes=(fact,), help=problem.help)


def _strategy(files: HandFiles) -> ClusterMigStrategy:
    """The cluster's, which each file may have where there is no cluster."""
    return files.plan.cluster.gpu_operator.spec.mig_strategy if files.plan else ClusterMigStrategy.PER_POOL


# --- The device plugin -------------------------------------------------------------------------------------------


@check("GPU630", "device-plugin-config-refused")
def device_plugin_config_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written configuration of the device plugin is one that it cannot read.

    ## Why
    The plugin checks its file when it starts (`api/config/v1` of NVIDIA/k8s-device-plugin). With a file that it refuses
    it exits, and the nodes that select the entry hand out no GPUs at all. A common one is `replicas: 0` or `1` to
    switch sharing off.

    ## Instead
    Describe the pool in the policy. Where an entry must be written by hand, switch sharing off by leaving `sharing`
    out.
    """
    for config in _configs(files):
        if _is_plugin(config.body):
            problems = plugin_errors(config.body, _strategy(files))
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
    yield from find_problems("device-plugin", body)
    yield from _strategy_errors(body, overriding)
    for index, resource in enumerate(sequence(_methods(body).get("mps", {}).get("resources"))):
        yield from _mps_errors(("sharing", "mps", "resources", index), mapping(resource))


def _strategy_errors(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """The file's strategy counts where the cluster leaves it to each pool."""
    own = mapping(body.get("flags")).get("migStrategy")
    is_own = overriding is ClusterMigStrategy.PER_POOL
    if is_own and isinstance(own, str) and own not in ("none", "single", "mixed"):
        message = f"the device plugin knows no MIG strategy `{own}`"
        yield Problem(("flags", "migStrategy"), message, "unknown", "write `none`, `single` or `mixed`")
    if "mps" in _methods(body) and (own if is_own else overriding) == ClusterMigStrategy.MIXED:
        message = "the device plugin refuses MPS with the MIG strategy `mixed`"
        if is_own:
            yield Problem(("flags", "migStrategy"), message, "not with MPS", "write `migStrategy: none`")
        else:
            help_ = "use `timeSlicing`, or write `gpuOperator.migStrategy: perPool` in the Cluster"
            yield Problem(("sharing", "mps"), message, "the cluster's strategy is `mixed`", help_)


def _mps_errors(route: Path, resource: Mapping[str, object]) -> Iterator[Problem]:
    name, replicas = text(resource.get("name")), resource.get("replicas")
    if isinstance(replicas, int) and replicas > MOST_MPS_CLIENTS:
        message = f"MPS divides a GPU among at most {MOST_MPS_CLIENTS}"
        help_ = f"write {MOST_MPS_CLIENTS} or less, on GPUs before compute capability 7.5 at most 16"
        yield Problem((*route, "replicas"), message, f"{replicas} clients", help_)
    if name.startswith("nvidia.com/mig-"):
        yield Problem((*route, "name"), "MPS does not share MIG devices", "whole GPUs only", "use `timeSlicing`")


@check("GPU631", "device-plugin-config-ignored", Severity.WARNING)
def device_plugin_config_ignored(files: HandFiles) -> Iterator[Finding]:
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
    for config in _configs(files):
        if _is_plugin(config.body):
            overriding = _strategy(files)
            problems = (*_plugin_warnings(config.body), *_wrong_strategy(config.body, overriding))
            yield from _findings(config, problems, "the device plugin starts without it")


_METHOD_FIELDS = ("renameByDefault", "failRequestsGreaterThanOne")


def _plugin_warnings(body: Mapping[str, object]) -> Iterator[Problem]:
    methods = _methods(body)
    refused = {problem.route for problem in find_problems("device-plugin", body)}
    if len(methods) == 2:
        yield Problem(("sharing", "timeSlicing"), "MPS wins over time-slicing", "ignored", "keep one of the two")
    if "resources" in body:
        yield Problem(("resources",), "`resources` is ignored", "resources cannot be named here", "remove it")
    for name, method in methods.items():
        for index, resource in enumerate(sequence(method.get("resources"))):
            fields = mapping(resource)
            route = ("sharing", name, "resources", index)
            if "rename" in fields and (*route, "rename") not in refused:
                help_ = f"write `renameByDefault: true` right under `{name}`: the resource is then named `.shared`"
                yield Problem((*route, "rename"), "`rename` is ignored", "not supported", help_)
            if fields.get("devices", "all") != "all" and (*route, "devices") not in refused:
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


def _misplaced(fields: Mapping[str, object], route: Path, method: str) -> Iterator[Problem]:
    for name in _METHOD_FIELDS:
        if name in fields:
            yield Problem((*route, name), f"`{name}` is ignored here", "wrong place", f"move it right under `{method}`")


# --- The MIG manager ---------------------------------------------------------------------------------------------


@check("GPU632", "mig-config-refused")
def mig_config_refused(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager is one that it cannot read or cannot fulfil.

    ## Why
    The file is parsed as a whole (`api/spec/v1` of NVIDIA/mig-parted): one bad entry fails every node of the cluster.
    What is not refused can be worse: a malformed filter matches no GPU, and a count of 0 never becomes true, so that
    the node is repartitioned at each start.

    ## Instead
    Write a MigLayout: gpuplan writes the file, and proves that the instances fit.
    """
    for config in _configs(files):
        if "mig-configs" in config.body:
            yield from _findings(
                config, _mig_errors(config.body), "one bad entry fails the file, and with it all nodes"
            )


def _mig_errors(body: Mapping[str, object]) -> Iterator[Problem]:
    yield from find_problems("mig-parted", body)
    for name, entry in mapping(body.get("mig-configs")).items():
        route, items = ("mig-configs", name), [mapping(item) for item in sequence(entry)]
        if not LABEL_VALUE.fullmatch(name):
            message = f"entry `{name}` cannot be the value of a node label"
            yield Problem(
                route, message, "nodes choose it by label", f"write `{re.sub(r'[^-_.A-Za-z0-9]', '.', name)}`"
            )
        for index, item in enumerate(items):
            yield from _instance_errors((*route, index), name, item)
        yield from _mode_conflicts(route, name, items)


def _mode_conflicts(route: Path, name: str, items: list[Mapping[str, object]]) -> Iterator[Problem]:
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


def _instance_errors(route: Path, name: str, item: Mapping[str, object]) -> Iterator[Problem]:
    instances, is_enabled = mapping(item.get("mig-devices")), item.get("mig-enabled") is True
    place = (*route, "mig-devices")
    if is_enabled and item.get("mig-devices") is None:
        yield Problem(
            place, f"entry `{name}` has no `mig-devices`", "needed with MIG", "write `mig-devices: {}` for none"
        )
    if instances and not is_enabled:
        message = f"entry `{name}` has instances on GPUs without MIG"
        yield Problem(place, message, "not with `mig-enabled: false`", "write `mig-enabled: true`")
    if instances and not any(instances.values()):
        message = f"entry `{name}` has instances, and all counts are 0"
        yield Problem(place, message, "cannot be read", "write `mig-devices: {}` for none")
    for profile, count in instances.items():
        if count is None or (count == 0 and count is not False):
            message = f"entry `{name}` wants {count} of `{profile}`, which never becomes true"
            yield Problem((*place, profile), message, "1 or more", "leave the profile out")
        if fault := _profile_fault(profile):
            yield Problem((*place, profile), f"entry `{name}` has `{profile}`, {fault[0]}", fault[1], fault[2])
    counts = {profile: count for profile, count in instances.items() if isinstance(count, int) and count > 0}
    if is_enabled and len(counts) == len(instances) and _fits_nowhere(counts, item.get("device-filter")):
        message = f"no GPU can have what entry `{name}` asks for: {_spell(counts)}"
        yield Problem(place, message, "fits on no model", "write a MigLayout, which names the nearest that fit")


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


@check("GPU633", "mig-config-incomplete")
def mig_config_incomplete(files: HandFiles) -> Iterator[Finding]:
    """A hand-written file of the MIG manager lacks what every cluster needs of it.

    ## Why
    The operator labels new nodes `all-disabled`; without that entry they end in the state `failed`. The MIG manager
    reads the key `config.yaml` of its ConfigMap, and no other.

    ## Instead
    Write a MigLayout: the generated file has the key and the entry. By hand, add `all-disabled` with `devices: all` and
    `mig-enabled: false`.
    """
    for config in _configs(files):
        if "mig-configs" in config.body:
            yield from _findings(
                config, _mig_gaps(config), "this file replaces the one that the MIG manager makes itself"
            )


def _mig_gaps(config: _Config) -> Iterator[Problem]:
    if "all-disabled" not in mapping(config.body.get("mig-configs")):
        message, help_ = "entry `all-disabled` is missing", "add `all-disabled: [{devices: all, mig-enabled: false}]`"
        yield Problem(("mig-configs",), message, "the operator labels new nodes with it", help_)
    if config.key not in ("", "config.yaml"):
        yield Problem((), "the MIG manager does not read this key", "not `config.yaml`", "name the key `config.yaml`")
