"""Checks on hand-written files of the device plugin and of the MIG manager (GPU630-639)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpuplan.catalog import load, parse_profile
from gpuplan.checks.handwritten.formats import Problem, find_problems
from gpuplan.checks.handwritten.reading import (
    KUSTOMIZATION_FILES,
    HandFiles,
    mapping,
    read_text,
    sequence,
    text,
    value_at,
)
from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Origin, Path, Severity
from gpuplan.patterns import regex
from gpuplan.planning.placement.placing import fits
from gpuplan.policy.models import ClusterMigStrategy
from gpuplan.values import Value

LABEL_VALUE = regex(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_MARKS = ("mig-configs", "sharing", "migStrategy")


class _Config(Value):
    """A file's content, with the key that it has in a ConfigMap; text in one has one place for all that is in it."""

    at: Origin
    body: Mapping[str, object]
    key: str = ""
    is_inline: bool = False

    @property
    def is_plugins(self) -> bool:
        sharing, flags = mapping(self.body.get("sharing")), mapping(self.body.get("flags"))
        return "migStrategy" in flags or "timeSlicing" in sharing or "mps" in sharing

    def findings(self, problems: Iterable[Problem], fact: str) -> Iterator[Finding]:
        for problem in problems:
            if self.is_inline:
                yield problem.found(self.at, fact, self.key)
            else:
                yield problem.found(self.at / problem.route, fact)


def _configs(files: HandFiles) -> Iterator[_Config]:
    """Files that look like the device plugin's or the MIG manager's, in ConfigMaps and beside a generator."""
    alone = list(_files_alone(files))
    yield from alone
    for found in files.of_kind("ConfigMap"):
        for key, value in mapping(found.body.get("data")).items():
            if isinstance(value, str) and any(mark in value for mark in _MARKS):
                for body in read_text(value):
                    file = next((item for item in alone if item.body == body), None)
                    at = found.place("data", key)
                    yield replace(file, key=key) if file else _Config(at, mapping(body), key, is_inline=True)


def _files_alone(files: HandFiles) -> Iterator[_Config]:
    for path, documents in files.documents.items():
        if path.rpartition("/")[2] not in KUSTOMIZATION_FILES:
            for at, document in documents:
                body = mapping(document)
                if "kind" not in body and any(mark in body for mark in ("mig-configs", "sharing", "flags")):
                    yield _Config(at, body)


def _plugins(files: HandFiles) -> Iterator[tuple[_Config, ClusterMigStrategy]]:
    """Files of the device plugin, with the cluster's strategy, which each may have for itself where there is none."""
    strategy = files.plan.cluster.gpu_operator.spec.mig_strategy if files.plan else ClusterMigStrategy.PER_POOL
    return ((config, strategy) for config in _configs(files) if config.is_plugins)


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
    for config, strategy in _plugins(files):
        problems = plugin_errors(config.body, strategy)
        yield from config.findings(problems, "nodes with this entry hand out no GPUs")


def plugin_errors(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """What the device plugin refuses; the file's own strategy counts where the cluster leaves it to each pool."""
    yield from find_problems("device-plugin", body)
    own = value_at(body, ("flags", "migStrategy"))
    is_own = overriding is ClusterMigStrategy.PER_POOL
    if is_own and isinstance(own, str) and own not in ("none", "single", "mixed"):
        message = f"the device plugin knows no MIG strategy `{own}`"
        yield Problem(("flags", "migStrategy"), message, "unknown", "write `none`, `single` or `mixed`")
    has_mps = value_at(body, ("sharing", "mps")) is not None
    if has_mps and (own if is_own else overriding) == ClusterMigStrategy.MIXED:
        message = "the device plugin refuses MPS with the MIG strategy `mixed`"
        if is_own:
            yield Problem(("flags", "migStrategy"), message, "not with MPS", "write `migStrategy: none`")
        else:
            help_ = "use `timeSlicing`, or write `gpuOperator.migStrategy: perPool` in the Cluster"
            yield Problem(("sharing", "mps"), message, "the cluster's strategy is `mixed`", help_)


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
    for config, strategy in _plugins(files):
        refused = {problem.route for problem in find_problems("device-plugin", config.body)}
        ignored = (item for item in find_problems("device-plugin-ignored", config.body) if item.route not in refused)
        problems = (*ignored, *_wrong_strategy(config.body, strategy))
        yield from config.findings(problems, "the device plugin starts without it")


def _wrong_strategy(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Problem]:
    """MIG devices that are to be shared by a name that they have under another strategy."""
    own = text(value_at(body, ("flags", "migStrategy"))) or ClusterMigStrategy.NONE.value
    strategy = own if overriding is ClusterMigStrategy.PER_POOL else overriding.value
    if strategy == ClusterMigStrategy.MIXED:
        return
    for index, resource in enumerate(sequence(value_at(body, ("sharing", "timeSlicing", "resources")))):
        name = text(mapping(resource).get("name"))
        if name.removeprefix("nvidia.com/").startswith("mig-"):
            yield Problem(
                ("sharing", "timeSlicing", "resources", index, "name"),
                f"`{name}` is not shared: under the MIG strategy `{strategy}` no device has this name",
                "matches nothing",
                "write `nvidia.com/gpu`" if strategy == "single" else "write `flags: {migStrategy: mixed}` in the file",
            )


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
            problems = _mig_errors(config.body)
            yield from config.findings(problems, "one bad entry fails the file, and with it all nodes")


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
            yield from config.findings(
                _mig_gaps(config), "this file replaces the one that the MIG manager makes itself"
            )


def _mig_gaps(config: _Config) -> Iterator[Problem]:
    if "all-disabled" not in mapping(config.body.get("mig-configs")):
        message, help_ = "entry `all-disabled` is missing", "add `all-disabled: [{devices: all, mig-enabled: false}]`"
        yield Problem(("mig-configs",), message, "the operator labels new nodes with it", help_)
    if config.key not in ("", "config.yaml"):
        yield Problem((), "the MIG manager does not read this key", "not `config.yaml`", "name the key `config.yaml`")
