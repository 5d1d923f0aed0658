"""The files of the MIG manager and the device plugin, and what each of the plugin's makes of a pool's devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.backends.gpu_operator import device_plugin
from gpuplan.compiler.base.diagnostics import Origin, Path, Rule
from gpuplan.compiler.base.plain import inside, is_yaml, mapping, read_text, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.checks.formats import find_problems
from gpuplan.compiler.checks.formats.faults import plugin_errors, unmatched_names
from gpuplan.compiler.checks.formats.files import is_config
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, mig_resource
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.live.clusters.operators import Operator, is_settings
from gpuplan.features.live.dump import Dump, is_part
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.rules import LAYOUT_NOT_SAID, SHARING_NOT_SAID


class ConfigFile(Value):
    """A file of an operand, with its ``key`` in a ConfigMap; text inside one has one place for all that is in it.

    ``owner`` is the name of the ConfigMap, empty where it is a file of its own or a part of Helm values.
    """

    at: Origin
    key: str
    body: Mapping[str, object]
    source: str
    owner: str = ""
    is_inline: bool = False

    def place(self, *route: str | int) -> Origin:
        return self.at if self.is_inline else self.at / route


class Operand(NamedTuple):
    """A program that reads files: what the operator is told of it, and by what one knows its files and gpuplan's.

    Of a ConfigMap it reads the ``key`` alone, or each where that is empty: then nodes choose by label. ``begins`` are
    words by which one may know a text that cannot be parsed.
    """

    called: str
    section: str
    config_map: str
    key: str
    begins: tuple[str, ...]
    is_file: Callable[[Mapping[str, object]], bool]
    rule: Rule

    def is_in(self, value: object) -> bool:
        """Whether a text of some ConfigMap is meant to be such a file."""
        if not isinstance(value, str) or not any(word in value for word in self.begins):
            return False
        if bodies := read_text(value):
            return self.is_file(mapping(bodies[0]))
        return value.lstrip().startswith(("version:", *self.begins))


MIG_MANAGER: Final = Operand(
    called="MIG manager",
    section="migManager",
    config_map="gpuplan-mig-parted",
    key="config.yaml",
    begins=("mig-configs:",),
    is_file=lambda body: "mig-configs" in body,
    rule=LAYOUT_NOT_SAID,
)
DEVICE_PLUGIN: Final = Operand(
    called="device plugin",
    section="devicePlugin",
    config_map=device_plugin.CONFIG_MAP,
    key="",
    begins=("timeSlicing:", "mps:", "migStrategy:"),
    is_file=lambda body: "mig-configs" not in body and is_config(body),
    rule=SHARING_NOT_SAID,
)


def read_files(dump: Dump, operator: Operator, operand: Operand, reports: Reports) -> tuple[ConfigFile, ...]:
    """Return the files of an operand: those of the ConfigMap that the operator is told of, else all that look like one.

    What is meant to be one and cannot be parsed is a finding.
    """
    wanted, maps = operator.text(operand.section, "config", "name"), dump.of_kind("", "ConfigMap")
    if any(_OF_ONE_NODE in item.labels for item in maps):
        maps = tuple(item for item in maps if _OF_ONE_NODE not in item.labels and item.name != OPERATORS_OWN)
    named = [item for item in maps if (item.name == wanted if wanted else item.name.startswith(operand.config_map))]
    # A file of the device plugin may say nothing but its version: such a file is known by others in its ConfigMap.
    held = {item.name: inside(item.body, "data").values() for item in maps if not operand.key}
    whole = {name for name, values in held.items() if any(map(operand.is_in, values))}
    texts = [
        (item.at / "data" / key, key, value, item.source, item.name)
        for item in named or maps
        for key, value in inside(item.body, "data").items()
        if (named and operand.key in ("", key)) or operand.is_in(value) or (item.name in whole and _is_versioned(value))
    ]
    texts += [
        (part.at / (operand.section, "config", "data", key), key, value, part.source, "")
        for part in operator.settings
        for key, value in inside(part.body, operand.section, "config", "data").items()
    ]
    found: list[ConfigFile] = []
    for at, key, value, source, owner in texts:
        if isinstance(value, Mapping):
            found.append(ConfigFile(at, key, mapping(value), source, owner))
        elif isinstance(value, str) and is_yaml(value):
            body = mapping(next(iter(read_text(value)), None))
            found.append(ConfigFile(at, key, body, source, owner, is_inline=True))
        elif isinstance(value, str):
            reports.say("file-not-parsed", at, rule=operand.rule.code, key=key, source=source)
    if wanted and not texts and wanted not in (OPERATORS_OWN, *(item.name for item in maps)):
        at, namespace = operator.settings[0].at / operand.section, operator.namespace or "gpu-operator"
        called, rule = operand.called, operand.rule.code
        reports.say("config-map-missing", at, rule=rule, called=called, name=wanted, namespace=namespace)
    for document in dump.others:
        body, path = mapping(document.data), document.file.path
        if operand.is_file(body) and not is_settings(body):
            name, source = path.rpartition("/")[2].partition(".")[0], f"file of the {operand.called} ({path})"
            found.append(ConfigFile(document.origin, name, body, source))
    return tuple(found)


def _is_versioned(value: object) -> bool:
    return isinstance(value, str) and any(mapping(body).get("version") == "v1" for body in read_text(value))


OPERATORS_OWN: Final = "default-mig-parted-config"
"""The name of the file that the GPU Operator brings (`MigPartedDefaultConfigMapName` in its `object_controls.go`)."""
_OF_ONE_NODE: Final = "nvidia.com/node-name"
"""The label of a ConfigMap in which the MIG manager of a node shows the file that it has made there.

