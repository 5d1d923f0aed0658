"""Files of the MIG manager and of the device plugin beside what has them read, without a platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.plain import inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.wording import joined, misspelling
from gpuplan.compiler.catalog.operators import default_driver, find_line
from gpuplan.compiler.checks import mig, operator
from gpuplan.compiler.checks.formats import Problem
from gpuplan.compiler.checks.formats.files import Config, holds_config, mig_configs, plugin_configs
from gpuplan.compiler.checks.formats.settings import (
    PLUGINS_CHART,
    overriding_strategy,
    settings_for,
    values_of_plugins_chart,
)
from gpuplan.compiler.checks.registry import same_rule
from gpuplan.compiler.checks.wording import mistyped, those_there_are
from gpuplan.compiler.planning.hand_files import DEVICE_PLUGIN, MIG_MANAGER, HandFiles, Object, Settings
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import ClusterMigStrategy
from gpuplan.features.components import PLACEHOLDER, device_plugin_config_refused, label_selects_nothing
from gpuplan.features.components.checks import choices

# --- The MIG strategy --------------------------------------------------------------------------------------------


@same_rule(operator.overridden_mig_strategy)
def overridden_strategy(files: HandFiles) -> Iterator[Finding]:
    """A strategy of the whole cluster over that of a file."""
    for config, strategy in plugin_configs(files):
        own = text(value_at(config.body, ("flags", "migStrategy")))
        if strategy is ClusterMigStrategy.PER_POOL or own in ("", strategy.value):
            continue
        problem = Problem(
            ("flags", "migStrategy"),
            f"the cluster's MIG strategy `{strategy.value}` overrides `{own}` of this file",
            "not what nodes do",
            'leave `mig.strategy` empty, in values as `mig: {strategy: ""}`',
        )
        for found in config.findings((problem,), _OVERRIDES):
            yield replace(found, related=_strategies(files, config))


_OVERRIDES = "`mig.strategy` becomes the variable MIG_STRATEGY of the device plugin, which wins over its file"


def _strategies(files: HandFiles, config: Config) -> tuple[Label, ...]:
    found = (item for item in settings_for(files, config.config_map) if item.strategy is not None)
    return tuple(Label(item.place("mig", "strategy"), "wins over each file") for item in found)[:1]


@same_rule(choices.single_chosen_for_unequal_instances)
def single_for_unequal_instances(files: HandFiles) -> Iterator[Finding]:
    """Entries that no node can choose under the strategy `single`."""
    for config in mig_configs(files):
        if overriding_strategy(files, config.config_map) is ClusterMigStrategy.SINGLE and not _is_stock(config):
            help_ = "write one profile for all GPUs, or `mig: {strategy: mixed}`"
            for problem in choices.unequal_entries(config):
                for found in config.findings((problem._replace(help=help_),), choices.EXITS):
                    yield replace(found, severity=Severity.WARNING, related=_strategies(files, config))


_STOCK = "default-mig-parted-config"
"""The configurations that the operator writes itself, for all boards."""


def _is_stock(config: Config) -> bool:
    return config.config_map == _STOCK


# --- What is read ------------------------------------------------------------------------------------------------


@same_rule(operator.operator_object_by_hand)
def stock_file_by_hand(files: HandFiles) -> Iterator[Finding]:
    """The operator's own file from Git: a live one has an owner."""
    for found in files.of_kind("ConfigMap"):
        if found.name == _STOCK and not found.metadata.get("ownerReferences"):
            yield Finding(
                found.place("metadata", "name"),
                f"{found.title} is reset by the operator",
                label="undone at once",
                help="give it another name, and have `migManager.config.name` say that",
            )