Nobody reads it, and it says nothing of other nodes. The file that the operator brings is for nodes that cannot make one
(`setupMigConfig` and `createNodeConfigMap` in `cmd/nvidia-mig-manager/main.go` of NVIDIA/mig-parted v0.14.0).
"""


_METHODS: Final = ("mps", "timeSlicing")
"""MPS wins where both are there (`api/config/v1` of NVIDIA/k8s-device-plugin)."""


class Loss(NamedTuple):
    """A part of a file that no policy says; NVIDIA's program refuses or drops it by itself where it ``is_inert``."""

    route: Path
    message: str
    instead: str
    is_inert: bool = False


class Method(Value):
    """The way in which a file divides devices: ``kind`` as a policy calls it, and the shares by resource."""

    kind: str
    renames: bool
    fails: bool
    replicas: Mapping[str, int]
    route: Path

    def fields(self) -> dict[str, Any]:
        """Return the fields of a policy beside the shares that are not as usual."""
        found: dict[str, Any] = {} if self.renames else {"rename": False}
        if self.kind == "timeSlicing" and not self.fails:
            found["failRequestsGreaterThanOne"] = False
        return found


class Configuration(Value):
    """A file: the strategy that it names, how it divides devices, and what of it no policy says."""

    strategy: str
    method: Method | None
    losses: tuple[Loss, ...]

    @property
    def body(self) -> dict[str, Any]:
        """The file, as far as a `Retained` says it."""
        found: dict[str, Any] = {"version": "v1"}
        if self.strategy in {strategy.value for strategy in MigStrategy}:
            found["flags"] = {"migStrategy": self.strategy}
        if (method := self.method) and method.replicas:
            fails = {"failRequestsGreaterThanOne": method.fails} if method.kind == "timeSlicing" else {}
            parts = [{"name": name, "replicas": count} for name, count in method.replicas.items()]
            found["sharing"] = {method.kind: {"renameByDefault": method.renames, **fails, "resources": parts}}
        return found

    def of_mig(self, profiles: Sequence[str], strategy: str) -> dict[str, Any]:
        """Return the `timeSlicing` of a pool with MIG; MPS shares no MIG devices."""
        method = self.method
        if method is None or method.kind == "mps":
            return {}
        if strategy == MigStrategy.SINGLE:
            shares = method.replicas.get(GPU_RESOURCE)
            return {"timeSlicing": {"replicas": shares, **method.fields()}} if shares else {}
        names = {mig_resource(profile): profile for profile in profiles}
        by_profile = {names[name]: count for name, count in method.replicas.items() if name in names}
        if not by_profile:
            return {}
        same = set(by_profile.values())
        shares_of: object = by_profile
        if len(same) == 1 and len(by_profile) == len(names):
            [shares_of] = same
        return {"timeSlicing": {"replicas": shares_of, **method.fields()}}

    def of_gpus(self) -> dict[str, Any]:
        """Return the sharing of a pool of whole GPUs; nothing where they are not divided."""
        method = self.method
        shares = method.replicas.get(GPU_RESOURCE) if method else None
        return {method.kind: {"replicas": shares, **method.fields()}} if method and shares else {}


def read_configuration(file: ConfigFile, overriding: ClusterMigStrategy) -> Configuration:
    """``overriding`` is the strategy that the cluster has for all nodes, if it has one."""
    body = file.body
    method = next(filter(None, (_method(body, kind) for kind in _METHODS)), None)
    if method is not None and method.kind == "mps" and any(plugin_errors(body, overriding)):
        method = None  # the device plugin refuses the file, so that it shares nothing
    return Configuration(text(inside(body, "flags").get("migStrategy")), method, tuple(_losses(body, overriding)))


def _method(body: Mapping[str, object], kind: str) -> Method | None:
    written = inside(body, "sharing").get(kind)
    if not isinstance(written, Mapping):
        return None
    part = mapping(written)
    replicas: dict[str, int] = {}
    for resource in map(mapping, sequence(part.get("resources"))):
        name, count = text(resource.get("name")), resource.get("replicas")
        full = name if "/" in name else f"nvidia.com/{name}"  # `NewResourceName` in api/config/v1/resources.go there
        if name and type(count) is int and count > 1:
            replicas.setdefault(full, count)
    fails = part.get("failRequestsGreaterThanOne")
    return Method(
        kind=kind,
        renames=part.get("renameByDefault") is True,
        fails=fails is True if kind == "timeSlicing" else fails is not False,
        replicas=replicas,
        route=("sharing", kind),
    )


# --- What is lost ------------------------------------------------------------------------------------------------

_SAID: Final = ("version", "flags", "sharing")
_USUAL: Final[Mapping[str, object]] = {
    "failOnInitError": True,
    "nvidiaDriverRoot": "/",
    "plugin": {"passDeviceSpecs": False, "deviceListStrategy": "envvar", "deviceIDStrategy": "uuid"},
}
"""The values without a file; a variable of its environment comes before both ("Configuring the NVIDIA device plugin
binary" in `README.md` of NVIDIA/k8s-device-plugin at cb6e45ec3577)."""


def _losses(body: Mapping[str, object], overriding: ClusterMigStrategy) -> Iterator[Loss]:
    """Yield the parts of a file that no policy says; NVIDIA's program refuses or drops some of them itself."""
    refused = (*plugin_errors(body, overriding),)
    dropped = (*find_problems("device-plugin-ignored", body), *unmatched_names(body, overriding))
    for problem in {found.route: found for found in (*dropped, *refused)}.values():
        yield Loss(problem.route, problem.message, problem.help, is_inert=True)
    for flag, value in inside(body, "flags").items():
        if flag != "migStrategy" and not (flag in _USUAL and is_part(value, _USUAL[flag])):
            message = f"the flag `{flag}` of the device plugin is not said in a policy"
            yield Loss(("flags", flag), message, "set it for the cluster, in `gpuOperator.values` or `gpuOperator.env`")
    if mapping(body.get("imex")):
        message = "`imex` of the device plugin is not said in a policy"
        yield Loss(("imex",), message, "IMEX channels are handed out by NVIDIA's driver for DRA")
    mps = mapping(inside(body, "sharing").get("mps"))
    if mps.get("failRequestsGreaterThanOne") is False:
        route = ("sharing", "mps", "failRequestsGreaterThanOne")
        yield Loss(route, "containers that ask for several shares of MPS will be refused", "ask for one share")