@same_rule(choices.config_that_nobody_reads)
def unread_config(files: HandFiles) -> Iterator[Finding]:
    """Files in ConfigMaps that nothing names, where their operand is told which one to read."""
    mentioned = [body for documents in files.documents.values() for _, body in documents]
    made = {name for item in files.kustomizations for _, _, name in item.generators}
    for found in files.of_kind("ConfigMap"):
        held = _operand_of(found)
        if not held or found.is_patch or found.name in (_STOCK, PLUGINS_CHART, "", *made):
            continue
        named = {item.config_name(held) for item in files.settings if item.is_whole or item.config_name(held)}
        namespace = text(found.metadata.get("namespace"))
        if namespace == choices.FORMER_NAMESPACE and found.name not in named:
            at = found.place("metadata", "namespace")
            yield replace(choices.unread(found.name, namespace, "its own namespace", at), help=_MOVE, severity=None)
        elif named and found.name not in named and not choices.is_mentioned(found.name, mentioned):
            at = found.place("metadata", "name")
            others = sorted(filter(None, named))
            reads = f"`{held}.config.name` is `{others[0]}`" if others else f"no `{held}.config.name` is set"
            yield Finding(
                at,
                f"nobody reads ConfigMap `{found.name}`",
                label="no ClusterPolicy, Helm value or pod names it",
                notes=(reads,),
                help=f"write `{held}: {{config: {{name: {found.name}}}}}`, or remove it",
            )


_MOVE = "write the operator's namespace, most often `gpu-operator`"


def _operand_of(holder: Object) -> str:
    """Return the operand that reads a ConfigMap, or an empty text for any other one."""
    values = [value for value in inside(holder.body, "data").values() if holds_config(value)]
    if not values:
        return ""
    return MIG_MANAGER if any("mig-configs" in str(value) for value in values) else DEVICE_PLUGIN


@same_rule(label_selects_nothing)
def default_selects_nothing(files: HandFiles) -> Iterator[Finding]:
    """Defaults for nodes without a label that name nothing in the ConfigMap beside."""
    for setting in files.settings:
        default = text(setting.value(DEVICE_PLUGIN, "config", "default"))
        name = setting.config_name(DEVICE_PLUGIN)
        maps = [found for found in files.of_kind("ConfigMap") if name and found.name == name and not found.is_patch]
        known = {key for found in maps for key in inside(found.body, "data")}
        if default and maps and default not in known:
            yield mistyped(
                setting.place(DEVICE_PLUGIN, "config", "default"),
                f"`{DEVICE_PLUGIN}.config.default: {default}` of {setting.title} chooses nothing",
                misspelling(default, known),
                "does not exist",
                "remove it, or add this key to the ConfigMap",
                *those_there_are(sorted(known)),
            )
        yield from _default_of_mig_manager(setting)


def _default_of_mig_manager(setting: Settings) -> Iterator[Finding]:
    """Values with which the chart makes a ClusterPolicy that the API server refuses; of one as such its schema tells.

    (`config.default` of `MIGManagerSpec` is an enumeration in `api/nvidia/v1/clusterpolicy_types.go` of
    NVIDIA/gpu-operator.)
    """
    default = text(setting.value(MIG_MANAGER, "config", "default"))
    if setting.of is None and default not in ("", ALL_DISABLED):
        yield Finding(
            setting.place(MIG_MANAGER, "config", "default"),
            f"`{MIG_MANAGER}.config.default: {default}` of {setting.title} chooses nothing",
            label="refused by the API server",
            notes=(f"the operator labels new nodes with `{ALL_DISABLED}`, and with no other entry",),
            help=f"write `{ALL_DISABLED}`, and label the nodes `nvidia.com/mig.config: {default}`",
        )


@same_rule(device_plugin_config_refused)
def plugins_chart_refused(files: HandFiles) -> Iterator[Finding]:
    """Values of the device plugin's own chart that become variables which the plugin refuses.

    (`validateFlags` in `cmd/nvidia-device-plugin/main.go` of NVIDIA/k8s-device-plugin v0.20.0; a variable may hold
    several strategies for lists of devices, with commas.)
    """
    for given in values_of_plugins_chart(files):
        for key, known in _FLAGS.items():
            value = text(given.values.get(key))
            stated = value.split(",") if key == "deviceListStrategy" else [value]
            if value and not set(stated) <= set(known) and not PLACEHOLDER.search(value):
                yield Finding(
                    given.place(key),
                    f"the device plugin knows no `{key}: {value}`",
                    label="unknown",
                    notes=("it ends with this value, and nodes hand out no GPUs",),
                    help=f"write {joined([f'`{one}`' for one in known], 'or')}",
                )


_FLAGS = {
    "deviceDiscoveryStrategy": ("auto", "nvml", "tegra"),
    "deviceIDStrategy": ("uuid", "index"),
    "deviceListStrategy": ("envvar", "volume-mounts", "cdi-annotations", "cdi-cri"),
    "migStrategy": ("none", "single", "mixed"),
}


# --- What a release or a driver does with it ---------------------------------------------------------------------


@same_rule(operator.mps_daemon_starts_empty)
def mps_daemon_empty(files: HandFiles) -> Iterator[Finding]:
    """MPS in a file that a release's daemons most often start without."""
    for config, _ in plugin_configs(files):
        if mapping(mapping(config.body.get("sharing")).get("mps")).get("resources") is None or not config.config_map:
            continue
        for setting in settings_for(files, config.config_map):
            line = find_line(setting.release)
            if line is not None and line.reads_label_late:
                problem = Problem(
                    ("sharing", "mps"),
                    "the MPS daemons of these nodes most often start without their configuration",
                    "no shares are handed out",
                    "use the operator v25.10, or share by time-slicing",
                )
                yield from config.findings((problem,), f"{setting.title} are for {setting.release}")
                break


@same_rule(mig.driver_too_old_for_mig)
def driver_too_old(files: HandFiles) -> Iterator[Finding]:
    """A driver that does not know the models that were named, or what a file makes of them."""
    for setting in files.settings:
        driver = _installed(files, setting)
        for gpu in files.gpus if driver else ():
            if least := mig.missing_driver(driver, gpu):
                yield _too_old(setting, driver, gpu.id, least)
    for config in mig_configs(files):
        divided = [profiles for _, profiles in _divided(config.body)]
        for setting in settings_for(files, config.config_map) if divided and not _is_stock(config) else ():
            driver = _installed(files, setting)
            for gpu in files.gpus if driver else ():
                for what, least in (
                    mig.unmet_requirements(driver, gpu, divided) if not mig.missing_driver(driver, gpu) else ()
                ):
                    found = _too_old(setting, driver, f"{gpu.id} {what}", least)
                    yield replace(found, related=(Label(config.at, "divides GPUs so"),))


def _too_old(setting: Settings, driver: str, needing: str, least: str) -> Finding:
    is_stated = bool(setting.value("driver", "version"))
    return Finding(
        setting.place("driver", "version") if is_stated else setting.at,
        f"driver {driver} is too old for {needing}",
        label=f"needs {least}",
        notes=() if is_stated else (f"{setting.release} installs it where no version is written",),
        help=f"write a driver version from {least} on",
    )


def _installed(files: HandFiles, setting: Settings) -> str:
    """The driver that is installed: the one that is named, else that of the release, unless something else says it."""
    if setting.value("driver", "enabled") is False:
        return ""
    others = [mapping(item.value("driver")) for item in files.settings]
    is_open = any(other.get("version") or other.get("enabled") is False for other in others) or any(
        setting.value(*route) is True for route in _BY_OBJECTS
    )
    is_part = setting.of is not None and not setting.is_whole
    return text(setting.value("driver", "version")) or ("" if is_open or is_part else default_driver(setting.release))


_BY_OBJECTS = (("driver", "nvidiaDriverCRD", "enabled"), ("driver", "useNvidiaDriverCRD"))


@same_rule(mig.driver_breaks_mig)
def driver_without_mig(files: HandFiles) -> Iterator[Finding]:
    """A driver that does not support MIG beside a file that divides GPUs."""
    for config in mig_configs(files):
        divided = next((name for name, _ in _divided(config.body)), "")
        for setting in settings_for(files, config.config_map) if divided and not _is_stock(config) else ():
            driver = _installed(files, setting)
            defect = mig.defect_without_mig(driver) if driver else None
            if defect is not None:
                at = config.at if config.is_inline else config.at / ("mig-configs", divided)
                yield Finding(
                    setting.place("driver", "version"),
                    f"driver {driver} does not support MIG",
                    label="known not to work",
                    related=(Label(at, f"`{divided}` divides GPUs"),),
                    notes=(defect.source,),
                    help="write a later version, such as `580.95.05`",
                )


def _divided(body: Mapping[str, object]) -> Iterator[tuple[str, frozenset[str]]]:
    """The entries that divide GPUs, with the profiles that stand together on one."""
    for name, entry in mapping(body.get("mig-configs")).items():
        for item in map(mapping, sequence(entry)):
            if item.get("mig-enabled") is True:
                yield name, frozenset(mapping(item.get("mig-devices")))
